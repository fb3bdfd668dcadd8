package access_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/access"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
)

// A client that takes ".." by the text must not be sent where the system would not go.
//
// Clauses A26, P4.
func TestDotDotAfterLink(t *testing.T) {
	top := dirtest.New(t)
	root := filepath.Join(top, "root")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "d", "e", "f"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "d", "out"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "d", "out", "secret"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "d", "e", "file"), nil, 0o600))
	if err := os.Symlink(filepath.Join("d", "e", "f"), filepath.Join(root, "l")); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	w := roottest.Open(t, root)
	read := func(path string) error {
		params := backend.Encode(map[string]string{"path": path})
		return access.CheckPaths(w, "fs/read_text_file", params)
	}
	require.Error(t, read(root+"/l/../../out/secret"), "by the text it is %s/out/secret", top)
	require.NoError(t, read(root+"/l/../file"), "inside by both")
	require.NoError(t, read(root+"/d/out/secret"))
	require.NoError(t, read(root+"/d/new"))
}
