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
		s := serve(b, program)
		tokens := make([]string, users)
		for i := range tokens {
			tokens[i] = s.token(b, fmt.Sprint("user", i), cwd)
		}
		conns := make([]*websocket.Conn, connections)
		failed := make(chan error, connections)
		took := timed(func() {
			var all sync.WaitGroup
			for i := range conns {
				all.Go(func() {
					c, err := websocket.Dial(b.Context(), s.url, tokens[i%users], 1<<20, websocket.Times{})
					if conns[i] = c; err == nil {
						err = work(b, c, cwd, sessions)
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
				closing.Go(func() { _ = c.Close() })
			}
		}
		closing.Wait()
		check(b, s.cmd.Process.Signal(syscall.SIGTERM))
		check(b, s.cmd.Wait())
	}
}

// work opens sessions and prompts in each.
func work(b *testing.B, c *websocket.Conn, cwd string, sessions int) error {
	id := 0
	call := func(method string, params any) (result struct{ SessionID, StopReason string }, err error) {
		id++
		if err := c.Write(b.Context(), []byte(rawrpc.Request(id, method, params))); err != nil {
			return result, err
		}
		for {
			line, err := c.Read()
			if err != nil {
				return result, err
			}
			var m rawrpc.Message
			if err := json.Unmarshal(line, &m); err != nil {
				return result, err
			}
			if string(m.ID) != fmt.Sprint(id) {
				continue
			}
			if err := m.Decode(&result); err != nil {
				return result, fmt.Errorf("%s: %w", method, err)
			}
			return result, nil
		}
	}
	if _, err := call("initialize", map[string]any{"protocolVersion": 1}); err != nil {
		return err
	}
	for range sessions {
		opened, err := call("session/new", map[string]any{"cwd": cwd, "mcpServers": []any{}})
		if err != nil {
			return err
		}
		_, err = call("session/prompt", map[string]any{
			"sessionId": opened.SessionID, "prompt": []any{map[string]string{"type": "text", "text": "/ls"}},
		})
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

// serve starts a server on this machine.
func serve(b *testing.B, program string) *server {
	b.Helper()
	s := &server{program: program, state: filepath.Join(b.TempDir(), "state")}
	s.cmd = exec.Command(program, "serve", "--listen", "127.0.0.1:0", "--state-dir", s.state)
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

// token makes a user and returns the token.
func (s *server) token(b *testing.B, name, within string) string {
	b.Helper()
	out, err := exec.Command(s.program, "tokens", "add", name, "--within", within, "--state-dir", s.state).Output()
	check(b, err)
	return strings.TrimSpace(string(out))
}
