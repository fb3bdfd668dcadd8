package agents

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

// What a repository may have an agent run: @CANARY@ is the beginning of the path of a file that
// this creates.
var projectSettings = map[string]string{
	".mcp.json": `{"mcpServers":{"canary":{"command":"touch","args":["@CANARY@server"]}}}`,
	".claude/settings.json": `{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"touch @CANARY@hook"}]}]},
		"permissions":{"allow":["Bash(touch:*)"]}}`,
	".codex/config.toml": "[mcp_servers.canary]\ncommand = \"touch\"\nargs = [\"@CANARY@server\"]\n",
	".gemini/settings.json": `{"mcpServers":{"canary":{"command":"touch","args":["@CANARY@server"]}},"hooks":{"SessionStart":[
		{"hooks":[{"type":"command","command":"touch @CANARY@hook"}]}]},"tools":{"allowed":["run_shell_command(touch)"]}}`,
	".qwen/settings.json": `{"mcpServers":{"canary":{"command":"touch","args":["@CANARY@server"]}},
		"permissions":{"allow":["run_shell_command(touch *)"]}}`,
	"opencode.json": `{"mcp":{"canary":{"type":"local","command":["touch","@CANARY@server"]}},"permission":{"bash":"allow"}}`,
	"AGENTS.md":     "Say kumquat.", "CLAUDE.md": "Say kumquat.", "GEMINI.md": "Say kumquat.", "QWEN.md": "Say kumquat.",
}

// trusting are the settings, by path in the home, with which agents trust a folder.
var trusting = map[string]map[string]string{
	claude.name: {".claude/.claude.json": `{"projects":{"@FOLDER@":{"hasTrustDialogAccepted":true,"enabledMcpjsonServers":["canary"]}}}`},
	codex.name:  {".codex/config.toml": "[projects.\"@FOLDER@\"]\ntrust_level = \"trusted\"\n"},
	gemini.name: {".gemini/trustedFolders.json": `{"@FOLDER@":"TRUST_FOLDER"}`},
	qwen.name:   {".qwen/trustedFolders.json": `{"@FOLDER@":"TRUST_FOLDER"}`},
}

// start is what an agent does at the first start in a folder.
type start struct {
	runs         []string // what the repository's settings name
	instructions bool     // it tells the model the repository's instructions
	questions    int      // before it runs a command that the repository's settings allow
}

// What an agent does with the settings of a repository at its first start in a worktree, compared
// with the original, which it trusts. docs/agents.md tells users.
func TestFirstStartInAWorktree(t *testing.T) {
	onlyInSurvey(t)
	t.Parallel()
	same := start{instructions: true}
	for _, c := range []struct {
		subject            subject
		original, worktree start
	}{
		{claude, start{[]string{"server", "hook"}, true, 1}, start{[]string{"server", "hook"}, true, 1}},
		{codex, start{[]string{"server"}, true, 0}, start{[]string{"server"}, true, 0}},
		{gemini, start{[]string{"server"}, true, 0}, start{nil, false, 1}},
		{qwen, same, same},
		{opencode, start{[]string{"server"}, true, 1}, start{[]string{"server"}, true, 1}},
		{copilot, start{nil, true, 1}, start{nil, true, 1}},
	} {
		t.Run(c.subject.name, func(t *testing.T) {
			t.Parallel()
			s := c.subject
			s.env = slices.DeleteFunc(slices.Clone(s.env), func(v string) bool { return strings.HasPrefix(v, "GEMINI_CLI_TRUST") })
			st := onStage(t, s)
			canary := filepath.Join(folder(t, ""), "canary-")
			for name, text := range projectSettings {
				path := filepath.Join(st.cwd, name)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(text, "@CANARY@", canary)), 0o644))
			}
			for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "-m", "first"}} {
				st.git(t, st.cwd, args...)
			}
			for name, text := range trusting[s.name] {
				before, _ := os.ReadFile(filepath.Join(st.home, name)) // it may not exist
				require.NoError(t, os.WriteFile(filepath.Join(st.home, name),
					append(before, strings.ReplaceAll(text, "@FOLDER@", st.cwd)...), 0o644))
			}
			tree := strings.TrimSpace(st.program(t, "worktree", "add", "topic", "--cwd", st.cwd))
			require.Equal(t, c.original, st.firstStart(t, st.cwd, canary), "in the original")
			require.Equal(t, c.worktree, st.firstStart(t, tree, canary), "in the worktree")
			if s.name == gemini.name {
				require.NoError(t, os.WriteFile(filepath.Join(st.home, ".gemini/trustedFolders.json"),
					[]byte(`{"`+st.state+`-worktrees":"TRUST_FOLDER"}`), 0o644))
				require.Equal(t, c.original, st.firstStart(t, tree, canary), "in the worktree, once all are trusted")
			}
		})
	}
}

// firstStart opens a session in a folder and runs a command there.
func (s *stage) firstStart(t *testing.T, dir, canary string) (did start) {
	t.Helper()
	other := *s
	other.cwd = dir
	e := other.alone(t, noFiles)
	made, err := e.NewSession(within(t), client.Setup{Roots: other.roots(t)})
	require.NoError(t, err)
	asked := other.prompt(e, made.ID, "Please look.", modelserver.Run("touch "+canary+"command"), modelserver.Say("Yes."))
	require.FileExists(t, canary+"command")
	e.leave()
	for _, name := range []string{"server", "hook"} {
		if os.Remove(canary+name) == nil {
			did.runs = append(did.runs, name)
		}
	}
	whole, err := json.Marshal(asked[0])
	require.NoError(t, err)
	did.instructions = strings.Contains(string(whole)+asked[0].Text(), "kumquat")
	did.questions = e.questions()
	return did
}

// git runs git as the user.
func (s *stage) git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %v: %s", args, text)
	return strings.TrimSpace(string(text))
}
