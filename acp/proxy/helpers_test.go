package proxy_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/child"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/scripted"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

func TestMain(m *testing.M) {
	proctest.Main(m, func(role string) int {
		switch role {
		case scripted.Role:
			return scripted.Play()
		case exchangeRole:
			return exchange(os.Getenv(exchangeVariable))
		}
		in, err := proctest.OpenInput()
		if err != nil {
			return 99
		}
		return simulate(in)
	})
}

// patience is how long to wait for what must happen.
const patience = volume.Patience

// The beginnings of scripts.
const (
	plain = "await initialize\n" +
		`answer initialize {"protocolVersion":1,"agentInfo":{"name":"scripted"},"x":1.0}` + "\n"
	capable = "await initialize\n" +
		`answer initialize {"protocolVersion":1,` +
		`"agentCapabilities":{"sessionCapabilities":{"additionalDirectories":{},"close":{}}}}` +
		"\n"
	opened = "await session/new\n" +
		`answer session/new {"sessionId":"child-1","modes":{"n":1.0}}` + "\n"
	openedAgain = "await session/new\n" + `answer session/new {"sessionId":"child-2"}` + "\n"
	answered    = `answer session/prompt {"stopReason":"end_turn","_meta":{"n":1e0}}` + "\n"
)

// proxyTest is a proxy between a fake client and a scripted agent.
type proxyTest struct {
	t       *testing.T
	command process.Command
	backend backend.Backend
	client  *fakeClient
	record  proctest.Record
	info    backend.Info
	closed  bool
}

// A process in the role exchange exchanges the names d and l in a directory until it is ended.
const exchangeRole, exchangeVariable = "exchange", "ACP_PROXY_TEST_EXCHANGE"

// start returns a proxy that is not initialized. At most one set of options is used.
func start(t *testing.T, script string, options ...proxy.Options) *proxyTest {
	o := append(options, proxy.Options{})[0]
	c, record := scripted.Command(t, script)
	b := &proxyTest{t: t, command: c, backend: proxy.New(c, o.WithProcessGrace(patience)),
		client: newFakeClient(t), record: record}
	t.Cleanup(b.close)
	return b
}

// initialized returns an initialized proxy.
func initialized(t *testing.T, script string, options ...proxy.Options) *proxyTest {
	b := start(t, script, options...)
	var err error
	b.info, err = b.backend.Initialize(t.Context(),
		backend.Raw(`{"protocolVersion":1,"clientCapabilities":{"n":1.0}}`), b.client)
	require.NoError(t, err)
	return b
}

// close ends the agent.
func (b *proxyTest) close() {
	if b.closed {
		return
	}
	b.closed = true
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(b.t, b.backend.Close(ctx))
}

// received ends the agent and returns the lines that it received, of these methods; "" stands for
// responses.
func (b *proxyTest) received(methods ...string) []string {
	b.close()
	return linesOf(b.t, b.record, methods...)
}

// linesOf returns the lines of a record, of these methods; "" stands for responses.
func linesOf(t testing.TB, record proctest.Record, methods ...string) []string {
	lines := []string{}
	for _, line := range record.Lines(t) {
		var m struct{ Method string }
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		for _, method := range methods {
			if m.Method == method {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// open opens a session in /a.
func (b *proxyTest) open() (backend.Session, backend.Opened) {
	return b.openWith(`{"cwd":"/a","mcpServers":[]}`)
}

func (b *proxyTest) openWith(params string) (backend.Session, backend.Opened) {
	b.t.Helper()
	s, opened, err := b.backend.Open(b.t.Context(),
		backend.Activation{Cause: backend.New, Params: backend.Raw(params)}, host{b.client})
	require.NoError(b.t, err)
	return s, opened
}

// prompt runs a turn to its end.
func (b *proxyTest) prompt(s backend.Session) (string, error) {
	return await(b.t, s.Prompt(b.t.Context(),
		backend.Raw(`{"prompt":[{"type":"text","text":"hello"}]}`), turn{b.client}))
}

// await runs work and fails if it takes too long.
func await(t *testing.T, work backend.Work) (string, error) {
	t.Helper()
	type outcome struct {
		result backend.Raw
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := work()
		done <- outcome{result, err}
	}()
	select {
	case o := <-done:
		return string(o.result), o.err
	case <-time.After(patience):
		require.Fail(t, "took too long")
		return "", nil
	}
}

// fakeClient is package acp with the client behind it: it notes what reaches it, and answers
// requests.
type fakeClient struct {
	backend.Host // for the methods that a proxy does not call

	t     *testing.T
	notes chan string

	mu      sync.Mutex
	answers map[string]backend.Work
	block   func(ctx context.Context, note string) error
	state   string
}

func newFakeClient(t *testing.T) *fakeClient {
	return &fakeClient{t: t, notes: make(chan string, 10_000),
		answers: make(map[string]backend.Work)}
}

func (e *fakeClient) answer(method, result string) {
	e.answers[method] = func() (backend.Raw, error) { return backend.Raw(result), nil }
}

// note adds a note.
func (e *fakeClient) note(ctx context.Context, n string) error {
	e.notes <- n
	e.mu.Lock()
	block := e.block
	e.mu.Unlock()
	if block != nil {
		return block(ctx, n)
	}
	return nil
}

// next waits for the next note.
func (e *fakeClient) next() string {
	e.t.Helper()
	select {
	case n := <-e.notes:
		return n
	case <-time.After(patience):
		require.Fail(e.t, "nothing came")
		return ""
	}
}

// silent fails if there is another note.
func (e *fakeClient) silent() {
	e.t.Helper()
	select {
	case n := <-e.notes:
		require.Fail(e.t, "unexpected: "+n)
	default:
	}
}

func (e *fakeClient) call(ctx context.Context, to, method string, params backend.Raw) backend.Work {
	err := e.note(ctx, to+" call "+method+" "+string(params))
	e.mu.Lock()
	defer e.mu.Unlock()
	answer := e.answers[method]
	return func() (backend.Raw, error) {
		switch {
		case err != nil:
			return nil, err
		case answer == nil:
			return nil, jsonrpc.MethodNotFound(method)
		}
		return answer()
	}
}

// Call implements [backend.Client] outside of sessions.
func (e *fakeClient) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	return e.call(ctx, "client", method, params)
}

// Notify implements [backend.Client] outside of sessions.
func (e *fakeClient) Notify(ctx context.Context, method string, params backend.Raw) error {
	return e.note(ctx, "client notify "+method+" "+string(params))
}

// host is a fakeClient as the host of a session.
type host struct{ *fakeClient }

func (h host) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	return h.call(ctx, "host", method, params)
}

func (h host) Notify(ctx context.Context, method string, params backend.Raw) error {
	return h.note(ctx, "host notify "+method+" "+string(params))
}

func (h host) Update(ctx context.Context, u backend.Update) error {
	return h.note(ctx, "host update "+u.String())
}

func (h host) Commit(ctx context.Context, u backend.Update) error { return h.Update(ctx, u) }

func (h host) Replay(ctx context.Context, u backend.Update) error {
	return h.note(ctx, "host replay "+u.String())
}

func (h host) For(from backend.Sender) backend.Client {
	if from.Subagent == "" {
		return h
	}
	return subagent{h, from.Subagent + " in " + from.Roots.String()}
}

// subagent is a host as the client of a subagent.
type subagent struct {
	host
	name string
}

func (c subagent) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	return c.call(ctx, c.name, method, params)
}

func (c subagent) Notify(ctx context.Context, method string, params backend.Raw) error {
	return c.note(ctx, c.name+" notify "+method+" "+string(params))
}

func (h host) Workspace() *workspace.Workspace { return nil }

func (h host) Catalog() *discovery.Catalog { return nil }

func (h host) SaveState(_ context.Context, state []byte) error {
	h.state = string(state)
	return nil
}

// turn is a fakeClient as the receiver of a turn's updates.
type turn struct{ *fakeClient }

func (u turn) Update(ctx context.Context, update backend.Update) error {
	return u.note(ctx, "turn update "+update.String())
}

func (u turn) Commit(ctx context.Context, update backend.Update) error {
	return u.Update(ctx, update)
}

// system is package acp with the proxy and an agent. Clients can connect one after the other: the
// store and the agent's files are kept.
type system struct {
	t       testing.TB
	command process.Command
	record  proctest.Record
	options proxy.Options
	store   sessionstore.Store
	client  client.Options // of its clients
	rules   *acp.Permissions
	pool    *proxy.Pool // nil if each connection has processes of its own
	user    string      // in the pool
}

func newSystem(t testing.TB, a abilities, o proxy.Options) *system {
	a.Dir = cmp.Or(a.Dir, t.TempDir())
	c, record := simulatedCommand(t, a)
	return &system{t: t, command: c, record: record, options: o, store: memstore.New(t)}
}

// connected returns a system and a client connected to it.
func connected(t testing.TB, a abilities, o proxy.Options) (*system, *testClient) {
	h := newSystem(t, a, o)
	return h, h.connect()
}

// testClient is a client connected to a system.
type testClient struct {
	*client.Client
	h          *system
	agent      client.Agent
	disconnect func()

	mu        sync.Mutex
	seen      []string
	announced []string // available_commands_update
}

// backend returns that of a connection.
func (h *system) backend() backend.Backend {
	if h.pool != nil {
		return h.pool.New(h.user, "", h.command, h.options)
	}
	return proxy.New(h.command, h.options)
}

// over says what the clients of the tests are connected by: "serve" for acp.Serve, or "remote" for
// a remote peer of a server.
var over = flag.String("over", "serve", "serve or remote")

// notWithServers skips a test over a remote peer, which names no MCP servers but those that the
// operator has configured.
func notWithServers(t *testing.T) {
	t.Helper()
	if *over == "remote" {
		t.Skip("a remote peer may not name the MCP server of this test")
	}
}

// diskFull is part of what a client is told if the store fails with that error. A remote peer is
// not told why.
func diskFull() string {
	if *over == "remote" {
		return "the session store of the server cannot be used"
	}
	return "disk full"
}

// overBoth runs a test with each value of over.
func overBoth(t *testing.T, test func(t *testing.T)) {
	given := *over
	defer func() { *over = given }()
	for _, way := range []string{"serve", "remote"} {
		*over = way
		t.Run(way, test)
	}
}

// serve serves a client by the way that over names.
func serve(ctx context.Context, in io.Reader, out io.Writer, o acp.Options) error {
	if *over == "serve" {
		return acp.Serve(ctx, in, out, o)
	}
	root, err := workspace.ParseDir("/")
	if err != nil {
		return err
	}
	o.Workspace.Policy.Allow = []workspace.Dir{root}
	o.RemoteRights = acp.RemoteRights{Sessions: true, Account: true, Extensions: true}
	server := acp.NewServer(acp.ServerOptions{
		Options: func(acp.Peer) (acp.Options, error) { return o, nil }})
	err = server.Serve(ctx, acp.NewLines(in, out), acp.Peer{Remote: true})
	ended, end := context.WithCancel(context.Background())
	end() // turns may be left
	_ = server.Shutdown(ended)
	return err
}

// connect connects a client.
func (h *system) connect() *testClient {
	h.t.Helper()
	toAdapter, fromClient := io.Pipe()
	toClient, fromAdapter := io.Pipe()
	v := &testClient{h: h}
	o := h.client
	if o.Updates == nil {
		o.Updates = v.see
	}
	if o.Permission == nil {
		o.Permission = allowOnce
	}
	v.Client = client.New(toClient, fromClient, o)
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		defer fromAdapter.Close()
		err := serve(ctx, toAdapter, fromAdapter, acp.Options{
			Backend: h.backend,
			Store:   h.store,
			Logger:  slog.New(slog.DiscardHandler),

			Permissions: func(workspace.Dir) *acp.Permissions { return h.rules },
		})
		if err != nil {
			h.t.Error(err)
		}
	})
	serving.Go(func() { _ = v.Serve(ctx) })
	v.disconnect = sync.OnceFunc(func() {
		cancel()
		serving.Wait()
	})
	h.t.Cleanup(v.disconnect)
	var err error
	v.agent, err = v.Initialize(h.t.Context())
	require.NoError(h.t, err)
	return v
}

func allowOnce(
	context.Context, sdk.RequestPermissionRequest,
) (sdk.RequestPermissionResponse, error) {
	return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeSelected(
		"allow-once")}, nil
}

// see notes an update in short form.
func (v *testClient) see(_ context.Context, u client.Update) {
	var content struct {
		Content struct{ Text string }
	}
	_ = json.Unmarshal(u.Update, &content)
	v.mu.Lock()
	defer v.mu.Unlock()
	switch u.Kind {
	case "user_message_chunk":
		v.seen = append(v.seen, "user "+content.Content.Text)
	case "agent_message_chunk":
		v.seen = append(v.seen, "agent "+content.Content.Text)
	default:
		v.seen = append(v.seen, u.Kind)
		if u.Kind == "available_commands_update" {
			v.announced = append(v.announced, string(u.Update))
		}
	}
}

// shown returns what the client was shown of the conversation since the last call.
func (v *testClient) shown() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	told := []string{}
	for _, s := range v.seen {
		if strings.HasPrefix(s, "user ") || strings.HasPrefix(s, "agent ") {
			told = append(told, s)
		}
	}
	v.seen = nil
	return told
}

// shownBeforeNotice is shown for a session that was started over. It waits until the user is told.
func (v *testClient) shownBeforeNotice() []string {
	v.h.t.Helper()
	notice := -1
	require.Eventually(v.h.t, func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		notice = slices.IndexFunc(v.seen, func(s string) bool {
			return strings.Contains(s, "does not open its own session")
		})
		if notice >= 0 {
			v.seen = slices.Delete(v.seen, notice, notice+1)
		}
		return notice >= 0
	}, patience, time.Millisecond)
	return v.shown()
}

// open opens a new session.
func (v *testClient) open(r workspace.Roots) client.Session {
	v.h.t.Helper()
	s, err := v.NewSession(v.h.t.Context(), client.Setup{Roots: r})
	require.NoError(v.h.t, err)
	return s
}

// load loads a session.
func (v *testClient) load(id string, r workspace.Roots) {
	v.h.t.Helper()
	_, err := v.LoadSession(v.h.t.Context(), id, client.Setup{Roots: r})
	require.NoError(v.h.t, err)
}

// prompt runs a turn and returns what the agent said in it.
func (v *testClient) prompt(id, word string) string {
	v.h.t.Helper()
	v.shown()
	_, err := v.Prompt(v.h.t.Context(), id, sdk.TextBlock(word))
	require.NoError(v.h.t, err)
	return strings.Join(v.shown(), "")
}

// begin sends a prompt, and returns the reason for which its turn ends, or its error.
func (v *testClient) begin(id, word string) <-chan string {
	ended := make(chan string, 1)
	go func() {
		end, err := v.Prompt(context.WithoutCancel(v.h.t.Context()), id, sdk.TextBlock(word))
		if err != nil {
			end.StopReason = sdk.StopReason(err.Error())
		}
		ended <- string(end.StopReason)
	}()
	return ended
}

func (h *system) history(id string) []string {
	var words []string
	for u, err := range sessionstore.WithoutEnds(h.store.History(h.t.Context(), sessionstore.ID(id))) {
		require.NoError(h.t, err)
		require.NotContains(h.t, u.String(), "acp-agent-context",
			"P7: context is not part of the history")
		var p struct {
			Update struct{ Content struct{ Text string } }
		}
		require.NoError(h.t, json.Unmarshal(u.Raw, &p))
		words = append(words, p.Update.Content.Text)
	}
	return words
}

// received returns the methods that the agent received, with their params.
func (h *system) received() []received {
	var list []received
	for _, line := range h.record.Lines(h.t) {
		var m struct {
			Method string
			Params json.RawMessage
		}
		require.NoError(h.t, json.Unmarshal([]byte(line), &m))
		list = append(list, received{m.Method, string(m.Params)})
	}
	return list
}

type received struct{ method, params string }

func methods(list []received) []string {
	var names []string
	for _, r := range list {
		names = append(names, r.method)
	}
	return names
}

func roots(t testing.TB, additional int) workspace.Roots {
	dirs := make([]string, additional)
	for i := range dirs {
		dirs[i] = t.TempDir()
	}
	r, err := workspace.NewRoots(t.TempDir(), dirs)
	require.NoError(t, err)
	return r
}

func with(r workspace.Roots, dirs ...string) workspace.Roots {
	changed, err := workspace.NewRoots(r.Cwd().String(), dirs)
	if err != nil {
		panic(err)
	}
	return changed
}

// dirOf returns the directory in which a system's agent keeps its sessions.
func dirOf(t testing.TB, h *system) string {
	for _, variable := range h.command.Env {
		if config, ok := strings.CutPrefix(variable, simulatedVariable+"="); ok {
			var a abilities
			require.NoError(t, json.Unmarshal([]byte(config), &a))
			return a.Dir
		}
	}
	return ""
}

// through connects a client to package acp with the proxy and an agent behind it.
func through(
	t testing.TB, c process.Command, store sessionstore.Store, o client.Options,
) *testClient {
	h := &system{t: t, command: c, store: store, client: o}
	return h.connect()
}

// SetMode sets a session's mode.
func (v *testClient) SetMode(t testing.TB, id, mode string) string {
	result, err := v.Call(t.Context(), "session/set_mode",
		[]byte(`{"sessionId":"`+id+`","modeId":"`+mode+`"}`))()
	require.NoError(t, err)
	return string(result)
}

// until waits for an update.
func (v *testClient) until(what string) {
	v.h.t.Helper()
	require.Eventually(v.h.t, func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		return strings.Contains(strings.Join(v.seen, "\n"), what)
	}, patience, time.Millisecond)
}

// put writes a file in a root.
func put(t *testing.T, root workspace.Dir, name, text string) string {
	t.Helper()
	path := filepath.Join(root.String(), filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// prompts returns the texts of the blocks of each prompt that the agent received.
func (h *system) prompts() [][]string {
	var all [][]string
	for _, r := range h.received() {
		if r.method != "session/prompt" {
			continue
		}
		var p struct{ Prompt []struct{ Text string } }
		require.NoError(h.t, json.Unmarshal([]byte(r.params), &p))
		var texts []string
		for _, b := range p.Prompt {
			texts = append(texts, b.Text)
		}
		all = append(all, texts)
	}
	return all
}

// lastPrompt returns the last of prompts.
func (h *system) lastPrompt() []string {
	all := h.prompts()
	require.NotEmpty(h.t, all)
	return all[len(all)-1]
}

// announcements returns those that the client was shown since the last call, and waits if there are
// none.
func (v *testClient) announcements() []string {
	v.h.t.Helper()
	v.until("available_commands_update")
	v.mu.Lock()
	defer v.mu.Unlock()
	all := v.announced
	v.announced, v.seen = nil, nil
	return all
}

// announcedSoFar returns the announcements that have come since the last call.
func (v *testClient) announcedSoFar() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := v.announced
	v.announced = nil
	return all
}

// starts returns the flags of the processes that were started, in order.
func (h *system) starts() []string {
	var all []string
	for _, r := range h.received() {
		if r.method == "start" {
			all = append(all, strings.Trim(r.params, `"`))
		}
	}
	return all
}

func (h *system) way(id string) string {
	stored, err := h.store.Get(h.t.Context(), sessionstore.ID(id))
	require.NoError(h.t, err)
	return proxy.Describe(stored.State)
}

// directories returns those of the latest request of a method that the agent received.
func (h *system) directories(method string) (list []string) {
	for _, r := range h.received() {
		if r.method == method {
			var p struct{ AdditionalDirectories []string }
			require.NoError(h.t, json.Unmarshal([]byte(r.params), &p))
			list = p.AdditionalDirectories
		}
	}
	return list
}

func spelled(r workspace.Roots) []string {
	list := []string{}
	for _, dir := range r.Additional().All() {
		list = append(list, dir.String())
	}
	return list
}

func requireEnded(t *testing.T, err error, status int) {
	t.Helper()
	var (
		ended *child.EndedError
		exit  *process.ExitError
	)
	require.ErrorAs(t, err, &ended)
	require.ErrorAs(t, err, &exit)
	require.Equal(t, status, exit.Code)
	for _, text := range []string{"scripted", fmt.Sprintf("exit status %d", status), "try again",
		"run its command in a terminal"} {
		require.ErrorContains(t, err, text)
	}
}

// crash makes the agent exit during a turn.
func (v *testClient) crash(id string) {
	v.h.t.Helper()
	_, err := v.Prompt(v.h.t.Context(), id, sdk.TextBlock("crash"))
	require.ErrorContains(v.h.t, err, "exit status 3")
	require.ErrorContains(v.h.t, err, "try again")
}
