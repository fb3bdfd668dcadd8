package tools

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, dirtest.InMemory()) }

var encode = strictjson.Encode

// fileTree maps slash-separated paths to contents.
type fileTree = dirtest.Tree

// plant creates a directory with files and returns its real path.
func plant(tb testing.TB, files fileTree) string {
	tb.Helper()
	return files.Plant(tb)
}

// planted returns the files below dir.
func planted(tb testing.TB, dir string) fileTree {
	tb.Helper()
	return dirtest.Planted(tb, dir)
}

func symlink(tb testing.TB, target, path string) {
	tb.Helper()
	require.NoError(tb, os.MkdirAll(filepath.Dir(path), 0o700))
	if err := os.Symlink(target, path); err != nil {
		tb.Skip("no links here:", err)
	}
}

// openRoots opens a workspace of directories until the test ends.
func openRoots(tb testing.TB, cwd string, additional ...string) *workspace.Workspace {
	tb.Helper()
	return roottest.Open(tb, cwd, additional...)
}

// args are the arguments of a call.
type args map[string]any

// host holds a set of tools and records permission requests. It validates arguments with the
// schemas.
type host struct {
	tb      testing.TB
	set     *Set
	schemas map[string]*jsonschema.Resolved
	asked   []Change
	// decide answers for the user; nil allows.
	decide func(Change) error
}

func serve(tb testing.TB, ws *workspace.Workspace, o Options) *host {
	tb.Helper()
	h := &host{tb: tb, schemas: make(map[string]*jsonschema.Resolved)}
	o.Permit = func(_ context.Context, c Change) error {
		h.asked = append(h.asked, c)
		if h.decide != nil {
			return h.decide(c)
		}
		return nil
	}
	h.set = New(ws, o)
	for _, tool := range h.set.Tools() {
		h.schemas[tool.Name] = compile(tb, tool.InputSchema)
	}
	return h
}

// servePlanted serves a new directory with files, whose real path it returns.
func servePlanted(tb testing.TB, files fileTree) (app string, h *host) {
	tb.Helper()
	app = plant(tb, files)
	return app, serve(tb, openRoots(tb, app), Options{})
}

func compile(tb testing.TB, text json.RawMessage) *jsonschema.Resolved {
	tb.Helper()
	var s jsonschema.Schema
	require.NoError(tb, json.Unmarshal(text, &s))
	resolved, err := s.Resolve(nil)
	require.NoError(tb, err)
	return resolved
}

func valid(tb require.TestingT, s *jsonschema.Resolved, text json.RawMessage) error {
	var parsed any
	require.NoError(tb, json.Unmarshal(text, &parsed))
	return s.Validate(parsed)
}

// encode returns the arguments of a call, which must match the schema.
func (h *host) encode(name string, a args) json.RawMessage {
	h.tb.Helper()
	if a == nil {
		return nil
	}
	raw := encode(a)
	require.NoError(h.tb, valid(h.tb, h.schemas[name], raw), "%s %s", name, raw)
	return raw
}

// service returns what serves a call.
func (h *host) service() *service {
	return call{set: h.set}.service(h.tb.Context())
}

// try calls a tool.
func (h *host) try(name string, a args) (Result, error) {
	h.tb.Helper()
	result, err := h.set.Call(h.tb.Context(), name, h.encode(name, a))
	if err != nil {
		require.Zero(h.tb, result)
		return result, err
	}
	require.NotEmpty(h.tb, result.Text)
	return result, nil
}

// said calls a tool, which must succeed, and returns its text.
func (h *host) said(name string, a args) string {
	h.tb.Helper()
	result, err := h.try(name, a)
	require.NoError(h.tb, err, "%s %v", name, a)
	return result.Text
}

// read calls read_file, which must succeed, and returns what it has read.
func (h *host) read(a args) fileText {
	h.tb.Helper()
	var in readFileInput
	_, err := newSchema[readFileInput]().decode("read_file", h.encode("read_file", a), &in)
	require.NoError(h.tb, err)
	read, err := h.service().read(h.tb.Context(), in)
	require.NoError(h.tb, err, a)
	return read
}

// found calls a search, which must succeed, and returns where it found something.
func (h *host) found(name string, a args) []FoundAt {
	h.tb.Helper()
	result, err := h.try(name, a)
	require.NoError(h.tb, err, "%s %v", name, a)
	return result.Found
}

// refused calls a tool, which must fail, and returns the error.
func (h *host) refused(name string, a args) error {
	h.tb.Helper()
	result, err := h.try(name, a)
	require.Error(h.tb, err, "%s %v gives %s", name, a, result.Text)
	return err
}
