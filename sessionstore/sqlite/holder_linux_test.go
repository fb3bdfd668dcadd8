package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/internal/test/storetest"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// holder locks the store for reading, as a program can that may only read, until its input ends.
func holder(_ context.Context, s *sqlite.Store, _ string) error {
	lock := unix.Flock_t{Type: unix.F_RDLCK, Start: 120, Len: 1}
	file, err := os.Open(filepath.Join(s.Dir(), "sessions.db-shm"))
	if err != nil {
		return err
	}
	defer file.Close()
	if err := unix.FcntlFlock(file.Fd(), unix.F_SETLK, &lock); err != nil {
		return err
	}
	fmt.Println("locked")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// The error about a locked store names the process that keeps it locked.
//
// Clause X8.
func TestLockHolderIsNamed(t *testing.T) {
	s := open(t, sqlite.Options{Dir: t.TempDir()}.WithLockTimeout())
	bystander := open(t, sqlite.Options{Dir: s.Dir()})
	lease := storetest.Create(t, s, "one")
	require.NoError(t, list(t, bystander), "it has locks that do no harm")

	cmd := process(t, "holder", s.Dir(), "")
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)

	err = s.Append(t.Context(), lease, storetest.Said("late"))
	var unavailable *sessionstore.UnavailableError
	require.ErrorAs(t, err, &unavailable)
	require.Contains(t, unavailable.Hint, fmt.Sprintf("(process %d) keeps it locked", cmd.Process.Pid))
	require.NoError(t, stdin.Close())
	require.NoError(t, cmd.Wait())
}
