package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// through connects a client to the adapter, with the proxy and a scripted agent behind it.
func through(t testing.TB, c process.Command, store sessionstore.Store, o client.Options) *client.Client {
	toAdapter, fromClient := io.Pipe()
	toClient, fromAdapter := io.Pipe()
	cl := client.New(toClient, fromClient, o)
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		err := acp.Serve(ctx, toAdapter, fromAdapter, acp.Options{
			Runtime: func() backend.Runtime { return proxy.New(c, proxy.Options{}) },
			Store:   store,
		})
		if err != nil {
			t.Error(err)
		}
		fromAdapter.Close()
	})
	serving.Go(func() { _ = cl.Serve(ctx) })
	t.Cleanup(func() {
		cancel()
		serving.Wait()
	})
	_, err := cl.Initialize(ctx)
	require.NoError(t, err)
	return cl
}

func someRoots(t testing.TB) workspace.Roots {
	roots, err := workspace.NewRoots(t.TempDir(), []string{t.TempDir(), t.TempDir()})
	require.NoError(t, err)
	return roots
}

func TestP6_BetweenClientAndChildOnlySessionIdsChange(t *testing.T) {
	c, _ := command(t, capable+opened+"await session/prompt\n"+
		`send {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"child-1","update":{"sessionUpdate":"_unknown",`+odd+`}}}`+"\n"+
		`send {"jsonrpc":"2.0","id":"a","method":"_x/ask","params":{"sessionId":"child-1",`+odd+`}}`+"\nawait reply \"a\"\n"+
		`send {"jsonrpc":"2.0","method":"_x/note","params":{"sessionId":"child-1",`+odd+`}}`+"\n"+answered+
		"await session/prompt\nsend "+fmt.Sprintf(update, `{"sessionUpdate":"_started"}`)+"await session/cancel\n"+
		`send {"jsonrpc":"2.0","id":$session/prompt$,"result":{"stopReason":"cancelled"}}`+"\n"+
		"await session/close\n"+`send {"jsonrpc":"2.0","id":$session/close$,"result":{}}`+"\n")
	seen := make(chan string, 10)
	cl := through(t, c, sessionstore.NewMemory(), client.Options{
		Updates:       func(_ context.Context, u client.Update) { seen <- string(u.Params) },
		Notifications: func(_ context.Context, method string, params json.RawMessage) { seen <- method + " " + string(params) },
		Requests: map[string]func(context.Context, json.RawMessage) (json.RawMessage, error){
			"_x/ask": func(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
				seen <- string(params)
				return json.RawMessage(`{` + odd + `}`), nil
			},
		},
	})
	roots := someRoots(t)
	s, err := cl.NewSession(t.Context(), client.Setup{Roots: roots})
	require.NoError(t, err)
	require.NotEqual(t, "child-1", s.ID)
	require.Contains(t, string(s.Result), `{"n":1.0}`)
	end, err := cl.Prompt(t.Context(), s.ID, sdk.TextBlock("hello"))
	require.NoError(t, err)
	require.Equal(t, `{"stopReason":"end_turn","_meta":{"n":1e0}}`, string(end.Result))
	id := `{"sessionId":"` + s.ID + `",`
	for _, want := range []string{
		id + `"update":{"sessionUpdate":"_unknown",` + odd + `}}`,
		id + odd + `}`,
		`_x/note ` + id + odd + `}`,
	} {
		got := <-seen
		for strings.Contains(got, `"session_info_update"`) { // the adapter's own: the session has a title now
			got = <-seen
		}
		require.Equal(t, want, got)
	}

	cancelled := cl.Conn().Call(t.Context(), "session/prompt", json.RawMessage(id+`"prompt":[]}`))
	for !strings.Contains(<-seen, `"_started"`) { // a cancel before that would not concern the child
	}
	require.NoError(t, cl.Cancel(t.Context(), s.ID))
	result, err := cancelled()
	require.NoError(t, err)
	require.Equal(t, `{"stopReason":"cancelled"}`, string(result))

	additional := roots.Additional()
	page, err := cl.ListSessions(t.Context(), client.Query{Cwd: roots.Cwd(), Additional: &additional})
	require.NoError(t, err)
	require.Equal(t, s.ID, page.Sessions[0].ID)
}

// What an update costs on its way through, and without us.
func BenchmarkUpdates(b *testing.B) {
	const updates = 10_000
	script := plain + opened + strings.Repeat("await session/prompt\nrepeat "+fmt.Sprint(updates)+
		` {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"child-1","update":{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"word $i "}}}}`+
		"\n"+answered, 3)
	turns := func(b *testing.B, connect func(client.Options) *client.Client) {
		var got int
		for b.Loop() {
			b.StopTimer()
			cl := connect(client.Options{Updates: func(context.Context, client.Update) { got++ }})
			s, err := cl.NewSession(b.Context(), client.Setup{Roots: oneRoot(b)})
			require.NoError(b, err)
			b.StartTimer()
			_, err = cl.Prompt(b.Context(), s.ID, sdk.TextBlock("go"))
			require.NoError(b, err)
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/updates, "us/update")
	}
	b.Run("direct", func(b *testing.B) {
		turns(b, func(o client.Options) *client.Client {
			c, _ := command(b, script)
			p, err := process.Start(b.Context(), c, process.Options{})
			require.NoError(b, err)
			cl := client.New(p.Stdout(), p.Stdin(), o)
			var serving sync.WaitGroup
			serving.Go(func() { _ = cl.Serve(context.Background()) })
			b.Cleanup(func() {
				_ = p.Stop(context.Background())
				serving.Wait()
			})
			_, err = cl.Initialize(b.Context())
			require.NoError(b, err)
			return cl
		})
	})
	b.Run("through", func(b *testing.B) {
		turns(b, func(o client.Options) *client.Client {
			c, _ := command(b, script)
			return through(b, c, sessionstore.NewMemory(), o)
		})
	})
}

func oneRoot(t testing.TB) workspace.Roots {
	roots, err := workspace.NewRoots(t.TempDir(), nil)
	require.NoError(t, err)
	return roots
}
