package acp_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/workspace"
)

func TestMain(m *testing.M) {
	proctest.Play(play)
	volume.Checks(8, 500) // each check of TestModel is a whole session
	proctest.Main(m, play)
}

// patience bounds every wait of a test, so that a hang fails instead of hanging.
const patience = volume.Patience / 8

// message is any JSON-RPC message.
type message struct{ rawrpc.Message }

// tester is a test or one run of a property.
type tester interface {
	require.TestingT
	Helper()
	Fatal(args ...any)
	Cleanup(f func())
}

// client is an ACP client over pipes, as raw as a test needs it.
type client struct {
	*rawrpc.Conn
	t      tester
	in     *io.PipeWriter
	out    *gate
	served chan error
	stop   context.CancelFunc

	mu      sync.Mutex
	answers []answerer
}

// answerer gives the results for requests of the agent, from a message on.
type answerer struct {
	from   int
	result func(message) string
}

// gate is a reader that passes nothing on while its lock is held.
type gate struct {
	io.Reader
	sync.Mutex
}

func (g *gate) Read(p []byte) (int, error) {
	n, err := g.Reader.Read(p)
	g.Lock()
	defer g.Unlock()
	return n, err
}

// using returns what makes b the backend of a connection.
func using(b backend.Backend) func() backend.Backend {
	return func() backend.Backend { return b }
}

// over says what the clients of the tests are connected by: "serve" for acp.Serve, or "lines" or
// "messages" for a server and a Conn, or "remote" for a remote peer of one.
var over = flag.String("over", "serve", "serve, lines, messages or remote")

// Why tests are skipped over a remote peer.
const (
	namesServers = "a remote peer names no MCP servers but those that the operator has configured"
	turnsGoOn    = "the turns of a remote peer do not end with its input"
)

// notOverRemote skips a test of what is different for a remote peer.
func notOverRemote(t *testing.T, why string) {
	t.Helper()
	if *over == "remote" {
		t.Skip(why)
	}
}

// storeError is part of what a client is told if the store fails with an error. A remote peer is
// not told why.
func storeError(why string) string {
	if *over == "remote" {
		return "the session store of the server cannot be used"
	}
	return why
}

// serve serves a client by the way that over names.
func serve(ctx context.Context, in io.Reader, out io.Writer, o acp.Options) error {
	var c acp.Conn
	var p acp.Peer
	switch *over {
	case "serve":
		return acp.Serve(ctx, in, out, o)
	case "lines":
		c = acp.NewLines(in, out)
	case "remote":
		c, p.Remote = acp.NewLines(in, out), true
		o.RemoteRights = acp.RemoteRights{Sessions: true, Account: true, Extensions: true}
		if root, err := workspace.ParseDir("/"); len(o.Workspace.Policy.Allow) == 0 && err == nil {
			o.Workspace.Policy.Allow = []workspace.Dir{root}
		}
	default:
		c = messageConn{in: bufio.NewReader(in), from: in, to: out}
	}
	server := acp.NewServer(acp.ServerOptions{
		Options: func(acp.Peer) (acp.Options, error) { return o, nil },
		PerPeer: acp.Limits{Sessions: o.Tuning().MaxSessions},
	})
	err := server.Serve(ctx, c, p)
	ended, end := context.WithCancel(context.Background())
	end() // turns of remote peers may be left
	_ = server.Shutdown(ended)
	return err
}

// messageConn is a Conn of whole messages, which it takes from lines for the tests.
type messageConn struct {
	in   *bufio.Reader
	from io.Reader
	to   io.Writer
}

func (c messageConn) Read() ([]byte, error) {
	message, err := c.in.ReadBytes('\n')
	if len(message) > 0 {
		err = nil
	}
	return message, err
}

func (c messageConn) Write(_ context.Context, message []byte) error {
	if bytes.ContainsRune(message, '\n') {
		return errors.New("a message has a line break")
	}
	_, err := c.to.Write(append(bytes.Clone(message), '\n'))
	return err
}

func (c messageConn) Close() error {
	for _, stream := range []any{c.from, c.to} {
		if closer, ok := stream.(io.Closer); ok {
			_ = closer.Close()
		}
	}
	return nil
}

// connect serves a new client with o, whose Store and Backend have defaults.
func connect(t tester, o acp.Options) *client {
	t.Helper()
	if o.Store == nil {
		o.Store = memstore.New(t)
	}
	if o.Backend == nil {
		o.Backend = using(&scripted{})
	}
	o.Tuning().BePatient(patience)
	return connectBy(t, func(ctx context.Context, in io.Reader, out io.Writer) error {
		return serve(ctx, in, out, o)
	})
}

// start connects a new client, and initializes the connection.
func start(t tester, o acp.Options) *client {
	t.Helper()
	c := connect(t, o)
	c.initialize()
	return c
}

// connectTo connects a new client of a server.
func connectTo(t tester, s *acp.Server, p acp.Peer) *client {
	t.Helper()
	return connectBy(t, func(ctx context.Context, in io.Reader, out io.Writer) error {
		return s.Serve(ctx, acp.NewLines(in, out), p)
	})
}

// connectBy connects a new client by serve.
func connectBy(
	t tester, serve func(ctx context.Context, in io.Reader, out io.Writer) error,
) *client {
	t.Helper()
	in, clientOut := io.Pipe()
	clientIn, out := io.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	c := &client{t: t, in: clientOut, out: &gate{Reader: clientIn}, served: make(chan error, 1), stop: stop}
	c.Conn = rawrpc.New(c.out, clientOut, 0)
	go func() {
		err := serve(ctx, in, out)
		_ = out.Close()
		c.served <- err
	}()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		c.answerAll()
	}()
	t.Cleanup(func() {
		c.leave()
		<-answered
		stop()
		for _, m := range c.messages() {
			require.True(t, json.Valid([]byte(m.Raw)), "not JSON: %s", m.Raw)
		}
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

// answerAll answers the requests of the agent until it ends.
func (c *client) answerAll() {
	asks := func(m rawrpc.Message) bool { return m.Method != "" && m.ID != nil }
	for from := 0; ; from++ {
		m, at, err := c.Await(context.Background(), from, asks)
		if err != nil {
			return
		}
		from = at
		c.mu.Lock()
		result := func(message) string { return "" }
		for _, a := range c.answers {
			if a.from <= at {
				result = a.result
			}
		}
		c.mu.Unlock()
		if answer := result(message{m}); answer != "" {
			_ = c.Send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + answer + "}")
		}
	}
}

// stall stops reading, until the returned function is called.
func (c *client) stall() (goOn func()) {
	c.out.Lock()
	goOn = sync.OnceFunc(c.out.Unlock)
	c.t.Cleanup(goOn) // the test may fail before
	return goOn
}

// answer gives the results for all further requests of the agent; "" leaves one without an answer.
func (c *client) answer(result func(message) string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers = append(c.answers, answerer{c.Count(), result})
}

// permit answers all further permission requests with an option, or not at all if it is "".
func (c *client) permit(option string) {
	c.answer(func(m message) string {
		switch {
		case m.Method != "session/request_permission" || option == "":
			return ""
		case option == "cancelled":
			return `{"outcome":{"outcome":"cancelled"}}`
		}
		return `{"outcome":{"outcome":"selected","optionId":"` + option + `"}}`
	})
}

// questions returns the permission requests received so far.
func (c *client) questions() (all []message) {
	for _, m := range c.messages() {
		if m.Method == "session/request_permission" {
			all = append(all, m)
		}
	}
	return all
}

// send writes lines in one write.
func (c *client) send(lines ...string) { require.NoError(c.t, c.Send(lines...)) }

// request returns a request and its id.
func (c *client) request(method, params string) (id, line string) {
	n := c.NextID()
	return fmt.Sprint(n), rawrpc.Request(n, method, json.RawMessage(params))
}

// post sends a request and returns its id.
func (c *client) post(method, params string) (id string) {
	id, line := c.request(method, params)
	c.send(line)
	return id
}

// beginTurn begins a turn that goes on until it is told to end.
func (c *client) beginTurn(id, prompt, says string) (request string) {
	c.t.Helper()
	before := len(c.messages())
	request = c.post("session/prompt", promptParams(id, prompt))
	c.await(before, said(says))
	return request
}

func notification(method, params string) string {
	return rawrpc.Notification(method, json.RawMessage(params))
}

// await waits for the first message for which is holds, at or after index from.
func (c *client) await(from int, is func(message) bool) (message, int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	m, at, err := c.Await(ctx, from, func(m rawrpc.Message) bool { return is(message{m}) })
	require.NoError(c.t, err, "the message did not come, after %d messages", c.Count())
	return message{m}, at
}

// response waits for the response to a request.
func (c *client) response(id string) message {
	c.t.Helper()
	m, _ := c.await(0, isResponse(id))
	return m
}

// call sends a request and returns its result.
func (c *client) call(method, params string) json.RawMessage {
	c.t.Helper()
	m := c.try(method, params)
	require.Nil(c.t, m.Error, "%s: %+v", method, m.Error)
	return m.Result
}

// busy sends two prompts during a turn: one that waits for its turn, whose id is returned, and one
// that is rejected.
func (c *client) busy(session string) (queued string, rejected message) {
	c.t.Helper()
	queued, line := c.request("session/prompt", promptParams(session, "say queued"))
	c.send(line)
	return queued, c.try("session/prompt", promptParams(session, "say too much"))
}

// try sends a request and returns its response.
func (c *client) try(method, params string) message {
	c.t.Helper()
	id, line := c.request(method, params)
	c.send(line)
	return c.response(id)
}

// messages returns the messages received so far.
func (c *client) messages() (all []message) {
	for _, m := range c.Messages() {
		all = append(all, message{m})
	}
	return all
}

// initialize sends initialize with every client capability.
func (c *client) initialize() json.RawMessage {
	c.t.Helper()
	return c.call("initialize",
		`{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,`+
			`"writeTextFile":true},"terminal":true},"clientInfo":{"name":"zed","version":"1"}}`)
}

// open makes a session and returns its id.
func (c *client) open(cwd string, additional ...string) string {
	c.t.Helper()
	var result struct{ SessionID string }
	require.NoError(c.t,
		json.Unmarshal(c.call("session/new", rootsParams("", cwd, additional...)), &result))
	require.NotEmpty(c.t, result.SessionID)
	return result.SessionID
}

// rootsParams returns the params of a lifecycle request, for session/new without an id.
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
	return encode(map[string]any{"sessionId": id,
		"prompt": []any{map[string]any{"type": "text", "text": text}}})
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

// count returns how many sessions are listed on all pages.
func (c *client) count() (n int) {
	c.t.Helper()
	for params := `{}`; params != ""; {
		var page struct {
			Sessions   []listed
			NextCursor string
		}
		require.NoError(c.t, json.Unmarshal(c.call("session/list", params), &page))
		n += len(page.Sessions)
		if params = ""; page.NextCursor != "" {
			params = encode(map[string]any{"cursor": page.NextCursor})
		}
	}
	return n
}

// texts returns the agent's messages in a session, in order.
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

// reason returns the reason of an error, or of its first violation.
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

// stopReason returns the stop reason of a prompt response.
func (m message) stopReason(t tester) string {
	t.Helper()
	require.Nil(t, m.Error, "%+v", m.Error)
	var result struct{ StopReason string }
	require.NoError(t, json.Unmarshal(m.Result, &result))
	return result.StopReason
}

// folder creates a directory for the test and returns its real path.
func folder(t *testing.T) string {
	t.Helper()
	return dirtest.New(t)
}

// texts runs a prompt and returns what the agent said.
func (c *client) texts(id, prompt string) []string {
	c.t.Helper()
	before := len(texts(c.messages(), id))
	require.Equal(c.t, "end_turn",
		c.try("session/prompt", promptParams(id, prompt)).stopReason(c.t))
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

// scripted is a backend that does what the prompt says:
//
//	say TEXT        answers TEXT
//	count N         answers with N updates
//	wait            waits for the end of the turn
//	mute            tries to say something once its turn has ended
//	drip            answers until the end of the turn
//	stubborn        ignores the end of the turn, until release is closed
//	panic           panics
//	fail            answers with an error
//	refuse          refuses the prompt as invalid; if a text follows, it first answers that
//	call METHOD P   calls the client, and answers with what came of it
//	title TEXT      sets the session's title
//	info UPDATE     sends an update
//	spend AMOUNT    reports what the session has cost in US dollars, or in another unit if one follows
//	tool            leaves a tool call open
//	state TEXT      saves its state
//	roots           answers with its roots
//
// and what actOnTools does.
type scripted struct {
	kind    string // default "scripted"
	release chan struct{}
	refuse  error         // of Open
	hold    chan struct{} // if set, a load or resume opens once it is closed

	connects bool
	sandbox  backend.Sandbox // of servers
	// restricted is that of the backend.
	restricted bool
	prompts    backend.SystemPrompts
	usage      backend.Usage

	overlaps   bool // prompts are taken during a turn
	neverAsks  bool
	asksLittle string
	doubt      string
	// commands is a list of commands, which is only announced for a new session; default: an empty
	// one, for all
	commands string
	opened   func(backend.Activation, backend.Host) // if set, is called when a session opens
	result   string                                 // of Open, if set
	// prompted, if set, is called with each prompt. Work that it returns is done in place of what
	// the prompt says.
	prompted func(context.Context, backend.Raw, backend.Updates) backend.Work

	returned atomic.Int64 // prompts that the backend has answered

	mu     sync.Mutex
	events []string // what the backend was asked, in order
}

func (r *scripted) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf(format, args...))
}

func (r *scripted) noted() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.events...)
}

func (r *scripted) Initialize(context.Context, backend.Raw, backend.Client) (backend.Info, error) {
	if r.kind == "" {
		r.kind = "scripted"
	}
	return backend.Info{Kind: r.kind, ConnectsServers: r.connects, ServerSandbox: r.sandbox,
		Restricted: r.restricted, SystemPrompts: r.prompts, OverlappingTurns: r.overlaps,
		Usage: r.usage, NeverAsks: r.neverAsks, AsksLittle: r.asksLittle, Doubt: r.doubt,
		Initialize: backend.Raw(`{"agentCapabilities":{"promptCapabilities":{"image":true},` +
			`"sessionCapabilities":{"fork":{},"x":{}}},"x":1}`)}, nil
}

func (r *scripted) Call(_ context.Context, method string, params backend.Raw) backend.Work {
	if method != "_echo" {
		return nil
	}
	return func() (backend.Raw, error) { return params, nil }
}

func (r *scripted) Notify(_ context.Context, method string, params backend.Raw) {
	r.note("notify %s %s", method, params)
}

func (r *scripted) Close(context.Context) error { return nil }

func (r *scripted) Open(
	ctx context.Context, a backend.Activation, h backend.Host,
) (backend.Session, backend.Opened, error) {
	r.note("open %s %s state=%s", a.Cause, h.Workspace().Roots(), a.State)
	if r.opened != nil {
		r.opened(a, h)
	}
	if r.hold != nil && (a.Cause == backend.Load || a.Cause == backend.Resume) {
		<-r.hold
	}
	if r.refuse != nil {
		return nil, backend.Opened{}, r.refuse
	}
	var err error
	if r.commands == "" || a.Cause == backend.New {
		err = h.Update(ctx, update(`{"update":{"sessionUpdate":"available_commands_update",`+
			`"availableCommands":`+cmp.Or(r.commands, "[]")+`}}`))
	}
	return &scriptedSession{runtime: r, host: h},
		backend.Opened{Result: backend.Raw(cmp.Or(r.result, `{"_meta":{"opened":true}}`))}, err
}

type scriptedSession struct {
	runtime *scripted
	host    backend.Host
}

func (s *scriptedSession) Call(_ context.Context, method string, params backend.Raw) backend.Work {
	s.runtime.note("call %s %s", method, params)
	switch method {
	case "session/set_mode":
		return func() (backend.Raw, error) { return nil, nil }
	case "_save":
		return func() (backend.Raw, error) {
			return nil, s.host.SaveState(context.Background(), params)
		}
	default:
		return nil
	}
}

func (s *scriptedSession) Notify(_ context.Context, method string, params backend.Raw) {
	s.runtime.note("session notify %s %s", method, params)
}

func (s *scriptedSession) Cancel(params backend.Raw) { s.runtime.note("cancel %s", params) }

func (s *scriptedSession) Close(context.Context) error {
	s.runtime.note("close")
	return nil
}

func (s *scriptedSession) Prompt(
	ctx context.Context, params backend.Raw, u backend.Updates,
) backend.Work {
	if s.runtime.prompted != nil {
		if work := s.runtime.prompted(ctx, params, u); work != nil {
			return work
		}
	}
	var p struct{ Prompt []struct{ Text string } }
	if err := json.Unmarshal(params, &p); err != nil || len(p.Prompt) == 0 {
		return func() (backend.Raw, error) { return endTurn, err }
	}
	s.runtime.note("prompt %s", p.Prompt[0].Text)
	word, rest, _ := strings.Cut(p.Prompt[0].Text, " ")
	return func() (backend.Raw, error) {
		defer s.runtime.returned.Add(1)
		return s.act(ctx, word, rest, u)
	}
}

var endTurn = backend.Raw(`{"stopReason":"end_turn"}`)

func say(text string) backend.Update {
	return update(`{"update":{"sessionUpdate":"agent_message_chunk","content":` +
		encode(map[string]string{"type": "text", "text": text}) + `}}`)
}

func (s *scriptedSession) act(
	ctx context.Context, word, rest string, u backend.Updates,
) (backend.Raw, error) {
	switch word {
	case "say":
		return endTurn, u.Update(ctx, say(rest))
	case "count":
		var n int
		_, err := fmt.Sscan(rest, &n)
		for i := 0; i < n && err == nil; i++ {
			err = u.Update(ctx, say(fmt.Sprint(i)))
		}
		return endTurn, err
	case "wait":
		if err := u.Update(ctx, say("waiting")); err != nil {
			return nil, err
		}
		<-ctx.Done()
		_ = u.Update(context.WithoutCancel(ctx), say("last words"))
		return nil, context.Cause(ctx)
	case "mute":
		<-ctx.Done()
		err := u.Update(ctx, say("after the end"))
		s.runtime.note("update after the end: %v", err)
		return nil, err
	case "drip":
		for {
			if err := u.Update(ctx, say("drip")); err != nil {
				return nil, err
			}
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-time.After(time.Millisecond):
			}
		}
	case "stubborn":
		if err := u.Update(ctx, say("stubborn")); err != nil {
			return nil, err
		}
		<-s.runtime.release
		err := u.Update(context.WithoutCancel(ctx), say("too late"))
		s.runtime.note("late update: %v", err)
		return endTurn, nil
	case "panic":
		panic("scripted")
	case "fail":
		return nil, errors.New("scripted failure")
	case "refuse":
		if rest != "" {
			if err := u.Update(ctx, say(rest)); err != nil {
				return nil, err
			}
		}
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the prompt is invalid")
	case "call":
		if first, then, more := strings.Cut(rest, "\nthen "); more {
			if _, err := s.act(ctx, word, first, u); err != nil {
				return nil, err
			}
			word, rest, _ = strings.Cut(then, " ")
			return s.act(ctx, word, rest, u)
		}
		method, params, _ := strings.Cut(rest, " ")
		result, err := s.host.Call(ctx, method, backend.Raw(params))()
		return endTurn, u.Update(ctx, say(fmt.Sprintf("%s %v", result, err)))
	case "update":
		return endTurn, u.Update(ctx, update(`{"update":`+rest+`}`))
	case "title":
		return endTurn, u.Update(ctx, update(`{"update":{"sessionUpdate":"session_info_update",`+
			`"title":`+encode(rest)+`}}`))
	case "info":
		return endTurn, u.Update(ctx, update(`{"update":`+rest+`}`))
	case "spend":
		amount, unit, _ := strings.Cut(rest, " ")
		return backend.Raw(`{"stopReason":"end_turn","usage":{"inputTokens":10,"outputTokens":3}}`),
			u.Update(ctx, update(`{"update":{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":`+
				amount+`,"currency":`+encode(cmp.Or(unit, "USD"))+`}}}`))
	case "commit":
		if err := u.Commit(ctx, say(rest)); err != nil {
			return nil, err
		}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	case "flood":
		for {
			if err := u.Update(ctx, say(strings.Repeat("flood ", 100))); err != nil {
				return nil, err
			}
		}
	case "tool":
		return endTurn, u.Update(ctx, update(`{"update":{"sessionUpdate":"tool_call",`+
			`"toolCallId":"t1","title":"T","status":"in_progress"}}`))
	case "state":
		return endTurn, s.host.SaveState(ctx, []byte(rest))
	case "roots":
		return endTurn, u.Update(ctx, say(s.host.Workspace().Roots().String()))
	default:
		return s.actOnTools(ctx, word, rest, u)
	}
}

// What a scripted backend does with MCP servers, and with what the roots hold:
//
//	servers       answers with the state of each server
//	tools         answers with the names of all tools
//	use NAME      calls a tool, and answers with its result
//	catalog       answers with what was found
//	history       answers with the texts of the stored history
func (s *scriptedSession) actOnTools(
	ctx context.Context, word, rest string, u backend.Updates,
) (backend.Raw, error) {
	var text string
	switch word {
	case "servers":
		var all []string
		for _, server := range s.host.Tools().Servers() {
			all = append(all, fmt.Sprintf("%s %s", server.Name, server.State))
		}
		text = strings.Join(all, ", ")
	case "tools":
		listings, err := s.host.Tools().List(ctx)
		if err != nil {
			return nil, err
		}
		var names []string
		for l := range listings {
			for _, tool := range l.Tools {
				names = append(names, tool.Name+" ")
			}
		}
		text = strings.Join(slices.Sorted(slices.Values(names)), "")
	case "use":
		name, arguments, _ := strings.Cut(rest, " ")
		result, err := s.host.Tools().Call(ctx, u,
			backend.ToolRequest{Name: name, Arguments: backend.Raw(arguments)})
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		text = fmt.Sprintf("error: %v", err)
		if err == nil {
			text = blockTexts(result.Content)
		}
	case "catalog":
		var all []string
		for _, a := range s.host.Catalog().Artifacts() {
			all = append(all, fmt.Sprintf("%s %s of %d", a.Kind, a.Name, a.Root.Index))
		}
		text = strings.Join(all, ", ")
	default:
		return endTurn, nil
	}
	return endTurn, u.Update(ctx, say(text))
}

func blockTexts(blocks []backend.Raw) string {
	var all []string
	for _, raw := range blocks {
		var block struct{ Text string }
		_ = json.Unmarshal(raw, &block)
		all = append(all, block.Text)
	}
	return strings.Join(all, "\n")
}

// play plays an MCP server.
//
//	files      reports its directory, its roots and the notifications it received; fetches the roots as most servers do
//	silent     takes everything, answers nothing
//	stubborn   does not end when asked either
//	wrapper    starts "stubborn" as a child process and waits for it
//	note       writes TOKEN and its arguments to stderr and ends
func play(r string) int {
	if r == "stubborn" {
		signal.Ignore(syscall.SIGTERM)
		return proctest.HoldOn()
	}
	if proctest.Hold() != nil {
		return 1
	}
	switch r {
	case "silent":
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "wrapper":
		below := exec.Command(proctest.Executable())
		below.Env = append(os.Environ(), proctest.Env("stubborn")...)
		_ = below.Run()
	case "note":
		fmt.Fprintln(os.Stderr, "no licence for", os.Getenv("TOKEN"),
			strings.Join(os.Args[1:], " "))
		return 3
	default:
		return playFiles()
	}
	return 0
}

func playFiles() int {
	s := mcptest.New(mcptest.Options{Revision: "2025-11-25", Fetch: true})
	s.Add(&mcp.Tool{Name: "where"}, func(context.Context, *mcp.CallToolRequest) (string, error) {
		cwd, err := os.Getwd()
		return fmt.Sprintf("%d in %s with %s", os.Getpid(), cwd, strings.Join(os.Args[1:], " ")),
			err
	})
	s.Add(&mcp.Tool{Name: "environ"},
		func(context.Context, *mcp.CallToolRequest) (string, error) {
			return strings.Join(os.Environ(), "\n"), nil
		})
	s.Add(&mcp.Tool{Name: "ask"},
		func(ctx context.Context, r *mcp.CallToolRequest) (string, error) {
			answer, err := r.Session.Elicit(ctx,
				&mcp.ElicitParams{Mode: "form", Message: "Who?", RequestedSchema: map[string]any{
					"type":       "object",
					"properties": map[string]any{"name": map[string]any{"type": "string"}}}})
			if err != nil {
				return "", err
			}
			return fmt.Sprint(answer.Action, answer.Content), nil
		})
	s.Add(&mcp.Tool{Name: "claim", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(context.Context, *mcp.CallToolRequest) (string, error) { return "claimed", nil })
	s.Add(&mcp.Tool{Name: "hang"},
		func(ctx context.Context, r *mcp.CallToolRequest) (string, error) {
			_ = r.Session.NotifyProgress(ctx,
				&mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(),
					Progress: 1,
					Message:  "hanging"})
			<-ctx.Done()
			return "", ctx.Err()
		})
	return s.Play()
}

// server returns the configuration of an MCP server that this binary plays. env has entries
// NAME=VALUE.
func server(name, r string, env ...string) map[string]any {
	pairs := []any{}
	for _, e := range proctest.Env(r, env...) {
		name, value, _ := strings.Cut(e, "=")
		pairs = append(pairs, map[string]any{"name": name, "value": value})
	}
	return map[string]any{"name": name, "command": proctest.Executable(), "args": []any{},
		"env": pairs}
}

// servedParams returns rootsParams with MCP servers.
func servedParams(id string, roots []string, servers ...map[string]any) string {
	var params map[string]any
	if err := json.Unmarshal([]byte(rootsParams(id, roots[0], roots[1:]...)), &params); err != nil {
		panic(err)
	}
	if servers != nil {
		params["mcpServers"] = servers
	}
	return encode(params)
}

// serve opens a session with MCP servers and returns its id.
func (c *client) serve(roots []string, servers ...map[string]any) string {
	c.t.Helper()
	var result struct{ SessionID string }
	require.NoError(c.t,
		json.Unmarshal(c.call("session/new", servedParams("", roots, servers...)), &result))
	return result.SessionID
}

// use makes the session call a tool, and returns the result.
func (c *client) use(id, tool string) string {
	c.t.Helper()
	return strings.Join(c.texts(id, "use "+tool), "\n")
}

// advertising is a scripted backend that connects MCP servers itself and answers initialize with a
// given result.
type advertising struct {
	scripted
	initialize string
}

func (r *advertising) Initialize(
	context.Context, backend.Raw, backend.Client,
) (backend.Info, error) {
	return backend.Info{Kind: "advertising", ConnectsServers: true,
		Initialize: backend.Raw(r.initialize)}, nil
}

// update returns the update with the given JSON.
func update(raw string) backend.Update {
	u, err := backend.ParseUpdate(backend.Raw(raw))
	if err != nil {
		panic(err)
	}
	return u
}
