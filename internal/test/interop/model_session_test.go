//go:build unix

package interop

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
)

// What users do with a model in an editor with three folders: it finds and explains, changes two
// folders after asking, runs the tests in the editor's terminal, is killed while a command runs,
// and knows all of it when the session is loaded again. Then an MCP server asks it.
//
// Clauses B2, B3.
func TestModelSession(t *testing.T) {
	t.Parallel()
	app := folder(t, "app.sh", "echo hello, world\n", "test.sh", "sh app.sh | grep -q 'good morning, world' && echo PASSED\n")
	lib := folder(t, "greet.txt", "hello\n", "AGENTS.md", "Be brief in lib.\n")
	docs := folder(t, "manual.md", "It says hello.\n")
	everything := npmtest.Everything(t)
	setup := client.Setup{Roots: rootsOf(t, app, lib, docs), MCPServers: []sdk.McpServer{{Stdio: &sdk.McpServerStdio{
		Name: "helper", Command: everything[0], Args: everything[1:], Env: []sdk.EnvVariable{},
	}}}}
	stage := onModelStage(t)
	e := stage.edit(t)
	session := stage.open(e, setup)
	use := func(tool string, arguments map[string]any) modelserver.Order {
		text, err := json.Marshal(arguments)
		require.NoError(t, err)
		return modelserver.UseWith(tool, string(text))
	}

	// It finds and explains, without asking.
	said, turn, end := session.prompt("Where is the greeting?",
		modelserver.Together(modelserver.Think("I should search."), modelserver.Say("I look."), use("search", map[string]any{"pattern": "hello"}),
			use("read_file", map[string]any{"path": filepath.Join(lib, "greet.txt")})),
		modelserver.Say("It is in all three folders.").In(4))
	require.Equal(t, sdk.StopReasonEndTurn, end.StopReason)
	require.Empty(t, e.questions())
	require.Contains(t, turn[0].Instructions, app)
	require.Contains(t, turn[0].Instructions, "Be brief in lib.")
	results := turn[1].Of(modelserver.Result)
	require.Len(t, results, 2)
	for _, dir := range []string{app, lib, docs} {
		require.Contains(t, results[0], dir)
	}
	require.Contains(t, results[1], "hello")
	require.Len(t, updates(said, `"type":"text","text":"I should search."`), 1)

	// It changes two folders after asking, and runs the tests.
	edit := func(path, old, text string) modelserver.Order {
		return use("edit_file", map[string]any{"path": path, "old_text": old, "new_text": text})
	}
	_, turn, _ = session.prompt("Make it friendlier.",
		modelserver.Together(edit(filepath.Join(app, "app.sh"), "hello", "good morning"), edit(filepath.Join(lib, "greet.txt"), "hello", "good morning")),
		use("run_command", map[string]any{"command": "sh test.sh"}), modelserver.Say("The tests pass."))
	require.Len(t, e.questions(), 3)
	for i, dir := range []string{app, lib} {
		require.Contains(t, e.questions()[i], "in folder "+dir)
	}
	require.Contains(t, e.questions()[2], "sh test.sh")
	require.Contains(t, turn[2].Of(modelserver.Result)[4], "PASSED")
	require.Equal(t, app, *e.terminals.Asked()[0].Cwd)
	for path, want := range map[string]string{
		filepath.Join(app, "app.sh"): "echo good morning, world\n", filepath.Join(lib, "greet.txt"): "good morning\n", filepath.Join(docs, "manual.md"): "It says hello.\n",
	} {
		require.Equal(t, want, dirtest.Read(t, path))
	}

	// It is killed while a command runs.
	running := make(chan error, 1)
	go func() {
		_, err := e.Prompt(within(t), session.id, sdk.TextBlock(modelserver.Prompt("Wait.", modelserver.Run("exec sleep 600"))))
		running <- err
	}()
	require.Eventually(t, func() bool { // updates of a turn are stored within a tenth of a second
		shown, err := exec.CommandContext(within(t), program.Path(), "--state-dir", filepath.Join(stage.dir, "state"), "sessions", "show", session.id).Output()
		return err == nil && strings.Count(string(shown), "sleep 600") >= 2 // in the prompt and in the call
	}, patience, 10*time.Millisecond)
	e.kill()
	require.Error(t, <-running)

	// When the session is loaded, the model knows what it knew.
	before := slices.DeleteFunc(stage.model.Requests(), func(r modelserver.Request) bool { return !r.Asks() })
	known := before[len(before)-1].Items
	e = stage.edit(t)
	_, err := e.LoadSession(within(t), session.id, setup)
	require.NoError(t, err)
	replayed := e.said(0)
	require.Contains(t, replayed, "The tests pass.")
	session.editor = e
	_, turn, _ = session.prompt("And now?", modelserver.Say("Nothing."))
	items := turn[0].Items
	require.Equal(t, known, items[:len(known)])
	require.Len(t, items, len(known)+3)
	require.Equal(t, modelserver.Call, items[len(known)].Kind)
	require.Contains(t, items[len(known)].Text, "sleep 600")
	require.Contains(t, items[len(known)+1].Text, "interrupted")
	require.True(t, strings.HasPrefix(items[len(known)+2].Text, "And now?"), items[len(known)+2].Text)

	// An MCP server asks the model, with the user's consent to the call, the request and the
	// answer.
	session.awaitTool("trigger-sampling-request")
	arguments := map[string]any{"maxTokens": 20, "prompt": modelserver.Prompt("How many?", modelserver.Say("It is 42.").Aside())}
	text, err := json.Marshal(arguments)
	require.NoError(t, err)
	_, turn, _ = session.prompt("Ask it.", modelserver.UseWith("trigger-sampling-request", string(text)).By("helper"), modelserver.Say("Asked."))
	require.Len(t, e.questions(), 3, fmt.Sprint(e.questions()))
	results = turn[1].Of(modelserver.Result)
	require.Contains(t, results[len(results)-1], "It is 42.")
}
