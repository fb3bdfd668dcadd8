package acp_test

import (
	goruntime "runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// ends are the ways in which a session that is active ends in this process.
var ends = map[string]func(c *client, id, cwd string, store sessionstore.Store){
	"A28/close":  func(c *client, id, _ string, _ sessionstore.Store) { c.call("session/close", idParams(id)) },
	"A28/delete": func(c *client, id, _ string, _ sessionstore.Store) { c.call("session/delete", idParams(id)) },
	"A12/a load": func(c *client, id, cwd string, _ sessionstore.Store) { c.call("session/load", rootsParams(id, cwd)) },
	"S3/another process": func(c *client, id, cwd string, store sessionstore.Store) {
		newer := connect(c.t, acp.Options{Store: store})
		newer.initialize()
		newer.call("session/load", rootsParams(id, cwd))
		require.NotNil(c.t, c.try("session/prompt", promptParams(id, "say x")).Error)
	},
}

func TestA28_ASessionThatEndedHoldsNoRoots(t *testing.T) {
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			r, store := &scripted{}, sessionstore.NewMemory()
			c := connect(t, acp.Options{Store: store, Backend: r.serve})
			hosts := r.hosts()
			c.initialize()
			a := folder(t)
			id := c.open(a, folder(t))
			w := (<-hosts).Workspace()
			_, err := w.Stat(a)
			require.NoError(t, err)
			end(c, id, a, store)
			require.Eventually(t, func() bool {
				_, err = w.Stat(a)
				return err != nil
			}, patience, time.Millisecond)
			require.ErrorIs(t, err, workspace.ErrClosed)
		})
	}
}

// A session's memory is what its runtime was given and what refers to that.
func TestA28_ASessionThatEndedHoldsNoMemory(t *testing.T) {
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			store, opened := sessionstore.NewMemory(), make(chan weak.Pointer[workspace.Workspace], 10)
			r := &scripted{opened: func(_ backend.Activation, h backend.Host) { opened <- weak.Make(h.Workspace()) }}
			c := connect(t, acp.Options{Store: store, Backend: r.serve})
			c.initialize()
			a := folder(t)
			id := c.open(a)
			held := <-opened
			c.texts(id, "say one")
			end(c, id, a, store)
			require.Eventually(t, func() bool {
				goruntime.GC()
				return held.Value() == nil
			}, patience, time.Millisecond)
		})
	}
}
