package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// writing lists the tools that change files.
var writing = []string{"write_file", "edit_file", "create_directory", "delete_file", "move_file"}

func TestToolDescriptions(t *testing.T) {
	h := serve(t, nil, Options{})
	var names []string
	for _, tool := range h.set.Tools() {
		names = append(names, tool.Name)
		require.NotEmpty(t, tool.Description)
		writes := slices.Contains(writing, tool.Name)
		require.Equal(t, !writes, tool.Annotations.ReadOnly, tool.Name)
		require.Equal(t, writes && tool.Name != "create_directory", tool.Annotations.Destructive,
			tool.Name)

		var in struct {
			Type                 string
			AdditionalProperties bool
			Required             []string
			Properties           map[string]struct{ Description, Type string }
		}
		in.AdditionalProperties = true
		strict := json.NewDecoder(bytes.NewReader(tool.InputSchema))
		if err := strict.Decode(&in); err != nil { // {"not": {}}, another way to say false
			require.ErrorContains(t, err, "AdditionalProperties", "additionalProperties")
		}
		require.Equal(t, "object", in.Type)
		for name, p := range in.Properties {
			require.NotEmpty(t, p.Description, "%s %s", tool.Name, name)
			require.Contains(t, []string{"string", "integer", "boolean", "array"}, p.Type)
			if strings.Contains(p.Description, "absolute or") || name == "path" {
				require.Contains(t, []string{"path", "paths", "to"}, name)
				require.Contains(t, p.Description, "absolute or in the working directory")
			}
		}
	}
	require.Equal(t, append([]string{"list_roots", "list_directory", "directory_tree", "file_info",
		"read_file", "read_files", "read_media", "find_files", "search", "find_skills"},
		writing...), names)
}

// Clause A30.
func TestToolsThatWriteNeedAPermit(t *testing.T) {
	set := New(openRoots(t, plant(t, nil)), Options{})
	for _, tool := range set.Tools() {
		require.True(t, tool.Annotations.ReadOnly, tool.Name)
	}
	for _, name := range append(writing, "nonsense", "") {
		_, err := set.Call(t.Context(), name, json.RawMessage(`{"path":"a","content":"x"}`))
		require.EqualError(t, err, fmt.Sprintf("unknown tool %q", name))
	}
}

func TestCallsFailWithoutAWorkspace(t *testing.T) {
	h := serve(t, nil, Options{})
	ws := openRoots(t, plant(t, fileTree{"a": "x\n"}))
	closed := serve(t, ws, Options{})
	require.NoError(t, ws.Close())
	for name, a := range map[string]args{
		"list_roots": {}, "list_directory": {}, "file_info": {"path": "a"}, "read_file": {"path": "a"}, "find_files": {}, "search": {"pattern": "x"}, "find_skills": {"query": "x"},
		"directory_tree": {}, "read_files": {"paths": []string{"a"}}, "read_media": {"path": "a"},
		"write_file": {"path": "a", "content": ""}, "edit_file": {"path": "a", "old_text": "x",
			"new_text": "y"},
		"create_directory": {"path": "new"}, "delete_file": {"path": "a"}, "move_file": {"path": "a", "to": "b"},
	} {
		require.ErrorIs(t, h.refused(name, a), workspace.ErrClosed)
		require.ErrorIs(t, closed.refused(name, a), workspace.ErrClosed, name)
	}
}

func TestCallReturnsTheCauseOfItsContext(t *testing.T) {
	h := serve(t, openRoots(t, plant(t, fileTree{"a": "x\n"})), Options{})
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for _, tool := range h.set.Tools() {
		_, err := tool.Call(ctx, json.RawMessage(`{"path":"a"}`), Caller{})
		require.ErrorIs(t, err, why, tool.Name)
	}
}

// Calls run concurrently with each other and with Close.
func TestConcurrentCalls(t *testing.T) {
	ws := openRoots(t, plant(t, fileTree{"a": "x\n", "d/b": "y\n", "image": gif}))
	h := serve(t, ws, Options{})
	var calls sync.WaitGroup
	for range 4 {
		for _, tool := range h.set.Tools() {
			if !tool.Annotations.ReadOnly {
				continue
			}
			arguments := map[string]string{"file_info": `{"path":"a"}`, "read_file": `{"path":"a"}`,
				"read_files": `{"paths":["a","d/b"]}`, "read_media": `{"path":"image"}`, "search": `{"pattern":"x"}`,
				"find_skills": `{"query":"x"}`}[tool.Name]
			calls.Go(func() {
				for range 20 {
					result, err := tool.Call(t.Context(), json.RawMessage(arguments), Caller{})
					if err != nil && !errors.Is(err, workspace.ErrClosed) || err == nil &&
						result.Text == "" {
						t.Errorf("%s: %v", tool.Name, err)
					}
				}
			})
		}
	}
	require.NoError(t, ws.Close())
	calls.Wait()
}
