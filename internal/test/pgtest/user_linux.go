package pgtest

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// nobody is an unprivileged user and group.
const nobody = 65534

// ordinaryUser returns how the server is started, which refuses to run as root: as the owner of
// dir, who is not. It ends with the thread that starts it.
func ordinaryUser(t testing.TB, dir string) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT}
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(dir, nobody, nobody))
		attributes.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	return attributes
}
