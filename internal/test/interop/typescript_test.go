package interop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

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

// drive runs a TypeScript client and returns what it found, by the name of the check, and the lines
// of each process that it started.
func drive(t *testing.T, client string) (map[string]outcome, [][]rawrpc.Line) {
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
	return outcomes, recorded(t, record)
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

// expectation names a check.
type expectation struct{ name string }

// hold sees that a client's checks are the expected ones, and that they were passed.
// Each check is a subtest, so that one that was not made fails too.
func hold(t *testing.T, outcomes map[string]outcome, expected []expectation) {
	t.Helper()
	for _, check := range expected {
		t.Run(check.name, func(t *testing.T) {
			o, made := outcomes[check.name]
			require.True(t, made, "the check was not made")
			require.True(t, o.OK, "%s", o.Detail)
		})
	}
	require.Len(t, outcomes, len(expected), "a check of the client is not among the expected ones")
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
	expected := []expectation{
		{"W10/version 1 gets 1"},
		{"A1/capabilities"},
		{"A1/the agent says who it is"},
		{"A9/two additional directories"},
		{"A21/the response has no roots"},
		{"A20/the roots in order"},
		{"A20/a search sees every root"},
		{"A22/a session without them sees none"},
		{"A16/no filter"},
		{"A16/by cwd"},
		{"A16/by another cwd"},
		{"A16/by roots"},
		{"A16/by roots in another order"},
		{"A16/by a part of the roots"},
		{"A16/an empty list is no roots"},
		{"A16/both filters"},
		{"A3/null"},
		{"A3/a null entry"},
		{"A3/a string"},
		{"A3/an object"},
		{"A3/a number entry"},
		{"A4/an empty entry"},
		{"A4/a relative entry"},
		{"A4/a NUL character"},
		{"A4/a lone surrogate"},
		{"A6/a missing directory"},
		{"A5/nothing was created"},
		{"A28/close"},
		{"A28/a closed session stays listed"},
		{"A28/a closed session takes no prompt"},
		{"A19/found by another process"},
		{"A15/with its roots"},
		{"A29/with a title and a time"},
		{"A31/the sessions of another agent are not listed"},
		{"W6/a running prompt is cancelled"},
		{"W9/the process ends with its input"},
	}
	outcomes, processes := drive(t, "client.mjs")
	require.Len(t, processes, 3)
	hold(t, outcomes, expected)
	t.Run("W1/every line is valid", func(t *testing.T) { everyLine(t, processes) })
}

// Each request that makes a session active is the first of a process, which was started for it.
func TestTypeScriptClientStoredSessions(t *testing.T) {
	t.Parallel()
	outcomes, processes := drive(t, "lifecycle.mjs")
	hold(t, outcomes, []expectation{
		{"A10/load, empty: the resulting roots"},
		{"A10/load, empty: the roots in use"},
		{"A10/load, given: the resulting roots"},
		{"A10/load, given: the roots in use"},
		{"A10/load, omitted: the resulting roots"},
		{"A10/load, omitted: the roots in use"},
		{"A10/resume, empty: the resulting roots"},
		{"A10/resume, empty: the roots in use"},
		{"A10/resume, given: the resulting roots"},
		{"A10/resume, given: the roots in use"},
		{"A10/resume, omitted: the resulting roots"},
		{"A10/resume, omitted: the roots in use"},
		{"A11/load, another cwd"},
		{"A11/resume, another cwd"},
		{"A13/fork, empty: the roots after a restart"},
		{"A13/fork, given: the roots after a restart"},
		{"A13/fork, omitted: the roots after a restart"},
		{"A13/load, empty: the roots after a restart"},
		{"A13/load, given: the roots after a restart"},
		{"A13/load, omitted: the roots after a restart"},
		{"A13/resume, empty: the roots after a restart"},
		{"A13/resume, given: the roots after a restart"},
		{"A13/resume, omitted: the roots after a restart"},
		{"A13/the roots after requests that failed"},
		{"A14/fork, another cwd"},
		{"A14/fork, empty: the history"},
		{"A14/fork, empty: the resulting roots"},
		{"A14/fork, empty: the roots in use"},
		{"A14/fork, empty: the source is untouched"},
		{"A14/fork, given: the history"},
		{"A14/fork, given: the resulting roots"},
		{"A14/fork, given: the roots in use"},
		{"A14/fork, given: the source is untouched"},
		{"A14/fork, omitted: the history"},
		{"A14/fork, omitted: the resulting roots"},
		{"A14/fork, omitted: the roots in use"},
		{"A14/fork, omitted: the source is untouched"},
		{"A17/list by another spelling"},
		{"A17/load by another spelling"},
		{"A17/the spelling on record stays"},
		{"A21/fork, empty: the response has no roots"},
		{"A21/fork, given: the response has no roots"},
		{"A21/fork, omitted: the response has no roots"},
		{"A21/load, empty: the response has no roots"},
		{"A21/load, given: the response has no roots"},
		{"A21/load, omitted: the response has no roots"},
		{"A21/resume, empty: the response has no roots"},
		{"A21/resume, given: the response has no roots"},
		{"A21/resume, omitted: the response has no roots"},
		{"A27/fork, empty: the replay"},
		{"A27/fork, given: the replay"},
		{"A27/fork, omitted: the replay"},
		{"A27/load, empty: the replay"},
		{"A27/load, given: the replay"},
		{"A27/load, omitted: the replay"},
		{"A27/nothing is shown of requests that failed"},
		{"A27/resume, empty: the replay"},
		{"A27/resume, given: the replay"},
		{"A27/resume, omitted: the replay"},
		{"A28/close, active"},
		{"A28/close, active, again"},
		{"A28/close, inactive"},
		{"A28/close, inactive, again"},
		{"A28/close, unknown"},
		{"A28/close, unknown, again"},
		{"A28/delete, active"},
		{"A28/delete, active, again"},
		{"A28/delete, inactive"},
		{"A28/delete, inactive, again"},
		{"A28/delete, unknown"},
		{"A28/delete, unknown, again"},
		{"A28/deleted sessions are not listed"},
		{"A28/fork, an unknown id"},
		{"A28/fork, deleted"},
		{"A28/load, an unknown id"},
		{"A28/load, deleted"},
		{"A28/nothing is left of the deleted"},
		{"A28/prompt, a stored session"},
		{"A28/prompt, an unknown id"},
		{"A28/prompt, deleted"},
		{"A28/resume, an unknown id"},
		{"A28/resume, deleted"},
		{"A3/load, null"},
		{"A3/resume, null"},
		{"A31/fork, a session of another agent"},
		{"A31/load, a session of another agent"},
		{"A31/resume, a session of another agent"},
		{"A6/load, a missing directory"},
		{"A6/resume, a missing directory"},
		{"W9/the process ends with its input"},
	})
	t.Run("W1/every line is valid", func(t *testing.T) { everyLine(t, processes) })
}

// What the agent wrote reaches both clients byte for byte, except what needs a capability that the client
// has not declared.
func TestTypeScriptClientCapabilities(t *testing.T) {
	t.Parallel()
	outcomes, processes := drive(t, "declares.mjs")
	hold(t, outcomes, []expectation{
		{"A37/everything, live"},
		{"A37/everything, after a load"},
		{"A37/everything, no moments after a load"},
		{"A36/the subagent has an id of its own"},
		{"A36/it asks"},
		{"A37/nothing, live"},
		{"A37/nothing, after a load"},
		{"A37/nothing, no moments after a load"},
		{"A36/it does not ask"},
		{"A36/the subagent is not listed"},
		{"W9/the process ends with its input"},
	})
	require.Len(t, processes, 4)
	for name, live := range map[string][]rawrpc.Line{"everything": processes[0], "nothing": processes[2]} {
		t.Run("A37/"+name+", byte for byte", func(t *testing.T) {
			written, shown := played(t, live, name == "everything")
			require.NotEmpty(t, written)
			require.Equal(t, written, shown)
		})
	}
}

// played returns the updates that the agent was told to play, without those that need a capability if
// the client declares none, and those that the client was shown instead, with the agent's ids.
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
			ofChild := regexp.MustCompile(regexp.QuoteMeta(session) + `\.[a-z0-9_.-]+`)
			shown = append(shown, strings.ReplaceAll(ofChild.ReplaceAllString(line.Text, "child-1"), session, "$session"))
		}
	}
	return written, shown
}

// answer is what the agent says of the answer to a question.
var answer = regexp.MustCompile(`"text":"(answered|refused)`)
