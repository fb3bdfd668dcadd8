package process

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A command does not start without its network as if it had one.
//
// Clause X7.
func TestSocketsThatCannotBeServed(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	defer file.Close()
	ours, theirs, err := socketPair()
	require.NoError(t, err)
	defer ours.Close()
	helper, err := net.FileConn(theirs)
	require.NoError(t, err)
	require.NoError(t, theirs.Close())
	require.NoError(t, sendFiles(helper.(*net.UnixConn), []*os.File{file}))
	require.NoError(t, helper.(*net.UnixConn).CloseWrite()) // as if it had become the command
	defer helper.Close()
	require.Error(t, (&network{}).instruct(ours, order{}))
}
