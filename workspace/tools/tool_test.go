package tools

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestToolsDescribeTheirCalls(t *testing.T) {
	permit := func(context.Context, Change) error { return nil }
	described := map[string]struct {
		kind      Kind
		arguments string
		title     string
		empty     string // the title without arguments
		holdsFile bool
	}{
		"list_roots":     {KindRead, `{}`, "List the folders", "List the folders", false},
		"list_directory": {KindRead, `{"path":"a"}`, "List a", "List the working directory", false},
		"directory_tree": {KindRead, `{"path":"a"}`, "Show the tree of a",
			"Show the tree of the folders", false},
		"file_info":  {KindRead, `{"path":"a"}`, "Look up a", "Look up a file", false},
		"read_file":  {KindRead, `{"path":"a","limit":"x"}`, "Read a", "Read a file", false},
		"read_files": {KindRead, `{"paths":["a","b"]}`, "Read a, b", "Read files", false},
		"read_media": {KindRead, `{"path":"a\nb"}`, `Read "a\nb"`, "Read a file", true},
		"find_files": {KindSearch, `{"glob":"*.go","path":"a"}`, "Find *.go in a", "Find files",
			false},
		"search": {KindSearch, `{"pattern":"x","path":"a"}`, `Search for "x" in a`,
			`Search for ""`, true},
		"find_skills": {KindSearch, `{"query":"x"}`, `Find skills for "x"`, `Find skills for ""`,
			false},
		"write_file": {KindEdit, `{"path":"a"}`, "Write a", "Write a file", true},
		"edit_file":  {KindEdit, `{"path":"a"}`, "Edit a", "Edit a file", true},
		"create_directory": {KindEdit, `{"path":"a"}`, "Create directory a", "Create directory …",
			false},
		"delete_file": {KindDelete, `{"path":"a"}`, "Delete a", "Delete a file", true},
		"move_file":   {KindMove, `{"path":"a","to":"b"}`, "Move a to b", "Move a file to …", false},
	}
	all := New(nil, Options{Permit: permit}).Tools()
	require.Len(t, all, len(described))
	for _, tool := range all {
		want := described[tool.Name]
		require.Equal(t, want.kind, tool.Kind, tool.Name)
		require.Equal(t, want.title, tool.Title(json.RawMessage(want.arguments)), tool.Name)
		for _, incomplete := range []string{"", "{", "[]", "{}", `{"path":1}`} {
			require.Equal(t, want.empty, tool.Title(json.RawMessage(incomplete)), tool.Name)
		}
		require.Equal(t, want.holdsFile, tool.HoldsFile, tool.Name)
	}
	require.Equal(t, "remote", Tool{Name: "remote"}.Title(nil))
}

func TestTitlesAreBounded(t *testing.T) {
	arguments := json.RawMessage(`{"path":"` + strings.Repeat("a", 1<<20) + `"}`)
	for _, tool := range New(nil, Options{}).Tools() {
		require.Less(t, len(tool.Title(arguments)), 300, tool.Name)
	}
}

func TestPlacesOfACall(t *testing.T) {
	root := plant(t, fileTree{"a.txt": "x\n", "dir/b.txt": "y\n"})
	h := serve(t, openRoots(t, root), Options{})
	places := func(name, arguments string) []string {
		var paths []string
		for _, tool := range h.set.Tools() {
			if tool.Name == name {
				for _, p := range tool.Places(h.set.ws, json.RawMessage(arguments)) {
					require.Equal(t, 3, p.Line)
					paths = append(paths, p.Ref.Path())
				}
			}
		}
		return paths
	}
	require.Equal(t, []string{filepath.Join(root, "a.txt"), filepath.Join(root, "dir", "b.txt")},
		places("read_files", `{"paths":["a.txt","missing","/","dir/b.txt"],"offset":3}`))
	require.Empty(t, places("read_file", `{"path":1}`))
	require.Empty(t, Tool{Name: "remote"}.Places(h.set.ws, json.RawMessage(`{"path":"a.txt"}`)))
}

func TestACallCarriesItsPermit(t *testing.T) {
	rejected, made := errors.New("rejected"), 0
	reject := func(context.Context, Change) error { return rejected }
	for _, tool := range New(openRoots(t, plant(t, nil)), Options{Permit: reject}).Tools() {
		if tool.Name != "write_file" {
			continue
		}
		arguments := json.RawMessage(`{"path":"new.txt","content":"x"}`)
		allow := func(context.Context, Change) error { return nil }
		_, err := tool.Call(t.Context(), arguments,
			Caller{Permit: allow, Made: func(Change) { made++ }})
		require.NoError(t, err)
		_, err = tool.Call(t.Context(), json.RawMessage(`{"path":"other.txt","content":"x"}`), Caller{})
		require.ErrorIs(t, err, rejected, "the tool of the set keeps its own permit")
	}
	require.Equal(t, 1, made)
}
