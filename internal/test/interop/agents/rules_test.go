package agents

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/needs"
)

// answer makes the editor choose options of this kind from now on, and forget what it was asked.
func (e *editor) answer(kind sdk.PermissionOptionKind) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.chooses, e.asked = kind, nil
}

// questions returns how often the editor was asked since it was told what to answer.
func (e *editor) questions() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.asked)
}

// ruled prepares a stage whose agent asks before it runs commands, in a folder with a Makefile, a
// link to the outside, and acp-agent's configuration.
func ruled(t *testing.T, s subject, permissions string) (st *stage, outside, config string) {
	t.Helper()
	needs.Programs(t, "make")
	st = onStage(t, s)
	outside = folder(t, "banana\n")
	for name, text := range map[string]string{
		"Makefile": "check:\n\t@echo checked | tee checked\n", "opencode.json": `{"permission":{"edit":"ask","bash":"ask"}}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(st.cwd, name), []byte(text), 0o644))
	}
	require.NoError(t, os.Symlink(fruit(outside), filepath.Join(st.cwd, "link.txt")))
	config = filepath.Join(st.home, "rules.json")
	require.NoError(t, os.WriteFile(config, []byte(`{"permissions":`+permissions+`}`), 0o600))
	return st, outside, config
}

// ownRules are where agents keep what their users allow, in their homes and in folders.
var ownRules = []string{".claude/settings.local.json", ".codex/rules/*", ".config/goose/permission*", ".copilot/permissions*",
	".qwen/settings.local.json", ".gemini/policies/*", ".gemini/trusted*"}

// hasNoRulesOfItsOwn checks that an agent has written no settings.
func (s *stage) hasNoRulesOfItsOwn(t *testing.T) {
	t.Helper()
	for _, dir := range []string{s.cwd, s.home} {
		for _, pattern := range ownRules {
			found, err := filepath.Glob(filepath.Join(dir, pattern))
			require.NoError(t, err)
			require.Empty(t, found)
		}
	}
	require.NoDirExists(t, filepath.Join(s.cwd, ".qwen"))
	require.NoDirExists(t, filepath.Join(s.cwd, ".gemini"))
	for name, text := range s.subject.files {
		now, err := os.ReadFile(filepath.Join(s.home, name))
		require.NoError(t, err)
		require.NotContains(t, string(now), "make check", name)
		var before, after map[string]any
		if json.Unmarshal(now, &after) == nil && json.Unmarshal([]byte(text), &before) == nil {
			for _, member := range []string{"permissions", "permission", "tools"} {
				require.Equal(t, before[member], after[member], name)
			}
		}
	}
}

// asking says what an agent that asks before it acts says in its requests.
type asking struct {
	subject
	env []string
	// files replace the texts in the subject's files.
	files map[string]string
	// run returns the order to run a command, nil for any.
	run func(command string) modelserver.Order
	// withoutEdits means that it edits by commands. tool is what becomes of a call of an MCP tool
	// for which there is a rule: "allowed", "asked" or "" if it calls none.
	withoutEdits bool
	tool         string
	// plan is its mode for plans, and leaves the tool by which it asks to leave it.
	plan, leaves string
}

// askingAgents are the agents whose requests rules decide about.
var askingAgents = []asking{
	{subject: claude, tool: "allowed", plan: "plan", leaves: "ExitPlanMode"},
	{subject: cline, withoutEdits: true, plan: "plan"},
	{subject: codex, withoutEdits: true, env: []string{"INITIAL_AGENT_MODE=workspace-write"}, run: func(command string) modelserver.Order {
		arguments, _ := json.Marshal(map[string]string{"cmd": command, "sandbox_permissions": "require_escalated", "justification": "as ordered"})
		return modelserver.UseWith("exec_command", string(arguments))
	}},
	{subject: copilot, plan: "https://agentclientprotocol.com/protocol/session-modes#plan"},
	{subject: gemini, tool: "asked", plan: "plan"},
	{subject: goose, tool: "allowed", env: []string{"GOOSE_MODE=approve"}},
	{subject: kilo, tool: "asked", plan: "plan", files: map[string]string{`{"edit": "ask"}`: `{"edit": "ask", "bash": "ask", "orchard_*": "ask"}`}},
	{subject: opencode, tool: "asked", plan: "plan", files: map[string]string{`{"edit": "ask"}`: `{"edit": "ask", "bash": "ask", "orchard_*": "ask"}`}},
	{subject: qwen, tool: "allowed", plan: "plan", leaves: "exit_plan_mode", files: map[string]string{`"tools": {`: `"tools": {"approvalMode": "default", `}},
}

// Rules decide about what real agents ask, and about nothing more than they say.
//
// Clause R2.
func TestRulesHoldForAgents(t *testing.T) {
	for _, a := range askingAgents {
		t.Run(a.name, func(t *testing.T) {
			rarely(t, a.subject)
			t.Parallel()
			files := make(map[string]string)
			for name, text := range a.subject.files {
				for old, with := range a.files {
					text = strings.Replace(text, old, with, 1)
				}
				files[name] = text
			}
			a.subject.files, a.subject.env = files, slices.Concat(a.subject.env, a.env)
			if a.run == nil {
				a.run = modelserver.Run
			}
			s, outside, config := ruled(t, a.subject,
				`{"allow":["run make check ...","edit","tool `+filesystem+`.create_directory"],"deny":["run touch denied"]}`)
			e := s.behind(t, noFiles, "--config", config)
			made, err := e.NewSession(within(t), s.withServer(t))
			require.NoError(t, err)
			r := &ruledSession{stage: s, editor: e, asking: a, id: made.ID, outside: outside}
			r.commands(t)
			r.edits(t)
			r.tools(t)
			r.plans(t)
			s.hasNoRulesOfItsOwn(t)
		})
	}
}

// ruledSession is a session of an agent with rules, and with a folder outside.
type ruledSession struct {
	*stage
	*editor
	asking

	id, outside string
}

// ask runs a turn, in which the user answers every question in the same way, and returns the number
// of questions. Some agents end a turn in which something was refused.
func (r *ruledSession) ask(t *testing.T, answer sdk.PermissionOptionKind, orders ...modelserver.Order) int {
	t.Helper()
	r.answer(answer)
	_, err := r.editor.Prompt(within(t), r.id, sdk.TextBlock(modelserver.Prompt("Go on.", append(orders, modelserver.Say("Done."))...)))
	require.NoError(t, err)
	return r.questions()
}

func (r *ruledSession) commands(t *testing.T) {
	require.Zero(t, r.ask(t, sdk.PermissionOptionKindRejectOnce, r.run("make check")), r.permissions())
	require.FileExists(t, filepath.Join(r.cwd, "checked"))
	require.Contains(t, r.heard(r.id), "(allowed by the rule `run make check ...`)")
	require.NotZero(t, r.ask(t, sdk.PermissionOptionKindRejectOnce, r.run("make check; touch made")))
	require.NoFileExists(t, filepath.Join(r.cwd, "made"))
	require.Zero(t, r.ask(t, sdk.PermissionOptionKindAllowOnce, r.run("make check; touch denied")), r.permissions())
	require.NoFileExists(t, filepath.Join(r.cwd, "denied"))
	require.Contains(t, r.heard(r.id), "(refused by the rule `run touch denied`)")
}

func (r *ruledSession) edits(t *testing.T) {
	if r.withoutEdits {
		return
	}
	// Reading is asked about by some.
	require.Equal(t, "apple\n", content(t, r.cwd))
	asked := r.ask(t, sdk.PermissionOptionKindAllowOnce, modelserver.Read(fruit(r.cwd)))
	require.Equal(t, asked, r.ask(t, sdk.PermissionOptionKindAllowOnce, modelserver.Read(fruit(r.cwd)),
		modelserver.Edit(fruit(r.cwd), "apple", "cherry")), r.permissions())
	require.Equal(t, "cherry\n", content(t, r.cwd))
	link := filepath.Join(r.cwd, "link.txt")
	r.ask(t, sdk.PermissionOptionKindRejectOnce, modelserver.Read(link), modelserver.Edit(link, "banana", "cherry"))
	require.NotContains(t, r.heard(r.id), "link.txt (allowed", "the link leads outside")
	require.Equal(t, "banana\n", content(t, r.outside))
}

func (r *ruledSession) tools(t *testing.T) {
	if r.tool == "" {
		return
	}
	basket := filepath.Join(r.cwd, "basket")
	asked := r.ask(t, sdk.PermissionOptionKindRejectOnce, modelserver.Use("create_directory", basket).By(filesystem))
	if r.tool == "asked" {
		require.NotZero(t, asked)
		require.NoDirExists(t, basket)
		return
	}
	require.Zero(t, asked, r.permissions())
	require.DirExists(t, basket)
}

// plans leaves a mode in which nothing may be changed: the user is asked, whatever is allowed.
func (r *ruledSession) plans(t *testing.T) {
	if r.plan == "" {
		return
	}
	before := content(t, r.cwd)
	params, err := json.Marshal(map[string]string{"sessionId": r.id, "modeId": r.plan})
	require.NoError(t, err)
	if _, err = r.Call(within(t), "session/set_mode", params)(); err != nil {
		params, err = json.Marshal(map[string]string{"sessionId": r.id, "configId": "mode", "value": r.plan})
		require.NoError(t, err)
		_, err = r.Call(within(t), "session/set_config_option", params)()
	}
	require.NoError(t, err)
	r.ask(t, sdk.PermissionOptionKindRejectOnce, modelserver.Read(fruit(r.cwd)), modelserver.Edit(fruit(r.cwd), "cherry", "damson"))
	require.Equal(t, before, content(t, r.cwd))
	if r.leaves != "" {
		require.NotZero(t, r.ask(t, sdk.PermissionOptionKindRejectOnce, modelserver.UseWith(r.leaves, `{"plan":"Mend it."}`)))
		require.Contains(t, r.permissions(), "switch_mode")
	}
}
