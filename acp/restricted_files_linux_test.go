package acp_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
)

// The folder of a subagent is exchanged for a link out of the session while it asks for a file in
// it.
//
// Clause X8.
func TestExchangedFolderOfARestrictedSubagent(t *testing.T) {
	root, out := dirtest.New(t, "d/x", "inside"), dirtest.New(t, "x", "s3cret")
	d, l := filepath.Join(root, "d"), filepath.Join(root, "l")
	require.NoError(t, os.Symlink(out, l))
	c := connect(t, acp.Options{Backend: using(&family{scripted: scripted{restricted: true}})})
	c.declaring(`{"subagents":{},"fs":{"readTextFile":true,"writeTextFile":true}}`)
	id := c.open(root)

	end := make(chan struct{})
	var exchanging sync.WaitGroup
	exchanging.Go(func() {
		for {
			select {
			case <-end:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, d, unix.AT_FDCWD, l, unix.RENAME_EXCHANGE)
			}
		}
	})
	served := 0
	for i := range 300 {
		method := []string{"read", "write"}[i%2]
		got := c.texts(id, "ask "+d+" fs/"+method+"_text_file "+
			encode(map[string]string{"path": filepath.Join(d, "x"), "content": "inside"}))[0]
		require.NotContains(t, got, "s3cret")
		if got == `{"content":"inside"}` || got == "{}" {
			served++
		}
	}
	close(end)
	exchanging.Wait()
	require.Positive(t, served)
	text, err := os.ReadFile(filepath.Join(out, "x"))
	require.NoError(t, err)
	require.Equal(t, "s3cret", string(text))
}
