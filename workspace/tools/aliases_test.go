package tools

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

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
