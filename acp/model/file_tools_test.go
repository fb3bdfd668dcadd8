package model

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

// readBuffer answers fs/read_text_file. It knows only what is in the buffers.
func (e *editor) readBuffer(
	_ context.Context, r sdk.ReadTextFileRequest,
) (sdk.ReadTextFileResponse, error) {
	text, ok := e.setup.buffers.Load(r.Path)
	if !ok {
		return sdk.ReadTextFileResponse{}, errors.New("not open")
	}
	return sdk.ReadTextFileResponse{Content: text.(string)}, nil
}

// writeBuffer answers fs/write_text_file: it changes the buffer and saves it.
func (e *editor) writeBuffer(
	_ context.Context, r sdk.WriteTextFileRequest,
) (sdk.WriteTextFileResponse, error) {
	if _, ok := e.setup.buffers.Swap(r.Path, r.Content); !ok {
		return sdk.WriteTextFileResponse{}, errors.New("not open")
	}
	return sdk.WriteTextFileResponse{}, os.WriteFile(r.Path, []byte(r.Content), 0o600)
}

// Clauses A26, C13.
func TestUnsavedChanges(t *testing.T) {
	outside, root := dirtest.New(t, "x", "outside\n"), dirtest.New(t, "a", "one\n", "b", "closed\n")
	a := filepath.Join(root, "a")
	require.NoError(t, os.Symlink(filepath.Join(outside, "x"), filepath.Join(root, "link")))
	buffers := &sync.Map{}
	buffers.Store(a, "typed\n")
	buffers.Store(filepath.Join(root, "link"), "stolen\n")
	buffers.Store(filepath.Join(outside, "x"), "stolen\n")
	e := open(t, setup{roots: []string{root}, buffers: buffers})
	e.answer(allowOnce)

	r := e.prompt("Edit.", modelserver.Read("a"), modelserver.Edit("a", "typed", "changed"),
		modelserver.Edit("b", "closed", "edited"), modelserver.Read("link"))
	results := e.results()
	require.Contains(t, results[0], "where changes are not saved\ntyped\n")
	require.Contains(t, string(r.asked[0].Call.Content), `"oldText":"typed\n"`)
	require.Equal(t, "changed\n", read(t, a))
	require.Equal(t, "edited\n", read(t, filepath.Join(root, "b")))
	require.Contains(t, results[3], "outside")
	require.NotContains(t, results[3], "stolen")

	buffers.Store(a, "typed\n")
	e.onAsk = func(context.Context, question) decision {
		buffers.Store(a, "typed more\n")
		return allowOnce
	}
	r = e.prompt("Edit.", modelserver.Edit("a", "typed", "changed"))
	require.Len(t, r.asked, 2, "again, because the user has typed on the line")
	require.Contains(t, string(r.asked[1].Call.Content), `"oldText":"typed more\n"`)
	require.Equal(t, "changed more\n", read(t, a))
}

// With a sandbox the model reads and changes what is on the disk: a command of its own could let
// the path lead elsewhere while the editor opens it.
//
// Clause X8.
func TestUnsavedChangesWithASandbox(t *testing.T) {
	root := dirtest.New(t, "a", "one\n")
	a := filepath.Join(root, "a")
	buffers := &sync.Map{}
	buffers.Store(a, "typed\n")
	settings := sandbox.Settings{Mode: sandbox.Write}
	e := open(t, setup{roots: []string{root}, buffers: buffers,
		options: Options{Sandbox: func(string) sandbox.Settings { return settings }}})
	e.answer(allowOnce)

	e.prompt("Edit.", modelserver.Read("a"), modelserver.Edit("a", "one", "two"))
	require.NotContains(t, e.results()[0], "typed")
	require.Equal(t, "two\n", read(t, a))
	text, _ := buffers.Load(a)
	require.Equal(t, "typed\n", text)
}
