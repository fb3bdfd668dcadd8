package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// args are the arguments of a call.
type args map[string]any

// host is a set of tools, and the host's side of it. Every call through it is checked against the schemas.
type host struct {
	tb      testing.TB
	set     *Set
	schemas map[string][2]*jsonschema.Schema // input and output
	asked   []Change
	// decide answers for the user; nil allows.
	decide func(Change) error
}

func serve(tb testing.TB, ws *workspace.Workspace, o Options) *host {
	tb.Helper()
	h := &host{tb: tb, schemas: make(map[string][2]*jsonschema.Schema)}
	o.Permit = func(_ context.Context, c Change) error {
		h.asked = append(h.asked, c)
		if h.decide != nil {
			return h.decide(c)
		}
		return nil
	}
	h.set = New(ws, o)
	for _, tool := range h.set.Tools() {
		h.schemas[tool.Name] = [2]*jsonschema.Schema{compile(tb, tool.InputSchema), compile(tb, tool.OutputSchema)}
	}
	return h
}

func compile(tb testing.TB, text json.RawMessage) *jsonschema.Schema {
	tb.Helper()
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(tb, err)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	require.NoError(tb, c.AddResource("mem:schema", parsed))
	s, err := c.Compile("mem:schema")
	require.NoError(tb, err)
	return s
}

func valid(tb require.TestingT, s *jsonschema.Schema, text json.RawMessage) error {
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(tb, err)
	return s.Validate(parsed)
}

// try calls a tool. Its arguments must be valid, and so must what it gives.
func (h *host) try(name string, a args) (Result, error) {
	h.tb.Helper()
	raw := encode(a)
	if a == nil {
		raw = nil
	} else {
		require.NoError(h.tb, valid(h.tb, h.schemas[name][0], raw), "%s %s", name, raw)
	}
	result, err := h.set.Call(h.tb.Context(), name, raw)
	if err != nil {
		require.Zero(h.tb, result)
		return result, err
	}
	require.NoError(h.tb, valid(h.tb, h.schemas[name][1], result.Structured), "%s %s", name, result.Structured)
	require.NotEmpty(h.tb, result.Text)
	return result, nil
}

// do calls a tool, which must succeed, and reads what it gives.
func do[T any](h *host, name string, a args) T {
	h.tb.Helper()
	result, err := h.try(name, a)
	require.NoError(h.tb, err, "%s %v", name, a)
	var out T
	require.NoError(h.tb, json.Unmarshal(result.Structured, &out))
	return out
}

// refused is why a tool does not do it.
func (h *host) refused(name string, a args) error {
	h.tb.Helper()
	result, err := h.try(name, a)
	require.Error(h.tb, err, "%s %v gives %s", name, a, result.Text)
	return err
}

func TestTheToolsSayWhatTheyAre(t *testing.T) {
	h := serve(t, nil, Options{})
	var names []string
	for _, tool := range h.set.Tools() {
		names = append(names, tool.Name)
		require.NotEmpty(t, tool.Title)
		require.NotEmpty(t, tool.Description)
		writes := slices.Contains([]string{"write_file", "edit_file"}, tool.Name)
		require.Equal(t, !writes, tool.Annotations.ReadOnly, tool.Name)
		require.Equal(t, writes, tool.Annotations.Destructive, tool.Name)
		same, ok := h.set.Tool(tool.Name)
		require.True(t, ok)
		require.Equal(t, tool.InputSchema, same.InputSchema)

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
			require.Contains(t, []string{"string", "integer", "boolean"}, p.Type)
			if strings.Contains(p.Description, "absolute, or relative") {
				require.Equal(t, "path", name)
			}
		}
	}
	require.Equal(t, []string{"list_roots", "list_directory", "file_info", "read_file", "find_files", "search", "write_file", "edit_file"}, names)
}

func TestA30_WithoutAPermitNothingIsOfferedThatWrites(t *testing.T) {
	set := New(openRoots(t, plant(t, nil)), Options{})
	for _, tool := range set.Tools() {
		require.True(t, tool.Annotations.ReadOnly, tool.Name)
	}
	for _, name := range []string{"write_file", "edit_file", "nonsense", ""} {
		_, err := set.Call(t.Context(), name, json.RawMessage(`{"path":"a","content":"x"}`))
		var unknown *UnknownToolError
		require.ErrorAs(t, err, &unknown)
		require.Equal(t, name, unknown.Name)
	}
}

func TestWithoutAWorkspaceEveryCallFails(t *testing.T) {
	h := serve(t, nil, Options{})
	ws := openRoots(t, plant(t, fileTree{"a": "x\n"}))
	closed := serve(t, ws, Options{})
	require.NoError(t, ws.Close())
	for name, a := range map[string]args{
		"list_roots": {}, "list_directory": {}, "file_info": {"path": "a"}, "read_file": {"path": "a"}, "find_files": {}, "search": {"pattern": "x"},
		"write_file": {"path": "a", "content": ""}, "edit_file": {"path": "a", "old_text": "x", "new_text": "y"},
	} {
		require.ErrorIs(t, h.refused(name, a), workspace.ErrClosed)
		require.ErrorIs(t, closed.refused(name, a), workspace.ErrClosed, name)
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	h := serve(t, openRoots(t, plant(t, fileTree{"a": "x\n"})), Options{})
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for _, tool := range h.set.Tools() {
		_, err := tool.Call(ctx, json.RawMessage(`{"path":"a"}`))
		require.ErrorIs(t, err, why, tool.Name)
	}
}

// Calls run at once, and beside the end of the workspace: each gives an answer, or says that it was closed.
func TestCallsRunAtOnce(t *testing.T) {
	ws := openRoots(t, plant(t, fileTree{"a": "x\n", "d/b": "y\n"}))
	h := serve(t, ws, Options{})
	var calls sync.WaitGroup
	for range 4 {
		for _, tool := range h.set.Tools() {
			if !tool.Annotations.ReadOnly {
				continue
			}
			arguments := map[string]string{"file_info": `{"path":"a"}`, "read_file": `{"path":"a"}`, "search": `{"pattern":"x"}`}[tool.Name]
			calls.Go(func() {
				for range 20 {
					result, err := tool.Call(t.Context(), json.RawMessage(arguments))
					if err != nil && !errors.Is(err, workspace.ErrClosed) || err == nil && result.Text == "" {
						t.Errorf("%s: %v", tool.Name, err)
					}
				}
			})
		}
	}
	require.NoError(t, ws.Close())
	calls.Wait()
}

func TestListRoots(t *testing.T) {
	top := plant(t, fileTree{"app/a": "", "lib/b": ""})
	symlink(t, filepath.Join(top, "lib"), filepath.Join(top, "spelled"))
	app, lib, spelled := filepath.Join(top, "app"), filepath.Join(top, "lib"), filepath.Join(top, "spelled")
	ws := openRoots(t, app, spelled)
	h := serve(t, ws, Options{})
	require.Equal(t, listedRoots{Roots: []listedRoot{
		{0, app, app, ws.Root(0).Real.URI(), "ok"}, {1, spelled, lib, ws.Root(1).Real.URI(), "ok"},
	}}, do[listedRoots](h, "list_roots", nil))
	require.NoError(t, os.Rename(lib, filepath.Join(top, "away")))
	got := do[listedRoots](h, "list_roots", args{})
	require.Equal(t, []string{"ok", "moved"}, []string{got.Roots[0].State, got.Roots[1].State})
}

func TestListDirectory(t *testing.T) {
	app := plant(t, fileTree{"b.txt": "12345", "a/x": "", "inner/y": ""})
	symlink(t, "b.txt", filepath.Join(app, "link"))
	inner := filepath.Join(app, "inner")
	h := serve(t, openRoots(t, app, inner), Options{})
	want := directoryList{Place: Place{app, app}, Entries: []directoryEntry{
		{"a", "directory", 0, ""}, {"b.txt", "file", 5, ""}, {"inner", "directory", 0, inner}, {"link", "link", 0, ""},
	}}
	require.Equal(t, want, do[directoryList](h, "list_directory", args{}))
	require.Equal(t, want, do[directoryList](h, "list_directory", args{"path": app}))
	require.Equal(t, Place{inner, inner}, do[directoryList](h, "list_directory", args{"path": "inner"}).Place)
	require.ErrorContains(t, h.refused("list_directory", args{"path": "b.txt"}), "not a directory")

	cut := do[directoryList](serve(t, openRoots(t, app), Options{MaxEntries: 2}), "list_directory", args{})
	require.Len(t, cut.Entries, 2)
	require.Equal(t, "b.txt", cut.Cut.After)
	require.Equal(t, int64(2), cut.Cut.Bound)
	cut = do[directoryList](serve(t, openRoots(t, app), Options{MaxBytes: 6}), "list_directory", args{})
	require.Len(t, cut.Entries, 2)
	require.Equal(t, "bytes", cut.Cut.Limit)
}

func TestFileInfo(t *testing.T) {
	app := plant(t, fileTree{"b.txt": "12345", "nul": "\x00", "d/x": ""})
	lib := plant(t, fileTree{"c": "x\n"})
	symlink(t, filepath.Join(lib, "c"), filepath.Join(app, "link"))
	h := serve(t, openRoots(t, app, lib), Options{})
	got := do[fileInfo](h, "file_info", args{"path": "b.txt"})
	require.Equal(t, Place{filepath.Join(app, "b.txt"), app}, got.Place)
	require.Equal(t, []any{"file", int64(5), "", "yes"}, []any{got.Type, got.Size, got.Link, got.Text})
	require.Equal(t, "no", do[fileInfo](h, "file_info", args{"path": "nul"}).Text)
	got = do[fileInfo](h, "file_info", args{"path": "link"})
	require.Equal(t, Place{filepath.Join(lib, "c"), lib}, got.Place)
	require.Equal(t, filepath.Join(lib, "c"), got.Link)
	got = do[fileInfo](h, "file_info", args{"path": "d"})
	require.Equal(t, []any{"directory", ""}, []any{got.Type, got.Text})
}
