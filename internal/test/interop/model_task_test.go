package interop

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/needs"
	"github.com/acp-agent/acp-agent/internal/test/volume"
)

// taskCalls is the number of tool calls of a task.
const taskCalls = 22

// task is a change in two folders, as a model makes it.
type task struct{ app, lib string }

func newTask(t *testing.T) task {
	return task{
		folder(t, "app.sh", "echo hello, world\n", "old.txt", "unused\n", "logo.png", "\x89PNG\r\n\x1a\n",
			"test.sh", "sh app.sh | grep -q 'good morning, world' && echo PASSED || echo FAILED\n"),
		folder(t, "greet.txt", "hello\n", "AGENTS.md", "Be brief in lib.\n"),
	}
}

// files is the MCP server of a task.
const files = "files"

// orders are those of the first prompt.
func (k task) orders() []modelserver.Order {
	use := func(tool string, arguments map[string]any) modelserver.Order {
		text, _ := json.Marshal(arguments) // strings
		return modelserver.UseWith(tool, string(text))
	}
	app := func(name string) string { return filepath.Join(k.app, name) }
	lib := func(name string) string { return filepath.Join(k.lib, name) }
	plan := func(status string) modelserver.Order {
		return use("update_plan", map[string]any{"entries": []any{
			map[string]string{"content": "Make the greeting friendlier", "status": status}}})
	}
	test := modelserver.Run("sh test.sh")
	together, think := modelserver.Together, modelserver.Think
	return []modelserver.Order{
		together(think("What is there?"), modelserver.Say("I look."), use("list_roots", nil),
			use("directory_tree", nil)),
		together(think("Where is it?"), use("search", map[string]any{"pattern": "hello"}),
			use("find_files", map[string]any{"glob": "*.txt"})),
		together(think("I read."), modelserver.Read(app("app.sh")), modelserver.Read(lib("greet.txt")),
			use("read_files", map[string]any{"paths": []string{app("test.sh"), lib("AGENTS.md")}})),
		together(think("A plan."), plan("in_progress")),
		together(think("Does it fail?"), test),
		together(think("I change it."), modelserver.Edit(app("app.sh"), "hello", "good morning"),
			modelserver.Edit(lib("greet.txt"), "hello", "good morning")),
		together(think("A note."), use("create_directory", map[string]any{"path": app("docs")}),
			modelserver.Write(app("note.txt"), "It says good morning.\n")),
		together(think("In its place."),
			use("move_file", map[string]any{"path": app("note.txt"), "to": app("docs/note.txt")}),
			use("file_info", map[string]any{"path": app("docs/note.txt")}),
			use("list_directory", map[string]any{"path": app("docs")})),
		together(think("What the server sees."),
			use("read_file", map[string]any{"path": lib("greet.txt")}).By(files)),
		together(think("An image."), use("read_media", map[string]any{"path": app("logo.png")})),
		together(think("It is not used."), use("delete_file", map[string]any{"path": app("old.txt")})),
		together(think("A tool that I know."), modelserver.Invent("str_replace", "{}")),
		together(think("And now?"), test),
		together(think("I am done."), plan("completed")),
		together(think("Good."), modelserver.Say("The tests pass.")),
	}
}

// check checks what has become of the folders, and what the model was sent last.
func (k task) check(t *testing.T, last modelserver.Request) {
	t.Helper()
	for path, want := range map[string]string{
		filepath.Join(k.app, "app.sh"):        "echo good morning, world\n",
		filepath.Join(k.lib, "greet.txt"):     "good morning\n",
		filepath.Join(k.app, "docs/note.txt"): "It says good morning.\n",
	} {
		require.Equal(t, want, dirtest.Read(t, path))
	}
	require.NoFileExists(t, filepath.Join(k.app, "old.txt"))
	require.Len(t, last.Of(modelserver.Call), taskCalls)
	results := last.Of(modelserver.Result)
	require.Len(t, results, taskCalls)
	for i, want := range map[int]string{
		0: k.lib, 2: "hello", 6: "Be brief", 7: "0 of 1", 8: "FAILED", 15: "note.txt",
		16: "good morning", 19: "there is no tool", 20: "PASSED", 21: "1 of 1",
	} {
		require.Contains(t, results[i], want, "result %d of %q", i, results)
	}
	if thoughts := last.Of(modelserver.Thought); len(thoughts) > 0 {
		require.Len(t, thoughts, 14)
	}
}

// A model of each provider carries out a task of many calls, from an editor without terminals, one
// of them also from run, and goes on after a restart. The server rejects what the provider's would.
//
// Clause B5.
func TestModelTask(t *testing.T) {
	t.Parallel()
	needs.Programs(t, "grep")
	for name, m := range map[string]struct{ api, model string }{
		"Gemini 3":          {"openai", modelserver.Gemini3},
		"DeepSeek V4":       {"openai", modelserver.DeepSeekV4},
		"Kimi K2":           {"openai", modelserver.KimiK2},
		"OpenAI, chat":      {"openai", modelserver.GPT},
		"OpenAI, responses": {"responses", modelserver.GPT},
		"Claude":            {"anthropic", modelserver.Claude},
	} {
		stage := func(t *testing.T) *modelStage {
			s := onModelStage(t)
			address := s.model.URL()
			if m.api != "anthropic" {
				address += "/v1"
			}
			s.configure(t, fmt.Sprintf(`"baseURL": %q, "api": %q, "name": %q`, address, m.api, m.model))
			return s
		}
		t.Run(name+"/editor", func(t *testing.T) { taskInEditor(t, stage(t)) })
		if name == "Claude" || volume.Full() { // run differs in the editor, not in the model
			t.Run(name+"/run", func(t *testing.T) { taskInShell(t, stage(t)) })
		}
	}
}

func taskInEditor(t *testing.T, s *modelStage) {
	k := newTask(t)
	s.noTerminals = true
	setup := client.Setup{Roots: rootsOf(t, k.app, k.lib), MCPServers: []sdk.McpServer{{
		Stdio: &sdk.McpServerStdio{Name: files, Command: program.Path(), Args: []string{"mcp"},
			Env: []sdk.EnvVariable{}}}}}
	session := s.open(s.edit(t), setup)
	said, turn, end := session.prompt("Make it friendlier.", k.orders()...)
	require.Equal(t, sdk.StopReasonEndTurn, end.StopReason)
	require.Equal(t, "I look.The tests pass.", chunks(said, "agent_message_chunk"))
	k.check(t, turn[len(turn)-1])
	require.Len(t, session.questions(), 9, "%q", session.questions())
	session.leave()

	session.editor = s.edit(t)
	_, err := session.LoadSession(within(t), session.id, setup)
	require.NoError(t, err)
	said, _, _ = session.prompt("Go on.", modelserver.Run("sh test.sh"), modelserver.Say("It does."))
	require.Equal(t, "It does.", chunks(said, "agent_message_chunk"))
}

func taskInShell(t *testing.T, s *modelStage) {
	k := newTask(t)
	run := func(prompt string, flags ...string) string {
		cmd := exec.CommandContext(within(t), program.Path(), append([]string{"run", "--yes",
			"--config", filepath.Join(s.dir, "config.json"), "--state-dir", filepath.Join(s.dir, "state"),
			"--model", "local", "--cwd", k.app, "--dir", k.lib,
			"--mcp", files + "='" + program.Path() + "' mcp"}, flags...)...)
		cmd.Stdin = strings.NewReader(prompt)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		require.NoError(t, err, "%s\n%s", out, &stderr)
		return string(out)
	}
	said := run(modelserver.Prompt("Make it friendlier.", k.orders()...))
	require.Contains(t, said, "The tests pass.")
	requests := s.model.Requests()
	k.check(t, requests[len(requests)-1])
	said = run(modelserver.Prompt("Go on.", modelserver.Run("sh test.sh"), modelserver.Say("It does.")),
		"--continue")
	require.Contains(t, said, "It does.")
}
