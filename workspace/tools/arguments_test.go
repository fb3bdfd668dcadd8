package tools

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

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
		{"read_file", `{"path":"a","ofset":1}`, []string{
			`there is no argument "ofset" (available: limit, offset, path, tail)`}},
		{"read_file", `{"Path":"a"}`,
			[]string{`there is no argument "Path" (available: limit, offset, path, tail)`,
				"path is missing: it must be " + path}},
		{"read_file", `{"path":"a","path":"b"}`, []string{"path is given twice"}},
		{"read_file", `{"path":["a"],"offset":"1","limit":0}`,
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
		{"list_roots", `{"path":"a"}`,
			[]string{`there is no argument "path" (the tool takes none)`}},
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
	_, err := set.Call(t.Context(), "find_files", json.RawMessage(`{"glob":"\ud83d\ude00"}`))
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

// A tool accepts exactly the arguments that its published schema allows.
func TestArgumentsMatchTheSchema(t *testing.T) {
	h := serve(t, nil, Options{})
	tools := h.set.Tools()
	rapid.Check(t, func(t *rapid.T) {
		tool := rapid.SampledFrom(tools).Draw(t, "tool")
		value := rapid.SampledFrom([]any{"", "a", "replace", "fail", "include", "leave_out", 0, 1,
			2.0, -1, 1.5, 20, 21, true, false, nil, []string{"a"}, []string{}, []any{1}, []any{
				args{"old_text": "a"}}, []any{args{"old_text": "a", "new_text": "b"}}, args{}})
		var known struct{ Properties map[string]any }
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
		_, err := tool.Call(t.Context(), raw)
		var wrong *argumentError
		require.Equal(t, invalid != nil, errors.As(err, &wrong), "%s %s: %v, %v", tool.Name, raw,
			invalid, err)
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
			result, err := tool.Call(t.Context(), json.RawMessage(arguments))
			require.Error(t, err)
			require.Zero(t, result)
			require.NotEmpty(t, err.Error())
		}
	})
}
