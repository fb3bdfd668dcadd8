package acp_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/test/needs"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/workspace"
)

// toolCalls returns the updates about tool calls among messages.
func toolCalls(t *testing.T, messages []message) []string {
	all := []string{}
	for _, m := range messages {
		if m.Method != "session/update" {
			continue
		}
		var params struct{ Update json.RawMessage }
		require.NoError(t, json.Unmarshal(m.Params, &params))
		if bytes.HasPrefix(params.Update, []byte(`{"sessionUpdate":"tool_call`)) {
			all = append(all, string(params.Update))
		}
	}
	return all
}

// allowingRules returns permissions that allow what these rules say.
func allowingRules(rules ...string) func(workspace.Dir) *acp.Permissions {
	return func(workspace.Dir) *acp.Permissions { return &acp.Permissions{Allow: rules} }
}

const once = `[{"optionId":"yes","kind":"allow_once","name":"Yes"},{"optionId":"ever",` +
	`"kind":"allow_always","name":"Ever"},{"optionId":"no","kind":"reject_once","name":"No"}]`

// A person sees which tool calls were allowed without a question, whatever the agent says about
// them later, and in a load too.
//
// Clause A30.
func TestAllowedReadsAreMarked(t *testing.T) {
	a := folder(t)
	c := start(t, acp.Options{Permissions: allowingRules("read"), Backend: using(&scripted{})})
	c.permit("no")
	id := c.open(a)
	ask := func(tool, kind string) []string {
		from := len(c.messages())
		c.texts(id, `call session/request_permission {"toolCall":{"toolCallId":"`+tool+`","kind":"`+kind+`","title":"Look","status":"pending","locations":[{"path":`+encode(a)+`}]},"options":`+once+`}`)
		return toolCalls(t, c.messages()[from:])
	}
	update := func(u string) []string {
		from := len(c.messages())
		c.texts(id, "update "+u)
		return toolCalls(t, c.messages()[from:])
	}
	titled := func(tool, title string) string {
		return `{"sessionUpdate":"tool_call_update","title":"` + title + `","toolCallId":"` + tool +
			`"}`
	}
	const marked = "Look (allowed by the rule `read`)"
	announced := update(`{"sessionUpdate":"tool_call","toolCallId":"t1","title":"Look"}`)
	require.Len(t, announced, 1)
	require.Equal(t, []string{titled("t1", marked)}, ask("t1", "read"))
	require.Len(t, ask("t2", "search"), 1, "it is announced with the mark")
	require.Empty(t, ask("t3", "edit"))

	// The kind of a tool call that the request does not tell is the last one that the agent has
	// told.
	for _, kinds := range [][]string{{"read", ""}, {"other", "search"}} {
		update(`{"sessionUpdate":"tool_call","toolCallId":"t4","title":"Look","kind":"` + kinds[0] +
			`"}`)
		update(`{"sessionUpdate":"tool_call_update","toolCallId":"t4","kind":"` + kinds[1] + `"}`)
		require.Equal(t, []string{titled("t4", marked)}, ask("t4", "other"))
		require.Empty(t, ask("t4", "execute"))
	}
	update(`{"sessionUpdate":"tool_call_update","toolCallId":"t4","kind":"edit",` +
		`"status":"completed"}`)
	require.Empty(t, ask("t4", "other"))
	require.Empty(t, ask("t5", "other"))

	const again = "app (allowed by the rule `read`)"
	require.Equal(t, []string{titled("t1", "app"), titled("t1", again)}, update(titled("t1", "app")))
	from := len(c.messages())
	c.call("session/load", rootsParams(id, a))
	replayed := strings.Join(toolCalls(t, c.messages()[from:]), "\n")
	require.Equal(t, 5, strings.Count(replayed, marked), replayed)
	require.Contains(t, replayed, again)
}

// runRequest is a request of an agent to run a command line.
func runRequest(tool, line string) string {
	return `call session/request_permission {"toolCall":{"toolCallId":"` + tool + `","kind":"execute","title":"Run",` +
		`"rawInput":{"command":` + encode(line) + `}},"options":` + once + `}`
}

// What the user always allows is a rule of acp-agent, which holds for all agents in this folder
// until it is revoked; the agent is told to go ahead once.
//
// Clause R3.
func TestChosenRule(t *testing.T) {
	a, b, state := folder(t), folder(t), t.TempDir()
	start := func() *client {
		c := start(t, acp.Options{Permissions: allowingRules(), ConsentDir: state, Backend: using(&scripted{})})
		return c
	}
	c := start()
	c.permit("allow-always")
	id := c.open(a)
	require.Contains(t, strings.Join(c.texts(id, runRequest("t1", "go vet ./...")), ""), `"optionId":"yes"`)
	require.Len(t, c.questions(), 1)
	var asked struct {
		Options []struct {
			OptionID, Kind, Name string
			Meta                 json.RawMessage `json:"_meta"`
		}
		ToolCall struct{ Content json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(c.questions()[0].Params, &asked))
	require.Len(t, asked.Options, 3)
	require.Equal(t, []string{"yes", "allow_once", "Yes"}, []string{asked.Options[0].OptionID, asked.Options[0].Kind, asked.Options[0].Name})
	require.Equal(t, "Always: run `go vet ...` in sessions of "+filepath.Base(a), asked.Options[1].Name)
	require.Equal(t, "allow_always", asked.Options[1].Kind)
	require.JSONEq(t, `{"acp-agent":{"rule":"run go vet ..."}}`, string(asked.Options[1].Meta))
	require.Equal(t, "reject_once", asked.Options[2].Kind)
	require.Contains(t, string(asked.ToolCall.Content), "it is not asked for again with these options")

	other := start()
	other.permit("no")
	there := other.open(a)
	require.Contains(t, strings.Join(other.texts(there, runRequest("t2", "go vet -json .")), ""), `"optionId":"yes"`)
	require.Empty(t, other.questions(), "another agent in this folder")
	require.Contains(t, toolCalls(t, other.messages())[0], "Run (allowed by the rule `run go vet ...`)")
	other.texts(there, runRequest("t3", "go vet; touch x"))
	other.texts(other.open(b), runRequest("t4", "go vet"))
	require.Len(t, other.questions(), 2)

	store := consent.NewStore(state)
	all, err := store.List()
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, []string{"run go vet ...", workspace.Real(parseDir(t, a)).String(), id, "Run"},
		[]string{all[0].Rule, all[0].Root.String(), all[0].By, all[0].Title})
	require.NoError(t, store.Forget(all[0].ID))
	other.texts(there, runRequest("t5", "go vet"))
	require.Len(t, other.questions(), 3, "it holds no longer")
}

func parseDir(t *testing.T, path string) workspace.Dir {
	t.Helper()
	dir, err := workspace.ParseDir(path)
	require.NoError(t, err)
	return dir
}

// What is said about a rule comes after what the agent has shown of the call, because the content
// of a question takes its place.
//
// Clause R3.
func TestOfferedRuleKeepsContent(t *testing.T) {
	c := start(t, acp.Options{Permissions: allowingRules(), ConsentDir: t.TempDir(), Backend: using(&scripted{})})
	c.permit("no")
	id := c.open(folder(t))
	c.texts(id, `update {"sessionUpdate":"tool_call","toolCallId":"t1","title":"Run","kind":"execute",`+
		`"rawInput":{"command":"go vet ./..."},"content":[{"type":"content","content":{"type":"text","text":"Vet it"}}]}`)
	c.texts(id, runRequest("t1", "go vet ./..."))
	require.Regexp(t, `"content":\[.*"Vet it".*it is not asked for again with these options`, string(c.questions()[0].Params))
}

// A denied request is refused by an option of the agent, and shown.
//
// Clause R1.
func TestDeniedRequest(t *testing.T) {
	rules := func(workspace.Dir) *acp.Permissions {
		return &acp.Permissions{Allow: []string{"read", "run go vet ..."}, Ask: []string{"run go vet -json ..."}, Deny: []string{"run touch"}}
	}
	var log bytes.Buffer
	var events []acp.AnswerEvent
	c := start(t, acp.Options{Permissions: rules, Logger: slog.New(slog.NewTextHandler(&log, nil)), Backend: using(&scripted{}), Observe: func(e acp.Event) {
		if answer, ok := e.(acp.AnswerEvent); ok {
			events = append(events, answer)
		}
	}})
	c.permit("ever")
	id := c.open(folder(t))
	require.Contains(t, strings.Join(c.texts(id, runRequest("t1", "go vet; touch x")), ""), `"optionId":"no"`)
	require.Empty(t, c.questions())
	require.Contains(t, toolCalls(t, c.messages())[0], "Run (refused by the rule `run touch`)")
	require.Equal(t, []string{"reject_once", "run touch"}, []string{events[0].Choice, events[0].Rule})
	require.Contains(t, log.String(), `verdict=deny rule="run touch"`)
	unable := strings.Replace(runRequest("t2", "touch x"), `"kind":"reject_once"`, `"kind":"other"`, 1)
	require.Contains(t, strings.Join(c.texts(id, unable), ""), `"outcome":"cancelled"`)

	// An agent's own way to allow for good stays where a rule says to ask, and where none can be
	// made.
	for i, line := range []string{"go vet -json", "go vet | x"} {
		require.Contains(t, strings.Join(c.texts(id, runRequest("t3", line)), ""), `"optionId":"ever"`)
		require.Contains(t, string(c.questions()[i].Params), once)
	}
	// Where a rule can be made, an answer that was not offered allows nothing.
	require.Contains(t, strings.Join(c.texts(id, runRequest("t4", "go test")), ""), `"outcome":"cancelled"`)
}

// What an agent announced and what it asks must agree.
//
// Clause R2.
func TestAnnouncedCall(t *testing.T) {
	c := start(t, acp.Options{Permissions: allowingRules("run go vet ..."), Backend: using(&scripted{})})
	c.permit("no")
	id := c.open(folder(t))
	announce := func(tool, line string) {
		c.texts(id, `update {"sessionUpdate":"tool_call","toolCallId":"`+tool+`","title":"T","kind":"execute","rawInput":{}}`)
		c.texts(id, `update {"sessionUpdate":"tool_call_update","toolCallId":"`+tool+`","rawInput":{"command":`+encode(line)+`}}`)
	}
	announce("t1", "go vet ./...")
	require.Contains(t, strings.Join(c.texts(id, runRequest("t1", "go vet ./...")), ""), `"optionId":"yes"`)
	announce("t2", "go vet; touch x")
	c.texts(id, runRequest("t2", "go vet ./..."))
	require.Len(t, c.questions(), 1)
	announce("t3", "go vet "+strings.Repeat("x", 300<<10))
	c.texts(id, runRequest("t3", "go vet ./..."))
	require.Len(t, c.questions(), 2, "it is too long to be compared")
	c.texts(id, strings.Replace(runRequest("t1", ""), `,"rawInput":{"command":""}`, "", 1))
	require.Len(t, c.questions(), 2, "the announcement says it")
}

// /permissions shows what holds in the session, and takes back what the user allowed.
//
// Clause R3.
func TestPermissionsCommand(t *testing.T) {
	a := folder(t)
	rules := func(workspace.Dir) *acp.Permissions {
		return &acp.Permissions{Allow: []string{"read"}, Deny: []string{"run git push"}}
	}
	state := t.TempDir()
	store := consent.NewStore(state)
	root := workspace.Real(parseDir(t, a))
	given := consent.ForRule(root, "run go vet ...", "")
	require.NoError(t, store.Allow(given))
	elsewhere := consent.ForRule(workspace.Real(parseDir(t, folder(t))), "run make check ...", "")
	require.NoError(t, store.Allow(elsewhere))
	c := start(t, acp.Options{Permissions: rules, ConsentDir: state, Backend: using(&scripted{})})
	c.permit("no")
	id := c.open(a)
	said := c.say(id, "/permissions")
	require.Contains(t, said, "- deny `run git push`, from your configuration\n")
	require.Contains(t, said, "- allow `read`, from your configuration\n")
	require.Contains(t, said, "- allow `run go vet ...`, in `"+root.String()+"`, given ")
	require.Contains(t, said, " as `"+given.ID.Short()+"`\n")
	require.NotContains(t, said, "make check")
	c.texts(id, runRequest("t1", "go vet"))
	require.Empty(t, c.questions())
	for _, wrong := range []string{"revoke", "revoke x", "revoke " + elsewhere.ID.Short(), "revoke " + given.ID.Short()[:3], "x"} {
		require.NotContains(t, c.say(id, "/permissions "+wrong), "Revoked", wrong)
	}
	require.Equal(t, "Revoked: `run go vet ...` is asked for again.\n", c.say(id, "/permissions revoke "+given.ID.Short()))
	c.texts(id, runRequest("t2", "go vet"))
	require.Len(t, c.questions(), 1)
	c = start(t, acp.Options{Permissions: allowingRules(), Backend: using(&scripted{})})
	require.Contains(t, c.say(c.open(a), "/permissions"), "yet: you are asked")
}

// An agent that never asks makes rules look like protection, so the user is told.
//
// Clause R4.
func TestAgentThatNeverAsks(t *testing.T) {
	for name, permissions := range map[string]func(workspace.Dir) *acp.Permissions{"rules": allowingRules("read"), "none": nil} {
		c := start(t, acp.Options{Permissions: permissions, Backend: using(&scripted{neverAsks: true})})
		id := c.open(folder(t))
		said := c.say(id, "say x") + c.say(id, "say x")
		if permissions == nil {
			require.NotContains(t, said, "asks for no permission", name)
			continue
		}
		require.Equal(t, 1, strings.Count(said, "asks for no permission: your rules about permissions do not hold for it"), said)
		require.Contains(t, c.say(id, "/permissions"), "asks for no permission")
	}
}

// An agent that by default does not ask is found out by what it does: the user is told once.
//
// Clause R4.
func TestAgentThatAsksLittle(t *testing.T) {
	c := start(t, acp.Options{Permissions: allowingRules("run go vet ..."), Backend: using(&scripted{asksLittle: "if it is told to"})})
	c.permit("yes")
	id := c.open(folder(t))
	call := func(tool, kind string) string {
		return strings.Join(c.texts(id, `update {"sessionUpdate":"tool_call","toolCallId":"`+tool+`","title":"T","kind":"`+kind+`"}`), "") +
			strings.Join(c.texts(id, `update {"sessionUpdate":"tool_call_update","toolCallId":"`+tool+`","status":"completed"}`), "")
	}
	const told = "changes files and runs commands without asking"
	require.NotContains(t, call("t1", "read"), told)
	c.texts(id, runRequest("t2", "go vet"))
	require.NotContains(t, call("t2", "execute"), told)
	call("t4", "edit")
	c.permit("allow-once")
	require.Contains(t, c.say(id, "/roots add "+folder(t)), "Added")
	call("t5", "edit")
	require.Equal(t, 1, strings.Count(strings.Join(texts(c.messages(), id), ""), told+": your rules about permissions do not hold for that. It asks if it is told to."))
}

// In a mode for plans nothing is changed because of a rule, whoever has set it.
//
// Clause R2.
func TestPlansAreNotRuled(t *testing.T) {
	c := start(t, acp.Options{Permissions: allowingRules("run go vet ...", "read"), Backend: using(&scripted{})})
	c.permit("no")
	cwd := folder(t)
	id := c.open(cwd)
	asks := func(want int) {
		t.Helper()
		before := len(c.questions())
		c.texts(id, runRequest("t", "go vet"))
		c.texts(id, `call session/request_permission {"toolCall":{"toolCallId":"r","kind":"read","locations":[{"path":`+encode(cwd)+`}]},"options":`+once+`}`)
		require.Len(t, c.questions(), before+want)
	}
	asks(0)
	c.call("session/set_mode", encode(map[string]any{"sessionId": id, "modeId": "plan"}))
	asks(1)
	c.texts(id, `update {"sessionUpdate":"current_mode_update","currentModeId":"build"}`)
	asks(0)
	c.texts(id, `update {"sessionUpdate":"config_option_update","configOptions":[{"id":"x","category":"mode","currentValue":"https://example.com/modes#plan"}]}`)
	asks(1)
}

// What is allowed in a folder is allowed in its worktrees, until it is revoked.
//
// Clause R3.
func TestRulesHoldInWorktrees(t *testing.T) {
	needs.Programs(t, "git")
	shop, other := folder(t), folder(t)
	git := func(args ...string) {
		t.Helper()
		output, err := exec.Command("git", append([]string{"-C", shop, "-c", "user.name=u", "-c", "user.email=u@example.com"}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", output)
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "One")
	roots, err := workspace.NewRoots(shop, nil)
	require.NoError(t, err)
	records, dir, state := t.TempDir(), folder(t), t.TempDir()
	plan, err := worktree.NewRegistry(records, dir).Plan(t.Context(), "fix", roots, worktree.Options{})
	require.NoError(t, err)
	made, err := plan.Make(t.Context())
	require.NoError(t, err)
	editors := filepath.Join(folder(t), "editors") // A38: made by another program
	git("worktree", "add", "-q", "--detach", editors)
	given := consent.ForRule(workspace.Real(parseDir(t, shop)), "run go vet ...", "")
	store := consent.NewStore(state)
	require.NoError(t, store.Allow(given))
	c := start(t, acp.Options{ConsentDir: state, Backend: using(&scripted{}), Worktrees: acp.Worktrees{Records: records, Dir: dir},
		Permissions: func(cwd workspace.Dir) *acp.Permissions {
			rules := &acp.Permissions{Deny: []string{"run x"}}
			if cwd.String() == shop {
				rules.Allow = []string{"run go version"}
			}
			return rules
		}})
	c.permit("no")
	asks := func(cwd, line string, want int) {
		t.Helper()
		id, before := c.open(cwd), len(c.questions())
		c.texts(id, runRequest("t", line))
		require.Len(t, c.questions(), before+want)
	}
	for _, line := range []string{"go vet", "go version"} {
		asks(shop, line, 0)
		asks(made.Folders[0].Path, line, 0)
		asks(editors, line, 0)
		asks(other, line, 1)
	}
	require.NoError(t, store.Forget(given.ID))
	asks(made.Folders[0].Path, "go vet", 1)
	require.Equal(t, 1, strings.Count(c.say(c.open(made.Folders[0].Path), "/permissions"), "- deny `run x`"))
}

// An answer for good is not offered where a rule would still ask, and neither is the agent's own,
// after which the agent would not ask again.
//
// Clause R3.
func TestNoAnswerForGoodWhereARuleMayBeAbout(t *testing.T) {
	c := start(t, acp.Options{Backend: using(&scripted{}), ConsentDir: t.TempDir(),
		Permissions: ruling(acp.Permissions{Allow: []string{"read"}, Deny: []string{"read **/.env"}})})
	c.permit("ever")
	said := c.texts(c.open(folder(t)), runRequest("1", "rg KEY"))
	require.Contains(t, strings.Join(said, ""), `"outcome":"cancelled"`, "it was not offered")
	require.NotContains(t, string(c.questions()[0].Params), "allow_always")
}
