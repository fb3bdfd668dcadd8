package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
)

// Between the exchange of a draft with a file and the moment in which the file gets its name back,
// another program may write into the draft, or exchange it for its own file and write into that.
//
// Clause E1.
func TestPutBackKeepsWhatWasWrittenIntoTheDraft(t *testing.T) {
	at := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(at, name), []byte(text), 0o600))
	}
	dir, err := dirfd.Open(at)
	require.NoError(t, err)
	defer dir.Close()
	write("f", "draft")
	draft, err := dir.Lstat("f")
	require.NoError(t, err)
	write("f", "foreign, newer")
	write("old", "foreign, older")

	r := replacement{arrival: arrival{dir: dir, name: "f"}}
	require.ErrorContains(t, r.putBack("old", draft), "in the same directory")
	for name, want := range map[string]string{"f": "foreign, newer", "old": "foreign, older"} {
		text, err := os.ReadFile(filepath.Join(at, name))
		require.NoError(t, err)
		require.Equal(t, want, string(text), name)
	}
}
