package sessions

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

func TestImportedIDs(t *testing.T) {
	for id, plain := range map[string]bool{
		"sess_ABC": true, "0195-a_b": true, "last": false, "--all": false, "a\x1b[31m": false,
		"a/b": false, "é": false, strings.Repeat("a", 200): false,
	} {
		require.Equal(t, plain, isPlainID(id), "%q", id)
	}
}

// exported is a session as it is exported.
func exported(t *testing.T, dir string, lines ...string) string {
	t.Helper()
	path := filepath.ToSlash(dir)
	first := `{"sessionId":"sess_A","agent":"explore","cwd":"` + path + `","additionalDirectories":[],"title":"T"}`
	return strings.Join(append([]string{first}, lines...), "\n") + "\n"
}

const said = `{"update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"Hi"}}}
{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Hello"}}}`

// What is exported as JSON can be imported, again with another id, and is exported the same.
func TestImportAndExport(t *testing.T) {
	store, dir := newStore(t), dirtest.New(t)
	var first bytes.Buffer
	for n := range 2 {
		id, updates, err := Import{Name: "file", MaxLine: 1 << 20}.Store(t.Context(), store,
			strings.NewReader(exported(t, dir, said)))
		require.NoError(t, err)
		require.Equal(t, 2, updates)
		require.Equal(t, n == 0, id == "sess_A")
		one, err := store.Get(t.Context(), id)
		require.NoError(t, err)
		require.EqualValues(t, 1, one.Turns)
		var out bytes.Buffer
		format, err := FormatOf("", "a.json")
		require.NoError(t, err)
		require.NoError(t, format.Export(t.Context(), &out, store, one, ""))
		_, history, _ := bytes.Cut(out.Bytes(), []byte("\n"))
		if n == 0 {
			first.Write(history)
		}
		require.Equal(t, first.String(), string(history))
		require.Equal(t, 2, strings.Count(string(history), "\n"))

		file := filepath.Join(t.TempDir(), "a.md")
		format, err = FormatOf("", file)
		require.NoError(t, err)
		require.NoError(t, format.Export(t.Context(), &out, store, one, file))
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(text), "Hello")
		require.ErrorContains(t, format.Export(t.Context(), &out, store, one, file), "exists")
	}
	_, err := FormatOf("pdf", "")
	require.ErrorContains(t, err, "--format is md, html or json, not")
}

// What cannot be imported is refused with its line, and leaves nothing behind.
func TestRefusedImports(t *testing.T) {
	store, dir := newStore(t), dirtest.New(t)
	gone := exported(t, filepath.Join(dir, "gone"), said)
	i := Import{Name: "file", MaxLine: 1000}
	for text, want := range map[string]string{
		"":        "file, line 1: it is not a session",
		`{"a":1}`: "file, line 1: it is not a session",
		`{"sessionId":"s","agent":"other","cwd":"/"}`:     "file, line 1: its agent",
		`{"sessionId":"s","agent":"explore","cwd":"rel"}`: "file, line 1: ",
		exported(t, dir, said, "\n{}"):                    "file, line 5: ",
		exported(t, dir, strings.Repeat("x", 2000)):       "--max-line raises it",
		gone: "with --cwd and --dir",
	} {
		_, _, err := i.Store(t.Context(), store, strings.NewReader(text))
		require.ErrorContains(t, err, want)
	}
	page, err := store.List(t.Context(), sessionstore.Query{})
	require.NoError(t, err)
	require.Empty(t, page.Sessions)
	i.Roots, err = workspace.NewRoots(dir, nil)
	require.NoError(t, err)
	_, _, err = i.Store(t.Context(), store, strings.NewReader(gone))
	require.NoError(t, err)
}
