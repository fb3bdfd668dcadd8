package proxy_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy"
)

// reopened is a second activation of a session that is active.
func (b *bench) reopened(cause backend.Cause, previous backend.Session, params string) (backend.Session, error) {
	s, _, err := b.runtime.Open(b.t.Context(), backend.Activation{
		Cause: cause, State: []byte(b.editor.state), Previous: previous, Params: backend.Raw(params),
		History: func(func(backend.Update, error) bool) {},
		Stop:    func(context.Context) error { return nil },
	}, host{b.editor})
	return s, err
}

const (
	able = "await initialize\n" +
		`send {"jsonrpc":"2.0","id":$initialize$,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"close":{}}}}}` + "\n"
	loaded = "await session/load\n" + "send " + `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"child-1","update":{"sessionUpdate":"_replayed"}}}` + "\n" +
		`send {"jsonrpc":"2.0","id":$session/load$,"result":{}}` + "\n"
	closes = "await session/close\n" + `send {"jsonrpc":"2.0","id":$session/close$,"result":{}}` + "\n"
)

func TestA12_AnActivationThatIsNotCommittedLeavesTheOneBefore(t *testing.T) {
	said := "send " + fmt.Sprintf(update, `"said"`)
	for name, c := range map[string]struct{ script, note string }{
		"loaded":        {able + opened + loaded, `host replay {"update":{"sessionUpdate":"_replayed"}}`},
		"taken over":    {plain + opened, ""},
		"load refused":  {able + opened + "await session/load\n" + `send {"jsonrpc":"2.0","id":$session/load$,"error":{"code":-32000,"message":"log in"}}` + "\n", ""},
		"loaded, twice": {able + opened + loaded + loaded, `host replay {"update":{"sessionUpdate":"_replayed"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			b := initialized(t, c.script+"await session/prompt\n"+said+answered+closes, proxy.Options{})
			first, _ := b.open()
			times := 1
			if name == "loaded, twice" {
				times = 2
			}
			for range times {
				second, err := b.reopened(backend.Load, first, `{"cwd":"/a","mcpServers":[]}`)
				if name == "load refused" {
					require.ErrorContains(t, err, "log in")
					continue
				}
				require.NoError(t, err)
				if c.note != "" {
					require.Equal(t, c.note, b.editor.next())
				}
				require.NoError(t, second.Close(t.Context()), "the commit failed")
			}
			_, err := b.prompt(first)
			require.NoError(t, err)
			require.Equal(t, `turn update {"update":"said"}`, b.editor.next())
			require.NoError(t, first.Close(t.Context()))
			closed := 0
			if c.script[:len(able)] == able {
				closed = 1
			}
			require.Len(t, b.received("session/close"), closed, "it was open in the child until the last left it")
		})
	}
}

func TestA12_AnActivationThatIsCommittedGoesOnWithTheChildsSession(t *testing.T) {
	b := initialized(t, able+opened+loaded+"await session/prompt\nsend "+fmt.Sprintf(update, `"said"`)+answered+closes, proxy.Options{})
	first, _ := b.open()
	second, err := b.reopened(backend.Load, first, `{"cwd":"/a","mcpServers":[]}`)
	require.NoError(t, err)
	require.Equal(t, `host replay {"update":{"sessionUpdate":"_replayed"}}`, b.editor.next())
	require.NoError(t, first.Close(t.Context()))
	_, err = b.prompt(second)
	require.NoError(t, err)
	require.Equal(t, `turn update {"update":"said"}`, b.editor.next())
	require.NoError(t, second.Close(t.Context()))
	require.Len(t, b.received("session/close"), 1)
}

func TestWhatOnlyALifecycleRequestCouldSayTakesANewSession(t *testing.T) {
	servers := func(list string) string { return `{"cwd":"/a","mcpServers":` + list + `}` }
	for name, c := range map[string]struct {
		before, now string
		made        int
	}{
		"nothing changed":         {servers(`[]`), servers(`[]`), 1},
		"nothing but its form":    {servers(`[]`), `{"cwd":"/a","mcpServers":null}`, 1},
		"other MCP servers":       {servers(`[]`), servers(`[{"name":"x","command":"x","args":[],"env":[]}]`), 2},
		"roots told in words":     {servers(`[]`), `{"cwd":"/a","mcpServers":[],"additionalDirectories":["/b"]}`, 1},
		"roots that are left out": {`{"cwd":"/a","mcpServers":[],"additionalDirectories":["/b"]}`, servers(`[]`), 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := initialized(t, plain+opened+"await session/new\n"+
				`send {"jsonrpc":"2.0","id":$session/new$,"result":{"sessionId":"child-2"}}`+"\n", proxy.Options{})
			first, _ := b.openWith(c.before)
			_, err := b.reopened(backend.Resume, first, c.now)
			require.NoError(t, err)
			require.Len(t, b.received("session/new"), c.made)
		})
	}
}
