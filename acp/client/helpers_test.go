package client_test

import (
	"context"
	"encoding/json"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// agent is the other side: it notes what it is sent, and answers by method.
type agent struct {
	t       *testing.T
	conn    *jsonrpc.Conn
	answers map[string]func(params string) (string, error)

	mu   sync.Mutex
	sent []string // "method params"
}

const (
	bare = `{"protocolVersion":1,"agentCapabilities":{}}`
	full = `{"protocolVersion":1,"agentInfo":{"name":"fake","title":"Fake"},` +
		`"agentCapabilities":{"loadSession":true,` +
		`"promptCapabilities":{"image":true},"mcpCapabilities":{"http":true},` +
		`"sessionCapabilities":{"additionalDirectories":{},"close":{},"delete":{},"fork":{},` +
		`"list":{},"resume":{"_meta":null}}},"x":1.0}`
)

// connect returns a client and the agent that it is connected to, which answers initialize with
// info.
func connect(t *testing.T, info string, o client.Options) (*client.Client, *agent) {
	toAgent, fromClient := io.Pipe()
	toClient, fromAgent := io.Pipe()
	a := &agent{t: t, answers: map[string]func(string) (string, error){}}
	a.answer("initialize", info)
	a.conn = jsonrpc.NewConn(jsonrpc.NewLines(toAgent, fromAgent, 0), jsonrpc.HandlerFunc(a.accept), jsonrpc.Options{})
	c := client.New(toClient, fromClient, o)
	ctx, cancel := context.WithCancel(context.Background())
	var served sync.WaitGroup
	served.Go(func() { _ = a.conn.Serve(ctx) })
	served.Go(func() { _ = c.Serve(ctx) })
	t.Cleanup(func() {
		cancel()
		served.Wait()
	})
	return c, a
}

// initialized is connect, and initialize.
func initialized(t *testing.T, info string, o client.Options) (*client.Client, *agent) {
	c, a := connect(t, info, o)
	_, err := c.Initialize(t.Context())
	require.NoError(t, err)
	a.take()
	return c, a
}

func (a *agent) answer(method, result string) {
	a.answerWith(method, func(string) (string, error) { return result, nil })
}

func (a *agent) answerWith(method string, answer func(params string) (string, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers[method] = answer
}

func (a *agent) accept(_ context.Context, r *jsonrpc.Request) jsonrpc.Work {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent = append(a.sent, r.Method+" "+string(r.Params))
	f := a.answers[r.Method]
	if f == nil {
		return nil
	}
	return func() (json.RawMessage, error) {
		result, err := f(string(r.Params))
		return json.RawMessage(result), err
	}
}

// take returns what the agent was sent since the last take.
func (a *agent) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	sent := a.sent
	a.sent = nil
	return sent
}

// notify sends the client a notification.
func (a *agent) notify(method, params string) {
	require.NoError(a.t, a.conn.Notify(a.t.Context(), method, json.RawMessage(params)))
}

// ask sends the client a request.
func (a *agent) ask(method, params string) (string, error) {
	result, err := a.conn.Call(a.t.Context(), method, json.RawMessage(params))()
	return string(result), err
}

func roots(t *testing.T, cwd string, additional ...string) workspace.Roots {
	r, err := workspace.NewRoots(cwd, additional)
	require.NoError(t, err)
	return r
}
