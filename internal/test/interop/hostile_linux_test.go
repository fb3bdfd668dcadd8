package interop

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// dial connects to the server as no editor does.
func (s *server) dial(token string) *websocket.Conn {
	s.t.Helper()
	conn, _, err := websocket.Dial(within(s.t), "ws://"+s.host+"/acp", &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer " + token}},
	})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = conn.CloseNow() })
	return conn
}

// One user sends a message on each of many connections and ends none of them. The server takes no
// more memory for that than it may, and another user goes on.
//
// Clause N6.
func TestUnfinishedMessagesOfOneUser(t *testing.T) {
	const length, connections, memory = 8 << 20, 60, 64 << 20
	s := startServer(t, "--max-line", strconv.Itoa(length), "--message-memory", strconv.Itoa(memory))
	dir := folder(t)
	eve, bob := s.tokens("add", "eve", "--within", dir), s.connect(s.tokens("add", "bob", "--within", dir)).initialize()
	session := bob.open(dir)
	require.Equal(t, "end_turn", bob.prompt(session, "/ls"))
	before := memoryOf(t, s.cmd.Process.Pid, "VmHWM")
	part := []byte(`{"text":"` + strings.Repeat("x", length-1000))
	for i := range connections {
		conn := s.dial(eve)
		go func() {
			if w, err := conn.Writer(t.Context(), websocket.MessageText); err == nil {
				_, _ = w.Write(part) // and no end
			}
		}()
		if i%10 == 0 {
			require.Equal(t, "end_turn", bob.prompt(session, "/ls"))
		}
	}
	require.Equal(t, "end_turn", bob.prompt(session, "/ls"))
	// All of them are 480 MiB. Copies while they arrive and what is collected later count too.
	require.Less(t, memoryOf(t, s.cmd.Process.Pid, "VmHWM")-before, 3*memory>>20)
}

// One user's connections each want a process of the agent. There are only as many as the user may
// have, and another user gets one.
//
// Clause N6.
func TestProcessesOfOneUser(t *testing.T) {
	const limit = 3
	s := startServer(t, "--max-agents-per-user", strconv.Itoa(limit), "--metrics", "127.0.0.1:0", "--", proctest.Executable())
	dir := folder(t)
	eve := s.tokens("add", "eve", "--within", dir)
	refused := 0
	for i := range 20 {
		conn := s.dial(eve)
		request := rawrpc.Request(1, "initialize", map[string]any{"protocolVersion": 1,
			"clientCapabilities": map[string]any{"_meta": map[string]any{"n": i}, "fs": map[string]any{"readTextFile": i%2 == 0, "writeTextFile": i%4 < 2}, "terminal": i%8 < 4}})
		require.NoError(t, conn.Write(within(t), websocket.MessageText, []byte(request)))
		_, answer, err := conn.Read(within(t))
		require.NoError(t, err)
		if strings.Contains(string(answer), "too_many_processes") {
			refused++
		}
		running := regexp.MustCompile(`acp_agent_child_processes (\d+)`).FindStringSubmatch(s.metrics())
		require.NotNil(t, running)
		n, err := strconv.Atoi(running[1])
		require.NoError(t, err)
		require.LessOrEqual(t, n, limit)
	}
	require.Positive(t, refused)
	bob := s.connect(s.tokens("add", "bob", "--within", dir)).initialize()
	require.Equal(t, "end_turn", bob.prompt(bob.open(dir), "say tangerine"))
	children := dirtest.Read(t, fmt.Sprintf("/proc/%d/task/%[1]d/children", s.cmd.Process.Pid))
	require.LessOrEqual(t, len(strings.Fields(children)), limit+1)
}
