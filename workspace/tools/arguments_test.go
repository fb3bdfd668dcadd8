package tools

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Models send "" for what they do not want to say. It is no path.
func TestOptionalTextCanBeEmpty(t *testing.T) {
	set := New(openRoots(t, plant(t, fileTree{"a": "x\n"})), Options{})
	for tool, c := range map[string][2]string{
		"find_files": {`{"glob":""}`, "{}"},
		"search":     {`{"pattern":"x","glob":""}`, `{"pattern":"x"}`},
	} {
		empty, err := set.Call(t.Context(), tool, []byte(c[0]))
		require.NoError(t, err, tool)
		absent, err := set.Call(t.Context(), tool, []byte(c[1]))
		require.NoError(t, err, tool)
		require.Equal(t, absent, empty, tool)
		_, err = set.Call(t.Context(), tool, []byte(`{"pattern":"x","path":""}`))
		require.ErrorContains(t, err, "path must be a string that is not empty", tool)
	}
}

func TestArguments(t *testing.T) {
	set := New(openRoots(t, plant(t, fileTree{"a": "x\n"})), Options{})
	const path = "a string that is not empty"
	for _, c := range []struct {
		tool, arguments string
		problems        []string
	}{
		{"read_file", ``, []string{"path is missing: it must be " + path}},
		{"read_file", `["a"]`, []string{"they must be a JSON object"}},
		{"read_file", `{"path":"a"}{}`, []string{"they are not valid JSON: "}},
		{"read_file", `{"path":"a"`, []string{"they are not valid JSON: "}},
		{"read_file", `{"file":"a","ofset":1}`, []string{"path is missing: it must be " + path,
			`there is no argument "file", "ofset" (available: limit, line_offset, offset, path, tail)`}},
		{"read_file", `{"Path":"a"}`, []string{`there is no argument "Path": write path`,
			"path is missing: it must be " + path}},
		{"read_file", `{"path":"a","PATH":"a"}`, []string{`there is no argument "PATH"`}},
		{"read_file", `{"path":"a","x":1,"x":1}`, []string{"x is given twice",
			`there is no argument "x"`}},
		{"read_file", `{"path":"a","limit":null,"limit":1}`, []string{"limit is given twice"}},
		{"read_file", `{"path":"a","limit":"null"}`,
			[]string{"limit must be an integer of at least 1"}},
		{"read_file", `{"path":"a","limit":"0"}`,
			[]string{"limit must be an integer of at least 1"}},
		{"read_file", `{"path":5}`, []string{"path must be " + path}},
		{"read_file", `{"path":"a","path":"b"}`, []string{"path is given twice"}},
		{"read_file", `{"path":["a"],"offset":"one","limit":0}`,
			[]string{"path must be " + path, "offset must be an integer of at least 1",
				"limit must be an integer of at least 1"}},
		{"read_file", `{"path":null}`, []string{"path must be " + path}},
		{"read_file", `{"path":"a","limit":1.5}`,
			[]string{"limit must be an integer of at least 1"}},
		{"read_file", `{"path":"a","limit":1e300}`,
			[]string{"limit must be an integer of at least 1"}},
		{"read_file", `{"path":"\ud800"}`, []string{"path must be " + path}},
		{"search", `{"pattern":"x","literal":"yes","context":99}`,
			[]string{"literal must be a boolean", "context must be an integer from 0 to 20"}},
		{"find_files", `{"ignored":"no"}`, []string{
			`ignored must be one of ["leave_out","include"]`}},
		{"read_files", `{"paths":["a",""]}`, []string{
			"paths must be a list that is not empty, each item " + path}},
		{"read_files", `{"paths":[]}`,
			[]string{"paths must be a list that is not empty, each item " + path}},
		{"read_files", `{"paths":["\ud800"]}`, []string{
			"paths must be a list that is not empty, each item " + path}},
		{"read_files", `{"paths":[null]}`,
			[]string{"paths must be a list that is not empty, each item " + path}},
	} {
		_, err := set.Call(t.Context(), c.tool, json.RawMessage(c.arguments))
		var wrong *argumentError
		require.ErrorAs(t, err, &wrong, c.arguments)
		require.Len(t, wrong.problems, len(c.problems), c.arguments)
		for i, problem := range c.problems {
			require.Contains(t, wrong.problems[i], problem, c.arguments)
		}
		require.ErrorContains(t, err, "invalid arguments for "+c.tool+": ")
	}
	for _, arguments := range []string{`{"path":"a","limit":1.0,"offset":1e0}`,
		` {"path":"\u0061"} `, `{"path":"a","limit":2147483647}`} {
		_, err := set.Call(t.Context(), "read_file", json.RawMessage(arguments))
		require.NoError(t, err, arguments)
	}
	for _, c := range []struct{ tool, arguments, note string }{
		{"read_file", `{"path":"a","limit":"1","offset":" 1 ","tail":null}`, ""},
		{"read_file", `{"path":"a","ofset":1}`,
			`[ignored: there is no argument "ofset" (available: limit, line_offset, offset, path, tail)]`},
		{"list_roots", `{"path":"a","x":null}`,
			`[ignored: there is no argument "path", "x" (the tool takes none)]`},
		{"directory_tree", `{"path":null,"exclude":null,"depth":"2.0"}`, ""},
	} {
		result, err := set.Call(t.Context(), c.tool, json.RawMessage(c.arguments))
		require.NoError(t, err, c.arguments)
		require.Equal(t, c.note != "", strings.Contains(result.Text, "[ignored"), result.Text)
		require.Contains(t, result.Text, c.note)
	}
	_, err := set.Call(t.Context(), "read_file", json.RawMessage(`{"path":"no","ofset":1}`))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, `Also, there is no argument "ofset"`)
	_, err = set.Call(t.Context(), "find_files", json.RawMessage(`{"glob":"\ud83d\ude00"}`))
	require.NoError(t, err)
}

func TestErrorsAreBounded(t *testing.T) {
	set := New(openRoots(t, plant(t, nil)), Options{})
	long, many := strings.Repeat("é/", 1<<15), make(args)
	for i := range 1000 {
		many[long[:100+2*i]] = i
	}
	for _, c := range []struct {
		tool string
		args args
	}{
		{"read_file", many}, {"read_file", args{"path": long}}, {"search",
			args{"pattern": "(" + long}}, {"find_files", args{"glob": long}}, {long, nil},
		{"read_file", args{long: 1}},
	} {
		_, err := set.Call(t.Context(), c.tool, encode(c.args))
		require.Error(t, err)
		require.Less(t, len(err.Error()), 30_000)
		require.True(t, utf8.ValidString(err.Error()))
	}
}

func TestImpreciseEditsAreAccepted(t *testing.T) {
	app, h := servePlanted(t, fileTree{"a": "one\n"})
	result, err := h.set.Call(t.Context(), "edit_file", json.RawMessage(`{"path":"a","edits":[
		{"old_text":"one","new_text":"two","replace_all":null,"why":"it is wrong"}]}`))
	require.NoError(t, err)
	require.Contains(t, result.Text, `[ignored: there is no argument "why"`)
	require.Equal(t, fileTree{"a": "two\n"}, planted(t, app))
	for _, edits := range []string{`[{"old_text":"two","new_text":null}]`,
		`[{"old_text":"two","new_text":"a","new_text":"b"}]`, `[{"old_text":2,"new_text":"b"}]`} {
		_, err := h.set.Call(t.Context(), "edit_file",
			json.RawMessage(`{"path":"a","edits":`+edits+`}`))
		require.ErrorContains(t, err, "edits must be a list", edits)
		require.NotRegexp(t, `Go |struct|float64|\bmap\b|interface`, err.Error())
	}
}

// Only the content of files is long: a tool that reads is not given megabytes to decode.
func TestLongArguments(t *testing.T) {
	set := New(openRoots(t, plant(t, fileTree{"a": "x\n"})), Options{})
	long := strings.Repeat("x", maxReadArguments)
	_, err := set.Call(t.Context(), "find_files", json.RawMessage(`{"glob":"`+long+`"}`))
	require.EqualError(t, err, "invalid arguments for find_files: the arguments have more than 1048576 bytes")
}

// A tool accepts what its published schema allows, and what a model may mean by it.
func TestArgumentsMatchTheSchema(t *testing.T) {
	h := serve(t, nil, Options{})
	tools := h.set.Tools()
	rapid.Check(t, func(t *rapid.T) {
		tool := rapid.SampledFrom(tools).Draw(t, "tool")
		value := rapid.SampledFrom([]any{"", "a", "2", "replace", "fail", "include", "leave_out", 0, 1,
			2.0, -1, 1.5, 20, 21, true, false, nil, []string{"a"}, []string{}, []any{1}, []any{
				args{"old_text": "a"}}, []any{args{"old_text": "a", "new_text": "b"}}, args{}})
		var known struct {
			Properties map[string]struct{ Type string }
			Required   []string
		}
		require.NoError(t, json.Unmarshal(tool.InputSchema, &known))
		names := []string{"unknown"}
		for name := range known.Properties {
			names = append(names, name, name, name)
		}
		arguments := make(args)
		for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 6).Draw(t, "names") {
			arguments[name] = value.Draw(t, name)
		}
		raw := encode(arguments)
		invalid := valid(t, h.schemas[tool.Name], raw)
		_, err := tool.Call(t.Context(), raw, Caller{})
		var wrong *argumentError
		for name, value := range arguments {
			if value == nil && !slices.Contains(known.Required, name) {
				delete(arguments, name)
			} else if value == "2" && known.Properties[name].Type == "integer" {
				arguments[name] = 2
			}
		}
		precise := valid(t, h.schemas[tool.Name], encode(arguments))
		require.Equal(t, precise != nil, errors.As(err, &wrong), "%s %s: %v, %v", tool.Name, raw,
			precise, err)
		require.True(t, invalid != nil || precise == nil)
	})
}

// FuzzDecode feeds any arguments to every tool.
func FuzzDecode(f *testing.F) {
	f.Add(`{"path":"a","offset":1,"limit":2.0}`)
	f.Add(`{"pattern":"\ud83d\ude00","context":1e0,"literal":true}`)
	f.Add(`{"path":"\ud800\\u","path":null}`)
	set := New(nil, Options{})
	f.Fuzz(func(t *testing.T, arguments string) {
		for _, tool := range set.Tools() {
			result, err := tool.Call(t.Context(), json.RawMessage(arguments), Caller{})
			require.Error(t, err)
			require.Zero(t, result)
			require.NotEmpty(t, err.Error())
		}
	})
}

// Arguments with the names of other agents are those of the tool, unless it has such an argument
// itself, or both are given.
func TestCanonical(t *testing.T) {
	all := map[string]Tool{}
	for _, tool := range New(nil, Options{}).Tools() {
		all[tool.Name] = tool
	}
	edit := New(nil, Options{Permit: permitAnything}).Tools()
	for _, tool := range edit {
		all[tool.Name] = tool
	}
	for _, test := range []struct{ tool, given, want string }{
		{"read_file", `{"file_path":"a","offset":2}`, `{"path":"a","offset":2}`},
		{"edit_file", `{"filePath":"a","old_string":"x","new_string":"y"}`, `{"path":"a","old_text":"x","new_text":"y"}`},
		{"edit_file", `{"path":"a","edits":[{"old_string":"x","new_string":"y"}]}`,
			`{"path":"a","edits":[{"old_text":"x","new_text":"y"}]}`},
		{"find_files", `{"pattern":"*.go"}`, `{"glob":"*.go"}`},
		{"search", `{"pattern":"x","include":"*.go"}`, `{"pattern":"x","glob":"*.go"}`},
		{"move_file", `{"source":"a","destination":"b"}`, `{"path":"a","to":"b"}`},
		{"read_file", `{"path":"a","file_path":"b"}`, `{"path":"a","file_path":"b"}`},
		{"read_file", `{"path":"a"}`, `{"path":"a"}`},
		{"read_file", `{"path":`, `{"path":`},
		{"read_file", `[]`, `[]`},
	} {
		require.Equal(t, test.want, string(all[test.tool].Canonical(json.RawMessage(test.given))), test.given)
	}
	require.NotEmpty(t, edit)
}
