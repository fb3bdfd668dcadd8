package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// quoted returns a path as a JSON string.
func quoted(path string) string {
	text, err := json.Marshal(path)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// newParams returns the params of a session/new; additional is raw JSON, "" to omit it.
func newParams(cwd, additional string) json.RawMessage {
	if additional != "" {
		additional = `,"additionalDirectories":` + additional
	}
	return json.RawMessage(`{"cwd":` + cwd + `,"mcpServers":[]` + additional + `}`)
}

// refused sends a session/new that must fail and checks that it had no effect.
func (a *agent) refused(t *testing.T, params json.RawMessage, want ...string) {
	t.Helper()
	m := a.try("session/new", params)
	var got []string
	for _, v := range violations(t, m) {
		at := v.Field
		if v.Index != nil {
			at = fmt.Sprintf("%s[%d]", v.Field, *v.Index)
		}
		got = append(got, at+" "+v.Reason)
	}
	require.Equal(t, invalidParams, m.Error.Code)
	require.Equal(t, want, got, m.Raw)
	require.Contains(t, m.Error.Message, strings.SplitN(strings.Fields(want[0])[0], "[", 2)[0], "the message names the field")
	require.Empty(t, a.list(nil), "nothing was created")
}

// Other agents accept some of these values and drop others.
//
// Clauses A3, A4, A5, A6.
func TestInvalidDirectories(t *testing.T) {
	t.Parallel()
	cwd := folder(t, "file", "no directory")
	at := func(name string) string { return quoted(filepath.Join(cwd, name)) }
	const field = "additionalDirectories"
	cases := []struct {
		name, value string
		want        []string
	}{
		{"A3/null", `null`, []string{field + " null"}},
		{"A3/a string", `"x"`, []string{field + " type"}},
		{"A3/an object", `{}`, []string{field + " type"}},
		{"A3/a number", `1`, []string{field + " type"}},
		{"A3/true", `true`, []string{field + " type"}},
		{"A3/a null entry", `[null]`, []string{field + "[0] null"}},
		{"A3/a number entry", `[1]`, []string{field + "[0] type"}},
		{"A3/a list as entry", `[[]]`, []string{field + "[0] type"}},
		{"A4/an empty entry", `[""]`, []string{field + "[0] empty"}},
		{"A4/a relative entry", `["rel"]`, []string{field + "[0] relative"}},
		{"A4/a dot", `["."]`, []string{field + "[0] relative"}},
		{"A4/a home directory", `["~/x"]`, []string{field + "[0] relative"}},
		{"A4/a URI", `["file:///tmp"]`, []string{field + "[0] relative"}},
		{"A4/a NUL character", `["/x\u0000y"]`, []string{field + "[0] nul"}},
		{"A4/a lone surrogate", `["/x\ud800"]`, []string{field + "[0] encoding"}},
		{"A5/every violation of the first stage", `[null,"","rel",` + at("") + `,7]`, []string{
			field + "[0] null", field + "[1] empty", field + "[2] relative", field + "[4] type",
		}},
		{"A5/syntax comes before existence", `[` + at("missing") + `,"rel"]`, []string{field + "[1] relative"}},
		{"A5/every violation on disk", `[` + at("missing") + `,` + at("") + `,` + at("file") + `]`, []string{
			field + "[0] missing", field + "[2] not_directory",
		}},
		{"A6/a missing directory", `["/does/not/exist"]`, []string{field + "[0] missing"}},
		{"A6/a missing directory beside a good one", `[` + quoted(folder(t)) + `,` + at("missing") + `]`, []string{field + "[1] missing"}},
		{"A6/a file", `[` + at("file") + `]`, []string{field + "[0] not_directory"}},
	}
	if runtime.GOOS != "windows" {
		cases = append(cases, struct {
			name, value string
			want        []string
		}{"A4/a path of another platform", `["C:\\x"]`, []string{field + "[0] relative"}})
	}
	a := start(t).initialize()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { a.refused(t, newParams(quoted(cwd), c.value), c.want...) })
	}
}

// Clause A4.
func TestInvalidCwd(t *testing.T) {
	t.Parallel()
	dir := folder(t, "file", "no directory")
	a := start(t).initialize()
	for _, c := range []struct{ name, value, want string }{
		{"A4/null", `null`, "cwd null"},
		{"A4/a number", `7`, "cwd type"},
		{"A4/empty", `""`, "cwd empty"},
		{"A4/relative", `"rel"`, "cwd relative"},
		{"A4/NUL", `"/x\u0000"`, "cwd nul"},
		{"A4/surrogate", `"/\udc00"`, "cwd encoding"},
		{"A6/missing", quoted(filepath.Join(dir, "missing")), "cwd missing"},
		{"A6/file", quoted(filepath.Join(dir, "file")), "cwd not_directory"},
	} {
		t.Run(c.name, func(t *testing.T) { a.refused(t, newParams(c.value, ""), c.want) })
	}
	t.Run("A4/absent", func(t *testing.T) { a.refused(t, json.RawMessage(`{"mcpServers":[]}`), "cwd required") })
	t.Run("A5/cwd and directories are reported together", func(t *testing.T) {
		a.refused(t, newParams(`"rel"`, `[""]`), "cwd relative", "additionalDirectories[0] empty")
	})
}

// Clause A6.
func TestTooManyRoots(t *testing.T) {
	t.Parallel()
	cwd := folder(t)
	directories := func(n int) []string {
		var all []string
		for i := range n {
			dir := filepath.Join(cwd, fmt.Sprint(i))
			require.NoError(t, os.MkdirAll(dir, 0o755))
			all = append(all, dir)
		}
		return all
	}
	a := start(t).initialize()
	m := a.try("session/new", map[string]any{"cwd": cwd, "mcpServers": []any{}, "additionalDirectories": directories(64)})
	found := violations(t, m)
	require.Equal(t, invalidParams, m.Error.Code)
	require.Len(t, found, 1, m.Raw)
	require.Equal(t, "too_many", found[0].Reason)
	require.Equal(t, "additionalDirectories", found[0].Field)
	require.Contains(t, m.Error.Message, "64")
	require.Empty(t, a.list(nil))
	a.open(cwd, directories(63)...)
}

// Clause A6.
func TestUnreadableRoot(t *testing.T) {
	t.Parallel()
	if os.Getuid() <= 0 {
		t.Skip("root can read everything, and Windows has no modes; package workspace tests this as an ordinary user")
	}
	cwd := folder(t)
	shut := filepath.Join(cwd, "shut")
	require.NoError(t, os.Mkdir(shut, 0))
	start(t).initialize().refused(t, newParams(quoted(cwd), `[`+quoted(shut)+`]`), "additionalDirectories[0] unreadable")
}

// Clauses A7, A8, A9, A15.
func TestNormalisedDirectories(t *testing.T) {
	t.Parallel()
	cwd := folder(t, "nested/deep/file", "")
	other := folder(t, "lib/file", "")
	link := filepath.Join(folder(t), "link")
	require.NoError(t, os.Symlink(other, link))
	join := func(parts ...string) string { return strings.Join(parts, string(filepath.Separator)) }
	none := []string{}
	a := start(t).initialize()
	for _, c := range []struct {
		name        string
		given, want []string
	}{
		{"A9/no field", nil, none},
		{"A9/an empty list", none, none},
		{"A9/in order", []string{other, join(cwd, "nested")}, []string{other, join(cwd, "nested")}},
		{"A7/duplicates", []string{other, join(cwd, "nested"), other}, []string{other, join(cwd, "nested")}},
		{"A7/equal to cwd", []string{cwd, other}, []string{other}},
		{"A7/only cwd", []string{cwd}, none},
		{"A7/nested and overlapping are kept", []string{join(cwd, "nested", "deep"), join(cwd, "nested"), filepath.Dir(cwd)},
			[]string{join(cwd, "nested", "deep"), join(cwd, "nested"), filepath.Dir(cwd)}},
		{"A7/two spellings of a directory are kept", []string{link, other}, []string{link, other}},
		{"A8/dots and separators", []string{join(other, ".", "lib", ""), join(other, "", "", "lib")}, []string{join(other, "lib")}},
		{"A8/a spelling of cwd", []string{join(cwd, ".", "")}, none},
		{"A8/dot-dot is kept", []string{join(other, "lib", "..")}, []string{join(other, "lib", "..")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := a.open(cwd, c.given...)
			require.Contains(t, a.list(nil), listed{SessionID: id, Cwd: cwd, AdditionalDirectories: c.want})
		})
	}
}
