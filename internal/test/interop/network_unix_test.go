//go:build unix

package interop

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/test/cable"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// server is acp-agent serve. When the test ends, its exit status is checked.
type server struct {
	t      *testing.T
	state  string
	cmd    *exec.Cmd
	stderr *logtest.Text
	host   string
}

// startServer starts a server on this machine.
func startServer(t *testing.T, args ...string) *server {
	t.Helper()
	return startServerIn(t, filepath.Join(t.TempDir(), "state"), args...)
}

// startServerIn starts a server with a given state directory.
func startServerIn(t *testing.T, state string, args ...string) *server {
	t.Helper()
	s := &server{t: t, state: state, stderr: &logtest.Text{}}
	s.cmd = exec.Command(program.Path(), append([]string{"serve", "--state-dir", s.state,
		"--listen", "127.0.0.1:0"}, args...)...)
	s.cmd.Env = append(os.Environ(), proctest.Env("scripted")...)
	s.cmd.Stderr = s.stderr
	require.NoError(t, s.cmd.Start())
	t.Cleanup(s.stop)
	address := regexp.MustCompile(`serving on wss?://(\S+)/acp`)
	require.Eventually(t, func() bool {
		found := address.FindStringSubmatch(s.stderr.String())
		if found != nil {
			s.host = found[1]
		}
		return found != nil
	}, patience, 10*time.Millisecond)
	return s
}

// stop ends the server as an operator does, unless the test has done so.
func (s *server) stop() {
	if s.cmd.ProcessState == nil {
		require.NoError(s.t, s.cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(s.t, s.cmd.Wait(), "standard error: %s", s.stderr)
	}
}

// tokens runs acp-agent tokens and returns what it prints.
func (s *server) tokens(args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), program.Path(), append(append([]string{"tokens"}, args...), "--state-dir", s.state)...)
	cmd.Stderr = s.stderr
	out, err := cmd.Output()
	require.NoError(s.t, err, "standard error: %s", s.stderr)
	return strings.TrimSpace(string(out))
}

// metrics returns the metrics of a server that was started with --metrics.
func (s *server) metrics() string {
	s.t.Helper()
	address := regexp.MustCompile(`metrics on (http://\S+)`).FindStringSubmatch(s.stderr.String())
	require.NotNil(s.t, address, s.stderr)
	response, err := http.Get(address[1])
	require.NoError(s.t, err)
	defer response.Body.Close()
	metrics, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	return string(metrics)
}

// connect starts a client of the server with a token.
func (s *server) connect(token string) *agent {
	s.t.Helper()
	return startClient(s.t, "ws://"+s.host, token)
}

// startClient starts a client of the server at url.
func startClient(t *testing.T, url, token string, env ...string) *agent {
	t.Helper()
	stderr := &logtest.Text{}
	p, err := program.Start(program.Options{Command: []string{program.Path(), "connect", url},
		Env: append([]string{"ACP_AGENT_TOKEN=" + token}, env...), Stderr: stderr})
	require.NoError(t, err)
	a := &agent{Process: p, t: t, stderr: stderr}
	t.Cleanup(a.leave)
	return a
}

// Clauses N1, N4.
func TestUsersOfAServerSeeOnlyTheirOwn(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	anas, bobs := folder(t, "a.txt", "tangerine\n"), folder(t, "b.txt", "tangerine\n")
	ana := s.connect(s.tokens("add", "ana", "--within", anas)).initialize()
	bob := s.connect(s.tokens("add", "bob", "--within", bobs)).initialize()

	mine := ana.open(anas)
	require.Contains(t, ana.says(mine, "/search tangerine"), "a.txt")
	bob.open(bobs)
	for _, dir := range []string{anas, "/", "/etc", s.state} {
		m := bob.try("session/new", map[string]any{"cwd": dir, "mcpServers": []any{}})
		require.NotNil(t, m.Error, dir)
		require.Equal(t, invalidParams, m.Error.Code, m.Error.Message)
	}
	require.Len(t, bob.list(nil), 1)
	for _, method := range []string{"session/load", "session/resume", "session/fork", "session/prompt"} {
		m := bob.try(method, map[string]any{"sessionId": mine, "cwd": bobs, "mcpServers": []any{}, "prompt": []any{}})
		require.NotNil(t, m.Error, method)
	}
	m := bob.try("session/new", map[string]any{"cwd": bobs, "mcpServers": []any{
		map[string]any{"name": "sh", "command": "/bin/sh", "args": []any{}, "env": []any{}},
	}})
	require.NotNil(t, m.Error, "a server of the client's choice was started")
	bob.call("session/close", sessionParams(mine), nil)
	bob.call("session/delete", sessionParams(mine), nil)
	require.Equal(t, mine, ana.list(nil)[0].SessionID)
	require.Equal(t, "end_turn", ana.prompt(mine, "/roots"))
	require.Contains(t, ana.says(mine, "/worktree topic"), "This server makes no worktrees")
	require.NoDirExists(t, s.state+"-worktrees")
}

func TestTraceOfServerTellsConnectionsApart(t *testing.T) {
	t.Parallel()
	trace := filepath.Join(t.TempDir(), "trace")
	s := startServer(t, "--trace", trace)
	for _, user := range []string{"ana", "bob"} {
		s.connect(s.tokens("add", user, "--within", t.TempDir())).initialize()
	}
	content := dirtest.Read(t, trace)
	process := fmt.Sprintf(" acp-agent[%d] <- ", s.cmd.Process.Pid)
	require.Contains(t, content, process+"editor[1 ana] {")
	require.Contains(t, content, process+"editor[2 bob] {")
}

// The connections of a user share the agent's process, in which each has its own sessions.
func TestConnectionsOfUserShareAgent(t *testing.T) {
	t.Parallel()
	starts := filepath.Join(t.TempDir(), "starts")
	s := startServer(t, "--", "sh", "-c", `echo start >> "$0"; exec "$@"`, starts, program.Path(), "--state-dir", t.TempDir())
	dir := folder(t, "a.txt", "tangerine\n")
	ana, bob := s.tokens("add", "ana", "--within", dir), s.tokens("add", "bob", "--within", dir)
	for i, token := range []string{ana, ana, bob} {
		a := s.connect(token).initialize()
		require.Contains(t, a.says(a.open(dir), "/search tangerine"), "a.txt")
		require.Equal(t, []int{1, 1, 2}[i], strings.Count(dirtest.Read(t, starts), "start"))
	}
}

// The official TypeScript client is a client of a server, in a browser too, and the official server
// is one for connect. Clause N1.
func TestOfficialWebSocketClientAndServer(t *testing.T) {
	t.Parallel()
	packages(t)
	const origin = "https://ui.example.org"
	s := startServer(t, "--origin", origin)
	dir := folder(t)
	node := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(within(t), "node", append([]string{"websocket.mjs"}, args...)...)
		cmd.Dir, cmd.Stderr = node, s.stderr
		return cmd
	}
	out, err := node("client", "ws://"+s.host+"/acp", s.tokens("add", "ana", "--within", dir), dir,
		origin, origin+".evil.example").Output()
	require.NoError(t, err, "standard error: %s", s.stderr)
	var found [3]struct{ StopReason, Said, Failed string }
	lines := json.NewDecoder(bytes.NewReader(out))
	for i := range found {
		require.NoError(t, lines.Decode(&found[i]), "%s", out)
	}
	for _, allowed := range found[:2] {
		require.Equal(t, "end_turn", allowed.StopReason, "%s: standard error: %s", out, s.stderr)
		require.Contains(t, allowed.Said, dir)
	}
	require.NotEmpty(t, found[2].Failed)
	require.Contains(t, s.stderr.String(), "rejected a connection of a web page")

	theirs := node("server", "secret")
	input, output := startPiped(t, theirs)
	url, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err, "standard error: %s", s.stderr)
	a := startClient(t, strings.TrimSpace(url), "secret").initialize()
	require.Contains(t, a.says(a.open(dir), "hello"), "you said: hello")
	a.leave()
	require.NoError(t, input.Close())
	require.NoError(t, theirs.Wait())
}

// A turn whose connection has ended goes on, but not for a user whose token was revoked.
//
// Clauses N1, N2.
func TestRevokedTokenEndsTurns(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--metrics", "127.0.0.1:0", "--", proctest.Executable())
	dir := folder(t)
	token := s.tokens("add", "ana", "--within", dir)
	a := s.connect(token).initialize()
	a.begin(a.open(dir), "wait")
	a.leave()
	require.Contains(t, s.metrics(), "acp_agent_turns 1\n")
	s.tokens("revoke", "ana")
	require.Eventually(t, func() bool { return strings.Contains(s.metrics(), "acp_agent_turns 0\n") },
		patience, 10*time.Millisecond)
}

// audited returns an audit log without the ids of tokens and how long something took.
func audited(t *testing.T, path string) string {
	t.Helper()
	log := dirtest.Read(t, path)
	return regexp.MustCompile(`"token":"\w+",|,"seconds":[\d.e-]+`).ReplaceAllString(log, "")
}

// An operator sees what the users do, and each user may have an agent of their own.
func TestServerKeepsRecords(t *testing.T) {
	t.Parallel()
	dir, more := folder(t), folder(t)
	record := filepath.Join(t.TempDir(), "audit.jsonl")
	config := configFile(t, map[string]any{"agents": map[string]any{
		"scripted": map[string]any{"command": proctest.Executable()}}})
	s := startServer(t, "--config", config, "--audit", record, "--metrics", "127.0.0.1:0", "--log-json", "--log-level", "info")
	ana := s.connect(s.tokens("add", "ana", "--within", dir, "--within", more)).initialize()
	bob := s.connect(s.tokens("add", "bob", "--within", dir, "--agent", "scripted", "--config", config)).initialize()

	session, from := ana.open(dir), ana.Count()
	ana.send(rawrpc.Request(ana.NextID(), "session/prompt", promptParams(session, "/roots add "+more)))
	asked, at := ana.await(from, func(m rawrpc.Message) bool { return m.Method == "session/request_permission" })
	ana.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"allow-once"}}}`, asked.ID))
	ana.await(at, func(m rawrpc.Message) bool { return strings.Contains(m.Raw, "end_turn") })
	ana.call("session/delete", sessionParams(session), nil)
	require.Contains(t, bob.says(bob.open(dir), "say tangerine"), `"text":"tangerine"`)
	require.NotNil(t, bob.try("session/new", map[string]any{"cwd": "/", "mcpServers": []any{}}).Error)

	metrics := s.metrics()
	require.Contains(t, metrics, "acp_agent_connections 2\n")
	require.Contains(t, metrics, "acp_agent_child_processes 1\n")
	require.Contains(t, metrics, "acp_agent_store_usable 1\n")
	require.Contains(t, metrics, `acp_agent_request_duration_seconds_count{method="session/prompt",result="ok"} 2`)

	audit := audited(t, record)
	for _, want := range []string{
		`"msg":"connected","user":"ana"`,
		`"msg":"opened a session","user":"ana","session":"` + session + `","folders":["` + dir + `","` + more + `"]}`,
		`"answer":"allow_once"}`, `"msg":"asked to delete a session","user":"ana","session":"` + session + `"}`,
		`"msg":"opened a session","user":"bob"`,
		`"msg":"could not open a session","user":"bob","method":"session/new","session":"","error":"cwd \"/\" is refused by policy`,
	} {
		require.Contains(t, audit, want)
	}
	require.NotContains(t, audit, "tangerine")
	require.Contains(t, s.stderr.String(), `"msg":"connected","user":"ana"`)
}

// Somebody without a token fills neither the log nor the audit, and hides nobody in them.
//
// Clause N6.
func TestRefusalsAreCounted(t *testing.T) {
	t.Parallel()
	record := filepath.Join(t.TempDir(), "audit.jsonl")
	s := startServer(t, "--audit", record, "--log-json")
	dir := folder(t)
	const refusals = 500
	for range refusals {
		response, err := http.Get("http://" + s.host + "/acp")
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusUnauthorized, response.StatusCode)
	}
	ana := s.connect(s.tokens("add", "ana", "--within", dir)).initialize()
	ana.open(dir)
	ana.leave()
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, s.cmd.Wait())
	audit := dirtest.Read(t, record)
	for name, lines := range map[string]string{"log": s.stderr.String(), "audit": audit} {
		shown := strings.Count(lines, `"msg":"rejected a connection without a valid token"`)
		require.Less(t, shown, refusals/10, name) // some minutes may have begun
		require.Positive(t, shown, name)
		require.Contains(t, lines, `"omitted":"rejected a connection without a valid token"`, name)
	}
	require.Contains(t, audit, `"msg":"opened a session","user":"ana"`)
}

// ready returns the status of the answer to /readyz.
func (s *server) ready() int {
	s.t.Helper()
	response, err := http.Get("http://" + s.host + "/readyz")
	require.NoError(s.t, err)
	_ = response.Body.Close()
	return response.StatusCode
}

// drain asks the server to end, and waits until it waits for running turns.
func (s *server) drain() {
	s.t.Helper()
	require.NoError(s.t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.Eventually(s.t, func() bool { return s.ready() == 503 }, patience, 10*time.Millisecond)
}

// A server that is asked to end waits for the running turn, even if its connection is lost.
func TestServerDrains(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--", proctest.Executable())
	dir := folder(t)
	wire := cable.Lay(t, "ws://"+s.host)
	a := startClient(t, wire.URL, s.tokens("add", "ana", "--within", dir)).initialize()
	session := a.open(dir)
	require.Equal(t, 200, s.ready())
	turn, from := a.begin(session, "wait")
	s.drain()
	wire.Cut()
	fresh, sent := a.NextID(), a.Count()
	a.send(rawrpc.Request(fresh, "session/new", map[string]any{"cwd": dir, "mcpServers": []any{}}))
	a.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"` + session + `"}}`)
	answer, err := a.Response(within(t), from, turn)
	require.NoError(t, err)
	require.Equal(t, "cancelled", stopReason(t, answer))
	require.NoError(t, s.cmd.Wait())

	// The next server has what the editor has opened, and answers what the first one did not begin.
	startServerIn(t, s.state, "--listen", s.host, "--", proctest.Executable())
	answer, err = a.Response(within(t), sent, fresh)
	require.NoError(t, err)
	require.Nil(t, answer.Error)
	require.Equal(t, "end_turn", a.prompt(session, "say tangerine"))
}

// A server that is asked twice does not wait.
func TestServerEndsWhenAskedTwice(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--grace", "1h", "--", proctest.Executable())
	dir := folder(t)
	a := s.connect(s.tokens("add", "ana", "--within", dir)).initialize()
	turn, from := a.begin(a.open(dir), "wait")
	s.drain()
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	answer, err := a.Response(within(t), from, turn)
	require.NoError(t, err)
	require.Equal(t, "cancelled", stopReason(t, answer))
	require.NoError(t, s.cmd.Wait())
}

// What somebody without a token sends, or does not read, holds nothing for long.
func TestRequestsThatDoNotEnd(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	var ending sync.WaitGroup
	for _, request := range []string{
		"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc",
		"GET /acp HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
		strings.Repeat("GET /none HTTP/1.1\r\nHost: x\r\n\r\n", 1<<20),
	} {
		conn, err := net.Dial("tcp", s.host)
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
		ending.Go(func() {
			_, err := io.WriteString(conn, request)
			if err == nil {
				_, err = io.Copy(io.Discard, conn)
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the server keeps the connection of %.30q", request)
			}
		})
	}
	ending.Wait()
}

func TestServerBehindProxySaysWhoIsBehindIt(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--behind-proxy")
	request, err := http.NewRequest(http.MethodGet, "http://"+s.host+"/acp", nil)
	require.NoError(t, err)
	request.Header.Set("X-Forwarded-For", "203.0.113.7")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusUnauthorized, response.StatusCode)
	require.Eventually(t, func() bool { // the log may arrive after the answer
		return regexp.MustCompile(`rejected a connection.* from=127.0.0.1:\d+ forwardedFor=203.0.113.7`).
			MatchString(s.stderr.String())
	}, patience, 10*time.Millisecond)
}

// The network fails again and again during a turn, and neither side notices. Another window of the
// user, whose network works, is not delayed; the first one stays a viewer.
func TestTurnSurvivesTheNetwork(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--", proctest.Executable())
	dir := folder(t)
	token := s.tokens("add", "ana", "--within", dir)
	wire := cable.Lay(t, "ws://"+s.host)
	a := startClient(t, wire.URL, token).initialize()
	session, from := a.open(dir), a.Count()
	other := s.connect(token).initialize()
	other.call("session/load", map[string]any{"sessionId": session, "cwd": dir, "mcpServers": []any{}}, nil)
	id := a.NextID()
	const updates = 5000
	a.send(rawrpc.Request(id, "session/prompt", promptParams(session, fmt.Sprint("stream ", updates))))
	for seen := 0; seen < updates; {
		seen = strings.Count(a.updates(from, session), "agent_message_chunk")
		wire.Cut()
		time.Sleep(20 * time.Millisecond)
	}
	m, err := a.Response(within(t), from, id)
	require.NoError(t, err)
	require.Equal(t, "end_turn", stopReason(t, m))
	require.Equal(t, updates, strings.Count(a.updates(from, session), "agent_message_chunk"))
	require.Equal(t, "end_turn", other.prompt(session, "say more"))
	a.await(from, func(m rawrpc.Message) bool { return strings.Contains(m.Raw, `"text":"more"`) })
	said := regexp.MustCompile(`"text":"(update \d+\\n|more)"`)
	require.Equal(t, said.FindAllString(a.updates(from, session), -1), said.FindAllString(other.updates(0, session), -1))
}

// Somebody starts a turn, leaves, and opens the session elsewhere: the turn goes on there.
func TestTurnIsJoinedFromAnotherMachine(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--", proctest.Executable())
	dir := folder(t)
	token := s.tokens("add", "ana", "--within", dir)
	for name, leave := range map[string]func(*agent, *cable.Cable){
		"killed":        func(a *agent, _ *cable.Cable) { a.kill() },
		"without cable": func(_ *agent, wire *cable.Cable) { wire.Pull() },
	} {
		t.Run(name, func(t *testing.T) {
			wire := cable.Lay(t, "ws://"+s.host)
			desk := startClient(t, wire.URL, token).initialize()
			session := desk.open(dir)
			desk.begin(session, "wait")
			leave(desk, wire)

			laptop := s.connect(token).initialize()
			from := laptop.Count()
			laptop.call("session/load", map[string]any{"sessionId": session, "cwd": dir, "mcpServers": []any{}}, nil)
			require.Regexp(t, waiting, laptop.updates(from, session))
			from = laptop.Count()
			laptop.send(rawrpc.Notification("session/cancel", sessionParams(session)))
			laptop.await(from, func(m rawrpc.Message) bool { return strings.Contains(m.Raw, `"stopReason":"cancelled"`) })
			require.Equal(t, "end_turn", laptop.prompt(session, "say more"))
			if !desk.over {
				desk.kill()
			}
		})
	}
}

// Real clients have a session open at the same time: two of the official SDK, and acpx beside an
// editor.
//
// Clause N7.
func TestWindowsOfRealClients(t *testing.T) {
	t.Parallel()
	packages(t)
	s := startServer(t, "--", proctest.Executable())
	dir := folder(t)
	token := s.tokens("add", "ana", "--within", dir)
	t.Run("TypeScript", func(t *testing.T) {
		cmd := exec.CommandContext(within(t), "node", "websocket.mjs", "windows", "ws://"+s.host+"/acp", token, dir)
		cmd.Dir, cmd.Stderr = node, s.stderr
		out, err := cmd.Output()
		require.NoError(t, err, "standard error: %s", s.stderr)
		var found struct {
			StopReasons  []string
			Desk, Laptop struct {
				User, Agent []string
				Asked       int
			}
		}
		require.NoError(t, json.Unmarshal(out, &found))
		require.Equal(t, []string{"end_turn", "end_turn", "cancelled", "end_turn"}, found.StopReasons)
		require.Equal(t, []string{"say two"}, found.Desk.User)
		require.Equal(t, []int{1, 1}, []int{found.Desk.Asked, found.Laptop.Asked})
		require.Equal(t, strings.Join(found.Desk.Agent, ""), strings.Join(found.Laptop.Agent, ""))
		require.Contains(t, strings.Join(found.Laptop.Agent, ""), "selected")
		require.Equal(t, []string{"say one", "wait"}, []string{found.Laptop.User[0], found.Laptop.User[2]})
	})
	t.Run("acpx", func(t *testing.T) {
		desk := s.connect(token).initialize()
		session, from := desk.open(dir), desk.Count()
		a := acpxOn(t, "", dir)
		a.command = program.Path() + " connect ws://" + s.host + " --token-file " + file(t, "token", token)
		a.run("sessions", "new", "--resume-session", session)
		require.Contains(t, a.run("prompt", "say from acpx"), "from acpx")
		require.Contains(t, desk.updates(from, session), `"text":"say from acpx"`)
		require.Equal(t, "end_turn", desk.prompt(session, "say from the desk"))
	})
}

// Clause N1.
func TestServerWithCertificate(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	s := startServer(t, "--tls-cert", cert, "--tls-key", key)
	dir := folder(t)
	token := s.tokens("add", "ana", "--within", dir)
	startClient(t, "https://"+s.host, token, "SSL_CERT_FILE="+cert).initialize().open(dir)
}

// A server that is started again does not have the connections of before. Editors are told, in the
// answer to what they wait for, and go on.
func TestServerIsStartedAgain(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--", proctest.Executable())
	dir := folder(t)
	a := s.connect(s.tokens("add", "ana", "--within", dir)).initialize()
	session := a.open(dir)
	turn, from := a.begin(session, "wait")
	require.NoError(t, s.cmd.Process.Kill())
	_ = s.cmd.Wait()
	startServerIn(t, s.state, "--listen", s.host, "--", proctest.Executable())
	answer, err := a.Response(within(t), from, turn)
	require.NoError(t, err)
	require.NotNil(t, answer.Error)
	require.Contains(t, answer.Error.Message, "the connection was lost: the server answered 410 Gone: "+
		"the server no longer has this connection; acp-agent connects again: send the message again")
	require.Equal(t, "end_turn", a.prompt(session, "say tangerine"))
}

// certificate returns files with a certificate for 127.0.0.1 and with its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	write := func(name, kind string, content []byte) string {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600))
		return path
	}
	return write("cert.pem", "CERTIFICATE", signed), write("key.pem", "PRIVATE KEY", encoded)
}
