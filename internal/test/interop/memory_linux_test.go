package interop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
)

// memory returns a figure of the program's memory in MiB: VmRSS is the current one and VmHWM its
// maximum.
func (a *agent) memory(name string) int {
	a.t.Helper()
	return memoryOf(a.t, a.PID(), name)
}

func memoryOf(t *testing.T, pid int, name string) int {
	t.Helper()
	status := dirtest.Read(t, fmt.Sprintf("/proc/%d/status", pid))
	found := regexp.MustCompile(name + `:\s+(\d+) kB`).FindSubmatch([]byte(status))
	require.NotNil(t, found)
	n, err := strconv.Atoi(string(found[1]))
	require.NoError(t, err)
	return n >> 10
}

// Clause W3.
func TestMemoryOfALongLine(t *testing.T) {
	const length = 60 << 20
	for _, c := range []struct {
		name string
		args []string
		most int // MiB
	}{
		{"W3/answered here", nil, length >> 20 * 5 / 2},
		{"W3/passed on to an agent", behind(), length >> 20 * 5 / 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := start(t, c.args...).initialize()
			session := a.open(folder(t))
			before := a.memory("VmRSS")
			m := a.try("session/unknown", json.RawMessage(`{"sessionId":"`+session+`","text":"`+strings.Repeat("x", length)+`"}`))
			require.NotNil(t, m.Error)
			require.LessOrEqual(t, a.memory("VmHWM")-before, c.most)
		})
	}
}

// Memory that a long message took is given back soon after it.
//
// Clause W3.
func TestMemoryIsGivenBack(t *testing.T) {
	t.Parallel()
	a := start(t).initialize()
	before := a.memory("VmRSS")
	m := a.try("session/unknown", map[string]string{"text": strings.Repeat("x", 50<<20)})
	require.NotNil(t, m.Error)
	require.Greater(t, a.memory("VmHWM"), before+50)
	require.Eventually(t, func() bool { return a.memory("VmRSS") < before+25 }, patience,
		100*time.Millisecond)
}

// The client sends long requests and reads nothing. Together they are longer than the memory that
// the program may take, which is more than twice of what it takes.
//
// Clause W3.
func TestMemoryOfAClientThatDoesNotRead(t *testing.T) {
	const (
		requests = 60
		length   = 3 << 20
		most     = 150 // MiB, of 180
	)
	text := strings.Repeat("x", length)
	for _, c := range []struct {
		name   string
		args   []string
		before []string
		method string
		params string
	}{
		{"editor", []string{"--state-dir", t.TempDir()}, []string{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`,
			`{"jsonrpc":"2.0","id":2,"method":"session/new","params":` +
				`{"cwd":` + quoted(folder(t)) + `,"mcpServers":[]}}`,
		}, "session/prompt", `{"sessionId":%q,"prompt":[{"type":"text","text":"`},
		{"MCP client", []string{"mcp", "--dir", folder(t)}, []string{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":` +
				`"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
		}, "tools/call", `{"name":"find_files","arguments":{"pattern":"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), program.Path(), c.args...)
			in, out := startPiped(t, cmd)
			defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
			lines := bufio.NewScanner(out)
			for _, line := range c.before {
				_, err := fmt.Fprintln(in, line)
				require.NoError(t, err)
				require.True(t, lines.Scan())
			}
			var opened struct{ Result struct{ SessionID string } }
			require.NoError(t, json.Unmarshal(lines.Bytes(), &opened))
			params := c.params + text + `"}`
			if id := opened.Result.SessionID; id != "" {
				params = fmt.Sprintf(c.params, id) + text + `"}]}`
			} else {
				params += `}`
			}
			var sent atomic.Int64
			go func() {
				for i := range requests {
					if _, err := fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n",
						i+10, c.method, params); err != nil {
						return
					}
					sent.Add(1)
				}
			}()
			require.Eventually(t, func() bool { return sent.Load() > 1 }, patience, 100*time.Millisecond)
			// The program may take all of them, or stop reading.
			for before := int64(-1); sent.Load() != before && sent.Load() < requests; {
				before = sent.Load()
				time.Sleep(2 * time.Second)
			}
			require.LessOrEqual(t, memoryOf(t, cmd.Process.Pid, "VmHWM"), most)
		})
	}
}
