package acp_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/test/needs"
	"github.com/acp-agent/acp-agent/workspace"
)

// A session says when a budget is used up, and asks before the next prompt.
//
// Clause K1.
func TestBudget(t *testing.T) {
	store, dir := memstore.New(t), folder(t)
	within, err := workspace.ParseDir(dir)
	require.NoError(t, err)
	budgets := map[string]acp.Budget{}
	for name, text := range map[string]string{"day": "5 USD per day", "session": "5 USD per session"} {
		budgets[name], err = acp.ParseBudget(text)
		require.NoError(t, err)
	}
	options := func(b acp.Budget) acp.Options {
		b.Within = within
		return acp.Options{Store: store, Budgets: func(cwd workspace.Dir) []acp.Budget {
			require.Equal(t, within, cwd)
			return []acp.Budget{b}
		}}
	}
	c := start(t, options(budgets["session"]))
	id := c.open(dir)
	require.NotContains(t, strings.Join(c.texts(id, "spend 4.5"), ""), "budget")
	require.NotContains(t, strings.Join(c.texts(id, "spend 100 EUR"), ""), "budget", "currencies are not added")
	require.Contains(t, strings.Join(c.texts(id, "spend 5.25"), ""), "The budget of 5 USD per session is used up: 5.2500 USD")

	c.permit("reject-once")
	require.Contains(t, strings.Join(c.texts(id, "spend 6"), ""), "The agent did not get this prompt")
	require.Len(t, c.questions(), 1)
	require.Contains(t, string(c.questions()[0].Params), "The budget of 5 USD per session is used up")
	c.permit("allow-once")
	require.NotContains(t, strings.Join(c.texts(id, "spend 6"), ""), "used up", "it was used up before")
	c.permit("allow-always")
	c.texts(id, "spend 7")
	asked := len(c.questions())
	require.Equal(t, 3, asked)
	c.call("session/load", rootsParams(id, dir, folder(t)))
	c.texts(id, "spend 8")
	require.Len(t, c.questions(), asked, "no more today, with other folders either")
	require.Contains(t, strings.Join(c.texts(id, "/roots"), ""), dir, "acp-agent's own commands cost nothing")
	sums, _ := spentIn(t, store, cost(id))
	require.InDelta(t, 8, sums["USD"], 1e-9)

	other := start(t, options(budgets["day"]))
	second := other.open(dir)
	other.permit("reject-once")
	require.Contains(t, strings.Join(other.texts(second, "say hello"), ""), "did not get this prompt", "sessions of a day count together")

	other.permit("cancelled")
	require.Contains(t, strings.Join(other.texts(second, "say hello"), ""), "did not get this prompt")
}

// A budget of a folder counts the sessions in worktrees of it, too.
//
// Clauses A38, K1.
func TestBudgetCountsWorktrees(t *testing.T) {
	needs.Programs(t, "git")
	store, app := memstore.New(t), dirtest.New(t, "sub/f", "")
	tree := filepath.Join(folder(t), "tree")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-q", "-m", "One"}, {"worktree", "add", "-q", tree}} {
		output, err := exec.Command("git", append([]string{"-C", app, "-c", "user.name=u", "-c", "user.email=u@example.com"}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", output)
	}
	b, err := acp.ParseBudget("5 USD per day")
	require.NoError(t, err)
	b.Within, err = workspace.ParseDir(filepath.Join(app, "sub"))
	require.NoError(t, err)
	c := start(t, acp.Options{Store: store, Budgets: func(cwd workspace.Dir) []acp.Budget {
		if cwd.String() == tree { // it is above
			return nil
		}
		return []acp.Budget{b}
	}})
	c.say(c.open(tree), "spend 100")
	require.NotContains(t, c.say(c.open(filepath.Join(tree, "sub")), "spend 4"), "used up")
	require.Contains(t, c.say(c.open(b.Within.String()), "spend 2"), "used up: 6.0000 USD")
}

// A question about a budget ends with its own prompt, whatever becomes of the turns that the prompt
// overlaps.
func TestBudgetOfAnOverlappingPrompt(t *testing.T) {
	b, err := acp.ParseBudget("5 USD per session")
	require.NoError(t, err)
	budgets := func(workspace.Dir) []acp.Budget { return []acp.Budget{b} }
	for name, test := range map[string]struct {
		stop   func(c, newer *client, id, cwd, running string)
		answer string // to the question, if it is still asked
		end    string // of the second prompt
	}{
		"the other is cancelled": {func(c, _ *client, _, _, running string) {
			c.send(notification("$/cancel_request", `{"requestId":`+running+`}`))
			c.response(running)
		}, "allow-once", "end_turn"},
		"both are cancelled": {func(c, _ *client, id, _, _ string) {
			c.send(notification("session/cancel", idParams(id)))
		}, "", "cancelled"},
		"the session is closed": {func(c, _ *client, id, _, _ string) {
			c.post("session/close", idParams(id))
		}, "", "cancelled"},
		"another window takes it": {func(_, newer *client, id, cwd, _ string) {
			newer.call("session/load", rootsParams(id, cwd))
		}, "", "fenced"},
	} {
		t.Run(name, func(t *testing.T) {
			c, newer := twoWindows(t, acp.Options{Backend: using(&scripted{overlaps: true}), Budgets: budgets})
			dir := folder(t)
			id := c.open(dir)
			running := c.beginTurn(id, "wait", "waiting")
			spend := c.post("session/prompt", promptParams(id, "spend 6"))
			c.response(spend)
			asking := c.post("session/prompt", promptParams(id, "say hello"))
			asked := question(c)
			test.stop(c, newer, id, dir, running)
			if test.answer != "" {
				c.reply(asked, strings.Replace(yes, "yes", test.answer, 1))
			}
			m := c.response(asking)
			require.NotContains(t, strings.Join(texts(c.messages(), id), ""), "did not get this prompt")
			if m.Error != nil {
				require.Equal(t, test.end, m.reason(t))
			} else {
				require.Equal(t, test.end, m.stopReason(t))
				require.NotContains(t, string(m.Result), "failed")
			}
		})
	}
}
