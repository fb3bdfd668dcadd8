package acp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
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
		return checkPaths(w, "fs/read_text_file", backend.Raw(`{"path":`+string(quote(path))+`}`))
	}
	require.Error(t, read(root+"/l/../../out/secret"), "by the text it is %s/out/secret", top)
	require.NoError(t, read(root+"/l/../file"), "inside by both")
	require.NoError(t, read(root+"/d/out/secret"))
	require.NoError(t, read(root+"/d/new"))
}

// The table of methods says what is served, and what roles may send. Whatever else there is needs
// every right.
//
// Clauses A37, N4.
func TestMethods(t *testing.T) {
	rights := map[string]right{
		protocol.Initialize: sees, protocol.SessionList: sees, protocol.SessionLoad: sees,
		protocol.SessionResume: sees, protocol.SessionClose: sees, protocol.SessionStatus: sees,
		protocol.CancelRequest: sees, protocol.SessionCancel: answers,
	}
	for _, m := range protocol.Methods() {
		row := methodOf(m.Name)
		require.Equal(t, rights[m.Name], row.needs, m.Name)
		if m.Side != protocol.AgentSide {
			continue
		}
		served := row.accept != nil || m.Name == protocol.SessionCancel
		require.Equal(t, m.Handling == protocol.Served, served, m.Name)
		require.Equal(t, m.Handling == protocol.Served, m.Why == "", m.Name)
		if strings.HasPrefix(m.Name, protocol.SessionPrefix) {
			require.NotNil(t, row.shape, "%s has no row", m.Name)
		}
	}
	for _, audited := range []string{protocol.SessionDelete, protocol.SessionArchive,
		protocol.SessionUnarchive, protocol.SessionSetTitle, protocol.Authenticate,
		protocol.Logout} {
		require.NotEmpty(t, methodOf(audited).did, audited)
	}
	for _, need := range []right{acts, answers, sees} {
		require.True(t, RoleFull.has(need))
		require.True(t, Role("").has(need))
		require.Equal(t, need != acts, RoleAnswer.has(need))
		require.Equal(t, need == sees, RoleWatch.has(need))
	}
}
