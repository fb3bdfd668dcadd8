package acp_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// However a session ends, its directories are let go of: what it opened cannot be used any more.
func TestTheEndOfASessionFreesItsRoots(t *testing.T) {
	for name, end := range map[string]func(c, newer *client, id, cwd string){
		"A28/close":          func(c, _ *client, id, _ string) { c.call("session/close", idParams(id)) },
		"A28/delete":         func(c, _ *client, id, _ string) { c.call("session/delete", idParams(id)) },
		"A12/a load":         func(c, _ *client, id, cwd string) { c.call("session/load", rootsParams(id, cwd)) },
		"W9/the client left": func(c, _ *client, _, _ string) { c.leave() },
		"S3/another process": func(c, newer *client, id, cwd string) {
			newer.call("session/load", rootsParams(id, cwd))
			require.Equal(c.t, "fenced", c.try("session/prompt", promptParams(id, "say lost")).reason(c.t))
		},
		"S3/deleted elsewhere": func(c, newer *client, id, _ string) {
			newer.call("session/delete", idParams(id))
			require.Equal(c.t, "not_found", c.try("session/prompt", promptParams(id, "say lost")).reason(c.t))
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, r := sessionstore.NewMemory(), &scripted{}
			var opened []*workspace.Workspace
			r.opened = func(_ backend.Activation, h backend.Host) { opened = append(opened, h.Workspace()) }
			c := connect(t, acp.Options{Store: store, Backend: func() backend.Backend { return r }})
			newer := connect(t, acp.Options{Store: store})
			c.initialize()
			newer.initialize()
			a := folder(t)
			id := c.open(a, folder(t))
			_, err := opened[0].Stat(a)
			require.NoError(t, err)
			end(c, newer, id, a)
			require.Eventually(t, func() bool {
				_, err := opened[0].Stat(a)
				return errors.Is(err, workspace.ErrClosed)
			}, patience, time.Millisecond)
		})
	}
}
