package agents

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
)

// A model carries out the same task with opencode and with the program's own tools: the files, the
// text and the calls that the editor sees are the same.
func TestModelBesideAnAgent(t *testing.T) {
	if !*survey {
		t.Skip("make interop-agents runs this")
	}
	var outcomes []taskOutcome
	for _, own := range []bool{false, true} {
		s := onStage(t, opencode)
		s.cwd = dirtest.New(t, "app.sh", "echo hello, world\n",
			"test.sh", "sh app.sh | grep -q 'good morning, world' && echo PASSED || echo FAILED\n")
		var e *editor
		if own {
			config := filepath.Join(s.home, "config.json")
			require.NoError(t, os.WriteFile(config, fmt.Appendf(nil,
				`{"models": {"local": {"baseURL": %q, "name": "scripted", "contextTokens": 100000}}}`,
				s.model.URL()+"/v1"), 0o600))
			e = s.open(t, withFiles, []string{program.Path(), "--config", config, "--state-dir", s.state,
				"--model", "local"})
		} else {
			e = s.alone(t, withFiles)
		}
		outcomes = append(outcomes, s.doTask(t, e))
	}
	require.Len(t, outcomes[0].calls, 22)
	require.Equal(t, "execute completed", outcomes[0].calls[15])
	outcomes[0].calls[15] = "execute failed" // a command that fails is a call that fails
	require.Equal(t, outcomes[0], outcomes[1])
}

// taskOutcome is what has become of a task: the text, the tool calls with their kind and the status
// at the end, the files, and the number of requests to the model.
type taskOutcome struct {
	said, app, note string
	calls           []string
	requests        int
}

// doTask has the model carry out a task of 22 calls, some of which fail.
func (s *stage) doTask(t *testing.T, e *editor) taskOutcome {
	path := func(name string) string { return filepath.Join(s.cwd, name) }
	app, check, note := path("app.sh"), path("test.sh"), path("note.txt")
	together, test := modelserver.Together, modelserver.Run("sh test.sh")
	read, run, edit := modelserver.Read, modelserver.Run, modelserver.Edit
	made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t)})
	require.NoError(t, err)
	turn := s.prompt(e, made.ID, "Make it friendlier.",
		together(modelserver.Say("I look."), read(app), read(check)),
		test,
		edit(app, "hello", "good evening"),
		test,
		edit(app, "no such text", "good morning"),
		together(read(app), read(path("missing.txt"))),
		edit(app, "evening", "morning"),
		test,
		modelserver.Write(note, "It says good evening.\n"),
		together(read(note), run("cat note.txt"), run("ls")),
		edit(note, "evening", "morning"),
		run("cat missing.txt"),
		together(read(note), read(app), read(check)),
		run("grep -c good app.sh"),
		together(test, run("cat note.txt")),
		modelserver.Say("The tests pass."))
	outcome := taskOutcome{requests: len(turn)}
	at := map[string]int{}
	kinds, statuses := []string{}, []string{}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, u := range e.updates {
		var update struct {
			SessionUpdate, ToolCallID, Kind, Status string
			Content                                 json.RawMessage
		}
		require.NoError(t, json.Unmarshal(u.Update, &update))
		switch update.SessionUpdate {
		case "agent_message_chunk":
			var text struct{ Text string }
			require.NoError(t, json.Unmarshal(update.Content, &text))
			outcome.said += text.Text
		case "tool_call", "tool_call_update":
			i, known := at[update.ToolCallID]
			if !known {
				i = len(kinds)
				at[update.ToolCallID] = i
				kinds, statuses = append(kinds, ""), append(statuses, "")
			}
			if update.Kind != "" {
				kinds[i] = update.Kind
			}
			if update.Status != "" {
				statuses[i] = update.Status
			}
		}
	}
	for i := range kinds {
		outcome.calls = append(outcome.calls, kinds[i]+" "+statuses[i])
	}
	for to, from := range map[*string]string{&outcome.app: app, &outcome.note: note} {
		text, err := os.ReadFile(from)
		require.NoError(t, err)
		*to = string(text)
	}
	return outcome
}
