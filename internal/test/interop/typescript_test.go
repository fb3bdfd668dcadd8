package interop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// outcome is a check that a client made.
type outcome struct {
	Name   string
	OK     bool
	Detail json.RawMessage
}

// drive runs a TypeScript client and returns the lines of each process that it started. Its checks
// must be those of checks.txtar, and pass.
func drive(t *testing.T, client string) [][]rawrpc.Line {
	t.Helper()
	packages(t)
	cwd, first, second := folder(t, "a.txt", "tangerine\n"), folder(t, "b.txt", "tangerine\n"), folder(t, "c/d.txt", "tangerine\n")
	record := filepath.Join(t.TempDir(), "record")
	cmd := exec.CommandContext(within(t), "node", client, record, cwd, first, second, "--",
		program.Path(), "--state-dir", filepath.Join(t.TempDir(), "state"))
	cmd.Dir = node
	self, err := json.Marshal([]string{proctest.Executable()})
	require.NoError(t, err)
	var stdout, stderr bytes.Buffer
	cmd.Env = append(os.Environ(), proctest.Env("scripted", "BEHIND="+string(self))...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	failed := cmd.Run()
	outcomes := map[string]outcome{}
	for line := range strings.Lines(stdout.String()) {
		var o outcome
		require.NoError(t, json.Unmarshal([]byte(line), &o), line)
		if before, again := outcomes[o.Name]; again {
			o.OK = o.OK && before.OK
		}
		outcomes[o.Name] = o
		if !o.OK {
			failed = nil // the check tells
		}
	}
	require.NoError(t, failed, "the client failed: %s%s", &stdout, &stderr)
	checks, err := txtar.ParseFile(filepath.Join(node, "checks.txtar"))
	require.NoError(t, err)
	at := slices.IndexFunc(checks.Files, func(f txtar.File) bool { return f.Name == client })
	expected := strings.Split(strings.TrimSpace(string(checks.Files[at].Data)), "\n")
	for _, name := range expected {
		t.Run(name, func(t *testing.T) {
			o, made := outcomes[name]
			require.True(t, made, "the check was not made")
			require.True(t, o.OK, "%s", o.Detail)
		})
	}
	require.Len(t, outcomes, len(expected), "checks.txtar lacks a check of the client")
	return recorded(t, record)
}

// recorded reads the client's record.
func recorded(t *testing.T, path string) [][]rawrpc.Line {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	var processes [][]rawrpc.Line
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		mark, text, _ := strings.Cut(lines.Text(), " ")
		if mark == "#" {
			processes = append(processes, nil)
			continue
		}
		last := &processes[len(processes)-1]
		*last = append(*last, rawrpc.Line{FromAgent: mark == "<", Text: text})
	}
	require.NoError(t, lines.Err())
	return processes
}

// everyLine sees that what processes wrote is valid.
func everyLine(t *testing.T, processes [][]rawrpc.Line) {
	t.Helper()
	for _, lines := range processes {
		require.NotEmpty(t, lines)
		valid(t, lines)
	}
}

func TestTypeScriptClient(t *testing.T) {
	t.Parallel()
	processes := drive(t, "client.mjs")
	require.Len(t, processes, 3)
	t.Run("W1/every line is valid", func(t *testing.T) { everyLine(t, processes) })
}

// Each request that makes a session active is the first of a process, which was started for it.
func TestTypeScriptClientStoredSessions(t *testing.T) {
	t.Parallel()
	processes := drive(t, "lifecycle.mjs")
	t.Run("W1/every line is valid", func(t *testing.T) { everyLine(t, processes) })
}

// What the agent wrote reaches both clients byte for byte, except what needs a capability that the
// client has not declared.
func TestTypeScriptClientCapabilities(t *testing.T) {
	t.Parallel()
	processes := drive(t, "declares.mjs")
	require.Len(t, processes, 4)
	for name, live := range map[string][]rawrpc.Line{"everything": processes[0], "nothing": processes[2]} {
		t.Run("A37/"+name+", byte for byte", func(t *testing.T) {
			written, shown := played(t, live, name == "everything")
			require.NotEmpty(t, written)
			require.Equal(t, written, shown)
		})
	}
}

// played returns the updates that the agent was told to play, without those that need a capability
// if the client declares none, and those that the client was shown instead, with the agent's ids.
func played(t *testing.T, lines []rawrpc.Line, declares bool) (written, shown []string) {
	t.Helper()
	needs := map[string]bool{"session_info_update": true, "available_commands_update": true} // the program's own
	for _, kind := range protocol.UpdateKinds() {
		needs[kind.Name] = needs[kind.Name] || kind.Needs != "" && !declares
	}
	var session string
	for _, line := range lines {
		var m struct {
			Method string
			Params struct {
				SessionID string
				Prompt    []struct{ Text string }
				Update    struct {
					SessionUpdate string
					Content       json.RawMessage
				}
			}
		}
		require.NoError(t, json.Unmarshal([]byte(line.Text), &m))
		switch p := m.Params; {
		case m.Method == "session/prompt":
			session = p.SessionID
			for line := range strings.Lines(strings.TrimPrefix(p.Prompt[0].Text, "play ")) {
				method, params, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
				var u struct {
					SessionID string
					Update    struct{ SessionUpdate string }
				}
				require.NoError(t, json.Unmarshal([]byte(params), &u))
				if method == "session/update" && !needs[u.Update.SessionUpdate] && (declares || u.SessionID == "$session") {
					written = append(written, `{"jsonrpc":"2.0","method":"session/update","params":`+params+`}`)
				}
			}
		case line.FromAgent && m.Method == "session/update" && !needs[p.Update.SessionUpdate] &&
			p.Update.SessionUpdate != "user_message_chunk" && !answer.Match(p.Update.Content):
			ofSubagent := regexp.MustCompile(regexp.QuoteMeta(session) + `\.[a-z0-9_.-]+`)
			shown = append(shown, strings.ReplaceAll(ofSubagent.ReplaceAllString(line.Text, "child-1"), session, "$session"))
		}
	}
	return written, shown
}

// answer is what the agent says of the answer to a question.
var answer = regexp.MustCompile(`"text":"(answered|refused)`)
