package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/explore"
	"github.com/acp-agent/acp-agent/internal/serve/loglimit"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
	"github.com/acp-agent/acp-agent/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host is a server that runs until the test ends.
type host struct {
	*Server
	t          *testing.T
	address    string
	log, audit *logtest.Text
	dir        string // of the tokens
	stop       func() // ends the server
}

// start starts a server on which change has the last word.
func start(t *testing.T, change ...func(*Options)) *host {
	t.Helper()
	h := &host{t: t, log: &logtest.Text{}, audit: &logtest.Text{}, dir: t.TempDir()}
	store := sqlite.NewMemory()
	audit, endAudit := loglimit.New(slog.New(slog.NewJSONHandler(h.audit, nil)), loglimit.Omit)
	o := Options{
		Accounts: NewAccounts(h.dir),
		Serving:  func(User) (acp.Options, error) { return acp.Options{Backend: explore.New}, nil },
		Store:    store, Limits: DefaultLimits(), MaxLine: 1 << 20, Memory: 8 << 20, Audit: audit,
		Log: slog.New(slog.NewTextHandler(h.log, nil)), AuditErr: func() error { return nil },
	}
	for _, f := range change {
		f(&o)
	}
	h.serve(o, "127.0.0.1:0")
	t.Cleanup(func() {
		h.stop()
		endAudit()
		require.NoError(t, store.Close())
	})
	return h
}

// serve starts a server at an address.
func (h *host) serve(o Options, address string) {
	h.t.Helper()
	h.Server = NewServer(o)
	listener, err := net.Listen("tcp", address)
	require.NoError(h.t, err)
	h.address = listener.Addr().String()
	ctx, end := context.WithCancel(context.WithoutCancel(h.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- h.Server.Serve(ctx, listener) }()
	h.stop = sync.OnceFunc(func() {
		end()
		assert.NoError(h.t, <-ended) // FailNow would be a panic here
	})
}

// restart ends the server and starts it again.
func (h *host) restart() {
	h.t.Helper()
	h.stop()
	h.serve(h.options, h.address)
}

// add makes a user who may open dirs, and returns the token.
func (h *host) add(name string, dirs ...string) string {
	h.t.Helper()
	within, err := workspace.ParseDirs(dirs)
	require.NoError(h.t, err)
	require.NoError(h.t, h.options.Accounts.Create(Account{Name: name, Within: within}))
	return h.another(name)
}

// another makes another token of a user, and returns it.
func (h *host) another(name string) string {
	h.t.Helper()
	secret, err := h.options.Accounts.AddToken(name, Token{})
	require.NoError(h.t, err)
	return secret
}

// tokens returns the tokens of a user.
func (h *host) tokens(name string) []Token {
	h.t.Helper()
	all, err := h.options.Accounts.Tokens(name)
	require.NoError(h.t, err)
	return all
}

// get requests a path with a header, and returns the status and the body.
func (h *host) get(path, authorization string) (status int, body string) {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, "http://"+h.address+path, nil)
	require.NoError(h.t, err)
	r.Header.Set("Authorization", authorization)
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(r)
	require.NoError(h.t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	require.NoError(h.t, err)
	return response.StatusCode, string(content)
}

// editor is an editor at the other end of a link.
type editor struct {
	t     *testing.T
	in    *io.PipeWriter
	lines *bufio.Reader
	ended chan error
	id    int
}

// connect connects an editor to the server at a URL.
func connect(t *testing.T, url, secret string) *editor {
	t.Helper()
	url, err := ParseURL(url)
	require.NoError(t, err)
	link, err := Dial(t.Context(), url, secret, 1<<20)
	require.NoError(t, err)
	return follow(t, link)
}

// follow passes messages over a link.
func follow(t *testing.T, link *Link) *editor {
	in, input := io.Pipe()
	output, out := io.Pipe()
	e := &editor{t: t, in: input, lines: bufio.NewReader(output), ended: make(chan error, 1)}
	go func() {
		err := link.Pass(context.WithoutCancel(t.Context()), in, out)
		_, _ = in.Close(), out.Close()
		e.ended <- err
		close(e.ended)
	}()
	t.Cleanup(func() {
		_ = input.Close()
		_, _ = io.Copy(io.Discard, e.lines)
		<-e.ended
	})
	return e
}

// answer is a response.
type answer struct {
	ID     json.RawMessage
	Method string
	Result json.RawMessage
	Error  failure
}

// failure is the error of a response.
type failure struct {
	Message string
	Data    json.RawMessage
}

// call sends a request, and returns the answer.
func (e *editor) call(method string, params any) answer {
	e.t.Helper()
	e.id++
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": e.id, "method": method, "params": params})
	require.NoError(e.t, err)
	e.send(string(line))
	for {
		var a answer
		require.NoError(e.t, json.Unmarshal([]byte(e.line()), &a))
		if a.Method != "" || string(a.ID) != fmt.Sprint(e.id) {
			continue
		}
		if strings.HasSuffix(a.Error.Message, "send the message again") {
			return e.call(method, params) // the server had read it when the connection ended
		}
		return a
	}
}

// send writes a line.
func (e *editor) send(line string) {
	e.t.Helper()
	_, err := io.WriteString(e.in, line+"\n")
	require.NoError(e.t, err)
}

// line reads a line.
func (e *editor) line() string {
	e.t.Helper()
	line, err := e.lines.ReadString('\n')
	require.NoError(e.t, err)
	return line
}

// initialize begins the conversation.
func (e *editor) initialize() *editor {
	e.t.Helper()
	require.Empty(e.t, e.call("initialize", map[string]any{"protocolVersion": 1}).Error)
	return e
}

// lives checks that the connection is in use.
func (e *editor) lives() {
	e.t.Helper()
	require.Empty(e.t, e.call("session/list", map[string]any{}).Error)
}

// open opens a session.
func (e *editor) open(cwd string) answer {
	e.t.Helper()
	return e.call("session/new", map[string]any{"cwd": cwd, "mcpServers": []any{}})
}

// end waits until the connection has ended, and returns why.
func (e *editor) end() error {
	_, _ = io.Copy(io.Discard, e.lines)
	return <-e.ended
}

func TestServerThatEndsAcceptsNothing(t *testing.T) {
	h := start(t)
	secret := h.add("ana")
	status, _ := h.get("/readyz", "")
	require.Equal(t, http.StatusOK, status)
	h.draining.Store(true)
	status, body := h.get("/readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, shuttingDown)
	status, _ = h.get("/healthz", "")
	require.Equal(t, http.StatusOK, status)
	status, body = h.get(Path, "Bearer "+secret)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, shuttingDown)
}

func TestServerEndsConnections(t *testing.T) {
	h := start(t, func(o *Options) { o.Grace = time.Hour })
	link, err := Dial(t.Context(), "ws://"+h.address+Path, h.add("ana"), 1<<20)
	require.NoError(t, err)
	link.patience = time.Millisecond
	e := follow(t, link).initialize()
	h.stop()
	require.ErrorContains(t, e.end(), "the server closed the connection, and connecting again failed: ")
}

func TestMetricsAreServed(t *testing.T) {
	h := start(t)
	connect(t, "ws://"+h.address, h.add("ana")).initialize()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer h.ServeMetrics(listener)()
	h.address = listener.Addr().String()
	_, body := h.get("/metrics", "")
	require.Contains(t, body, "\nacp_agent_connections 1\n")
	require.Contains(t, body, `acp_agent_request_duration_seconds_count{method="initialize",result="ok"} 1`)
	status, _ := h.get("/", "")
	require.Equal(t, http.StatusNotFound, status)
}

// damage makes the token of a user unreadable, or readable again.
func (h *host) damage(name string) (repair func()) {
	h.t.Helper()
	path := filepath.Join(h.dir, name+suffix)
	content := dirtest.Read(h.t, path)
	require.NoError(h.t, os.WriteFile(path, []byte("{"), 0o600))
	return func() { require.NoError(h.t, os.WriteFile(path, []byte(content), 0o600)) }
}

// Sessions of users are deleted when they are too old, while the server runs. Those of the
// machine's own user are not.
func TestOldSessionsAreDeleted(t *testing.T) {
	dir := t.TempDir()
	h := start(t, func(o *Options) { o.DeleteAfter = 90 * 24 * time.Hour })
	ana := connect(t, "ws://"+h.address, h.add("ana", dir)).initialize()
	used, unused := ana.open(dir).id(t), ana.open(dir).id(t)
	require.Empty(t, ana.say(used, "/ls").Error)
	theirs, err := h.options.Store.For("ana").Get(t.Context(), sessionstore.ID(used))
	require.NoError(t, err)
	_, err = h.options.Store.Create(t.Context(), sessionstore.Session{
		ID: "local", Agent: sessionstore.Agent{Kind: "explore"}, Keys: theirs.Keys})
	require.NoError(t, err)
	stored := func(owner string) (ids []string) {
		page, err := h.options.Store.For(owner).List(t.Context(), sessionstore.Query{})
		require.NoError(t, err)
		for _, s := range page.Sessions {
			ids = append(ids, string(s.ID))
		}
		return ids
	}
	after := func(days int) []string {
		require.NoError(t, h.deleteOld(t.Context(), time.Now().Add(time.Duration(days)*24*time.Hour)))
		return stored("ana")
	}
	require.ElementsMatch(t, []string{used, unused}, after(29))
	require.Equal(t, []string{used}, after(31))
	require.Equal(t, []string{used}, after(89))
	require.NoError(t, h.options.Accounts.Revoke("ana"))
	require.Empty(t, after(91), "of a user who was revoked, too")
	require.Equal(t, []string{"local"}, stored(""))
	require.Equal(t, 2, h.audit.Count(`"msg":"deleted old sessions","user":"ana","sessions":1`))
}
