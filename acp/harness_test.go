package acp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/testutil/dirtest"
	"github.com/acp-agent/acp-agent/internal/testutil/proctest"
	"github.com/acp-agent/acp-agent/sessionstore"
)

func TestMain(m *testing.M) { proctest.Main(m, play) }

// patience bounds every wait of a test, so that a hang fails instead of hanging.
const patience = 20 * time.Second

// message is any JSON-RPC message.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// tester is a test, or one run of a property.
type tester interface {
	require.TestingT
	Helper()
	Fatal(args ...any)
	Cleanup(f func())
}

// client is an ACP client over pipes, as raw as a test needs it.
type client struct {
	t      tester
	in     *io.PipeWriter
	served chan error
	stop   context.CancelFunc

	mu      sync.Mutex
	more    *sync.Cond
	got     []message // in the order of the wire
	end     bool
	stalled bool // reads nothing
	next    int

	answers func(message) string // if set, gives the result for a request of the agent
}

// connect serves a new client with o, whose Store and Runtime have defaults.
func connect(t tester, o acp.Options) *client {
	t.Helper()
	if o.Store == nil {
		o.Store = sessionstore.NewMemory()
	}
	if o.Backend == nil {
		o.Backend = func() backend.Backend { return &scripted{} }
	}
	if o.ReplayRate == 0 {
		o.ReplayRate = -1 // these clients take what comes
	}
	in, clientOut := io.Pipe()
	clientIn, out := io.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	c := &client{t: t, in: clientOut, served: make(chan error, 1), stop: stop}
	c.more = sync.NewCond(&c.mu)
	go func() {
		err := acp.Serve(ctx, in, out, o)
		_ = out.Close()
		c.served <- err
	}()
	read := make(chan struct{})
	go func() {
		defer close(read)
		c.read(clientIn)
	}()
	t.Cleanup(func() {
		c.leave()
		<-read
		stop()
	})
	return c
}

// leave closes the client's end and waits for the agent.
func (c *client) leave() {
	_ = c.in.Close()
	select {
	case err := <-c.served:
		require.NoError(c.t, err)
		c.served <- nil
	case <-time.After(patience):
		c.t.Fatal("the agent did not end with its input")
	}
}

func (c *client) read(from io.Reader) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		c.mu.Lock()
		for c.stalled {
			c.more.Wait()
		}
		if err != nil {
			c.end = true
			c.more.Broadcast()
			c.mu.Unlock()
			return
		}
		var m message
		if json.Unmarshal(line, &m) != nil {
			c.t.Errorf("not JSON: %s", line)
		}
		c.got = append(c.got, m)
		c.more.Broadcast()
		answers := c.answers
		c.mu.Unlock()
		if answers == nil || m.Method == "" || m.ID == nil {
			continue
		}
		if result := answers(m); result != "" {
			_, _ = io.WriteString(c.in, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":`+result+"}\n")
		}
	}
}

// stall stops reading, until the returned function is called.
func (c *client) stall() (goOn func()) {
	set := func(stalled bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.stalled = stalled
		c.more.Broadcast()
	}
	set(true)
	return func() { set(false) }
}

// permit answers every question for permission from now on with an option, or none if it is "".
func (c *client) permit(option string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers = func(m message) string {
		switch {
		case m.Method != "session/request_permission" || option == "":
			return ""
		case option == "cancelled":
			return `{"outcome":{"outcome":"cancelled"}}`
		}
		return `{"outcome":{"outcome":"selected","optionId":"` + option + `"}}`
	}
}

// questions are the questions for permission that came so far.
func (c *client) questions() (all []message) {
	for _, m := range c.messages() {
		if m.Method == "session/request_permission" {
			all = append(all, m)
		}
	}
	return all
}

// send writes lines in one write.
func (c *client) send(lines ...string) {
	_, err := io.WriteString(c.in, strings.Join(lines, "\n")+"\n")
	require.NoError(c.t, err)
}

// request is a request line and its id.
func (c *client) request(method, params string) (id, line string) {
	c.next++
	id = fmt.Sprint(c.next)
	return id, `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`
}

func notification(method, params string) string {
	return `{"jsonrpc":"2.0","method":"` + method + `","params":` + params + `}`
}

// await waits for the first message for which is holds, at or after index from.
func (c *client) await(from int, is func(message) bool) (message, int) {
	c.t.Helper()
	timer := time.AfterFunc(patience, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.end = true
		c.more.Broadcast()
	})
	defer timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := from; ; i++ {
		for i == len(c.got) {
			if c.end {
				require.Fail(c.t, "the message did not come", "after %d messages", len(c.got))
			}
			c.more.Wait()
		}
		if is(c.got[i]) {
			return c.got[i], i
		}
	}
}

// response waits for the response to a request.
func (c *client) response(id string) message {
	c.t.Helper()
	m, _ := c.await(0, func(m message) bool { return m.Method == "" && string(m.ID) == id })
	return m
}

// call sends a request and returns its result.
func (c *client) call(method, params string) json.RawMessage {
	c.t.Helper()
	m := c.try(method, params)
	require.Nil(c.t, m.Error, "%s: %+v", method, m.Error)
	return m.Result
}

// try sends a request and returns its response.
func (c *client) try(method, params string) message {
	c.t.Helper()
	id, line := c.request(method, params)
	c.send(line)
	return c.response(id)
}

// messages are those that came so far.
func (c *client) messages() []message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]message(nil), c.got...)
}

// initialize sends initialize with every client capability.
func (c *client) initialize() json.RawMessage {
	c.t.Helper()
	return c.call("initialize", `{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true}}`)
}

// open makes a session and returns its id.
func (c *client) open(cwd string, additional ...string) string {
	c.t.Helper()
	var result struct{ SessionID string }
	require.NoError(c.t, json.Unmarshal(c.call("session/new", rootsParams("", cwd, additional...)), &result))
	require.NotEmpty(c.t, result.SessionID)
	return result.SessionID
}

// rootsParams are the params of a lifecycle request; those of session/new without an id.
func rootsParams(id, cwd string, additional ...string) string {
	params := map[string]any{"cwd": cwd, "mcpServers": []any{}}
	if id != "" {
		params["sessionId"] = id
	}
	if additional != nil {
		params["additionalDirectories"] = additional
	}
	return encode(params)
}

func promptParams(id, text string) string {
	return encode(map[string]any{"sessionId": id, "prompt": []any{map[string]any{"type": "text", "text": text}}})
}

func idParams(id string) string { return encode(map[string]any{"sessionId": id}) }

func encode(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// listed is a session as session/list shows it.
type listed struct {
	SessionID             string   `json:"sessionId"`
	Cwd                   string   `json:"cwd"`
	AdditionalDirectories []string `json:"additionalDirectories"`
	Title                 string   `json:"title"`
	UpdatedAt             string   `json:"updatedAt"`
}

// list calls session/list.
func (c *client) list(params string) []listed {
	c.t.Helper()
	var result struct{ Sessions []listed }
	require.NoError(c.t, json.Unmarshal(c.call("session/list", params), &result))
	require.NotNil(c.t, result.Sessions)
	return result.Sessions
}

// texts are the agent's words to a session, in order.
func texts(messages []message, id string) []string {
	var all []string
	for _, m := range messages {
		var p struct {
			SessionID string
			Update    struct {
				SessionUpdate string
				Content       struct{ Text string }
			}
		}
		if m.Method == "session/update" && json.Unmarshal(m.Params, &p) == nil &&
			p.SessionID == id && p.Update.SessionUpdate == "agent_message_chunk" {
			all = append(all, p.Update.Content.Text)
		}
	}
	return all
}

// reason is an error's reason, or its first violation's.
func (m message) reason(t tester) string {
	t.Helper()
	require.NotNil(t, m.Error)
	var data struct {
		Reason     string
		Violations []struct{ Reason string }
	}
	require.NoError(t, json.Unmarshal(m.Error.Data, &data), m.Error.Message)
	if len(data.Violations) > 0 {
		return data.Violations[0].Reason
	}
	return data.Reason
}

// stopReason is a prompt response's.
func (m message) stopReason(t tester) string {
	t.Helper()
	require.Nil(t, m.Error, "%+v", m.Error)
	var result struct{ StopReason string }
	require.NoError(t, json.Unmarshal(m.Result, &result))
	return result.StopReason
}

// folder makes a directory of the test's own, by its real path.
func folder(t *testing.T) string {
	t.Helper()
	return dirtest.New(t)
}

// texts runs a prompt and returns what the agent said.
func (c *client) texts(id, prompt string) []string {
	c.t.Helper()
	before := len(texts(c.messages(), id))
	require.Equal(c.t, "end_turn", c.try("session/prompt", promptParams(id, prompt)).stopReason(c.t))
	return texts(c.messages(), id)[before:]
}

// find returns a session of the list.
func (c *client) find(id string) listed {
	c.t.Helper()
	for _, s := range c.list(`{}`) {
		if s.SessionID == id {
			return s
		}
	}
	require.Fail(c.t, "not listed", id)
	return listed{}
}

func said(text string) func(message) bool {
	return func(m message) bool { return strings.Contains(string(m.Params), `"text":"`+text+`"`) }
}

func isResponse(id string) func(message) bool {
	return func(m message) bool { return m.Method == "" && string(m.ID) == id }
}
