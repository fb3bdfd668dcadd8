package workspace_test

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/workspace"
)

// A hard link needs no link to lead out: what is changed in place must be the file that was judged, not what has
// its name a moment later.
func TestC12_AHardLinkThatIsSwappedInIsNotChanged(t *testing.T) {
	g := newGroundsInMemory(t)
	secret := filepath.Join(g.out, "secret")
	require.NoError(t, os.Link(secret, filepath.Join(g.a, "hard")))
	before, err := os.Stat(secret)
	require.NoError(t, err)
	stop := swapping(t, filepath.Join(g.a, "f"), filepath.Join(g.a, "hard"))
	defer stop()
	inPlace := map[string]func(*workspace.Workspace, string) error{
		"Fs.Chtimes": func(ws *workspace.Workspace, path string) error {
			return ws.FsWith(readWrite).Chtimes(path, time.Unix(1, 0), time.Unix(1, 0))
		},
	}
	for _, name := range []string{"Append", "Truncate", "OpenFile", "OpenFile, create", "Fs.Chmod", "Fs.Create"} {
		inPlace[name] = changes[name]
	}
	for name, change := range inPlace {
		for range 3000 {
			_ = change(g.ws, "f")
		}
		text, err := os.ReadFile(secret)
		require.NoError(t, err)
		require.Equal(t, "SECRET", string(text), name)
		after, err := os.Stat(secret)
		require.NoError(t, err)
		require.Equal(t, before.Mode(), after.Mode(), name)
		require.Equal(t, before.ModTime(), after.ModTime(), name)
	}
}

// What is opened to be changed is what was looked at, and a FIFO was not.
func TestC6_AFifoThatIsSwappedInIsNotOpened(t *testing.T) {
	g := newGroundsInMemory(t)
	fifo := filepath.Join(g.a, "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	stop := swapping(t, filepath.Join(g.a, "f"), fifo)
	defer stop()
	opened := 0
	for range 5000 {
		f, err := g.ws.OpenFile("f", os.O_RDWR, workspace.OpenOptions{})
		if err != nil {
			continue
		}
		opened++
		info, err := f.Stat()
		require.NoError(t, f.Close())
		require.NoError(t, err)
		require.True(t, info.Mode().IsRegular(), info.Mode())
	}
	t.Logf("it was opened %d times", opened)
}

// A file that is made is a new one, whatever gets its name meanwhile.
func TestC12_AHardLinkThatComesFirstIsNotWritten(t *testing.T) {
	g := newGroundsInMemory(t)
	secret, name := filepath.Join(g.out, "secret"), filepath.Join(g.a, "new")
	var stopped atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stopped.Load() {
			_ = os.Link(secret, name)
			_ = os.Remove(name)
		}
	}()
	defer func() {
		stopped.Store(true)
		<-done
	}()
	for _, change := range []string{"OpenFile, create", "OpenFile, new", "Append", "Fs.Create", "WriteFile", "WriteFile, new", "Rename to"} {
		for range 1000 {
			_ = changes[change](g.ws, "new")
			_ = os.Remove(name)
		}
		text, err := os.ReadFile(secret)
		require.NoError(t, err)
		require.Equal(t, "SECRET", string(text), change)
	}
}
