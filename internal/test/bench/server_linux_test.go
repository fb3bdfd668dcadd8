package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/serve/websocket"
)

// BenchmarkServer opens a thousand connections of 25 users to one server, and five sessions with a
// turn on each. No request may fail. It reports how long that took, the server's memory, and its
// descriptors.
func BenchmarkServer(b *testing.B) {
	const connections, users, sessions = 1000, 25, 5
	program, cwd := build(b, "cmd/acp-agent"), b.TempDir()
	for b.Loop() {
		s := serve(b, program, "")
		tokens := make([]string, users)
		for i := range tokens {
			tokens[i] = s.token(b, fmt.Sprint("user", i), cwd)
		}
		conns := make([]*remote, connections)
		failed := make(chan error, connections)
		took := timed(func() {
			var all sync.WaitGroup
			for i := range conns {
				all.Go(func() {
					c, err := s.dial(b, tokens[i%users])
					if conns[i] = c; err == nil {
						err = c.work(b, cwd, sessions)
					}
					if err != nil {
						failed <- err
					}
				})
			}
			all.Wait()
		})
		close(failed)
		for err := range failed {
			b.Error(err)
		}
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid))
		check(b, err)
		b.ReportMetric(took.Seconds(), "s")
		b.ReportMetric(rss(b, s.cmd.Process.Pid), "MiB")
		b.ReportMetric(float64(len(open)), "descriptors")
		var closing sync.WaitGroup
		for _, c := range conns {
			if c != nil {
				closing.Go(func() { _ = c.conn.Close() })
			}
		}
		closing.Wait()
		s.end(b)
	}
}

// remote is a client of the server that sends one request at a time.
type remote struct {
	conn websocket.Conn
	id   int
}

// dial connects a user and initializes the connection.
func (s *server) dial(b *testing.B, token string) (*remote, error) {
	conn, err := websocket.Dial(b.Context(), s.url, token, 16<<20, websocket.Times{})
	if err != nil {
		return nil, err
	}
	r := &remote{conn: conn}
	_, err = r.call(b, "initialize", map[string]any{"protocolVersion": 1})
	return r, err
}

// result has the members of results that benchmarks need.
type result struct{ SessionID, StopReason string }

// call sends a request and waits for its answer.
func (r *remote) call(b *testing.B, method string, params any) (answer result, err error) {
	r.id++
	if err := r.conn.Write(b.Context(), []byte(rawrpc.Request(r.id, method, params))); err != nil {
		return answer, err
	}
	for {
		m, err := r.read()
		if err != nil {
			return answer, err
		}
		if string(m.ID) != fmt.Sprint(r.id) {
			continue
		}
		if err := m.Decode(&answer); err != nil {
			return answer, fmt.Errorf("%s: %w", method, err)
		}
		return answer, nil
	}
}

// read reads a message.
func (r *remote) read() (m rawrpc.Message, err error) {
	line, err := r.conn.Read()
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(line, &m)
}

// open opens a session.
func (r *remote) open(b *testing.B, cwd string) (id string, err error) {
	opened, err := r.call(b, "session/new", map[string]any{"cwd": cwd, "mcpServers": []any{}})
	return opened.SessionID, err
}

// say sends a prompt and waits for the end of its turn.
func (r *remote) say(b *testing.B, session, text string) error {
	_, err := r.call(b, "session/prompt", prompt(session, text))
	return err
}

func prompt(session, text string) map[string]any {
	return map[string]any{"sessionId": session, "prompt": []any{map[string]string{"type": "text", "text": text}}}
}

// work opens sessions and prompts in each.
func (r *remote) work(b *testing.B, cwd string, sessions int) error {
	for range sessions {
		id, err := r.open(b, cwd)
		if err == nil {
			err = r.say(b, id, "/ls")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// server is acp-agent serve.
type server struct {
	program, state, url string
	cmd                 *exec.Cmd
}

// serve starts a server on this machine, with its sessions in a file or at the address of a
// database.
func serve(b *testing.B, program, database string, flags ...string) *server {
	b.Helper()
	s := &server{program: program, state: filepath.Join(b.TempDir(), "state")}
	s.cmd = exec.Command(program, append([]string{"serve", "--listen", "127.0.0.1:0", "--state-dir", s.state}, flags...)...)
	if database != "" {
		s.cmd.Env = append(os.Environ(), "ACP_AGENT_STORE="+database)
	}
	log, err := s.cmd.StderrPipe()
	check(b, err)
	check(b, s.cmd.Start())
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if found := regexp.MustCompile(`serving on (\S+)`).FindStringSubmatch(lines.Text()); found != nil {
			s.url = found[1]
			break
		}
	}
	go func() {
		for lines.Scan() {
			fmt.Fprintln(os.Stderr, lines.Text())
		}
	}()
	return s
}

// end ends the server.
func (s *server) end(b *testing.B) {
	b.Helper()
	check(b, s.cmd.Process.Signal(syscall.SIGTERM))
	check(b, s.cmd.Wait())
}

// token makes a user and returns the token.
func (s *server) token(b *testing.B, name, within string) string {
	b.Helper()
	out, err := exec.Command(s.program, "tokens", "add", name, "--within", within, "--state-dir", s.state).Output()
	check(b, err)
	return strings.TrimSpace(string(out))
}
