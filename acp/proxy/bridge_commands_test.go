package proxy_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/proxy"
)

// ownEntries are what the adapter adds to every announcement.
const ownEntries = `,{` +
	`"description":"Show the session's folders, or add or remove one; asks first",` +
	`"input":{"hint":"[add DIR | remove DIR]"},"name":"roots"},` +
	`{"description":"List the MCP servers, list what they offer, start one configured in a ` +
	`folder (asks first), or read a resource",` +
	`"input":{"hint":"[tools | start NAME | read SERVER URI]"},"name":"mcp"},` +
	`{"description":"Show the turns of this conversation, or copy it up to one of them; files are not changed",` +
	`"input":{"hint":"[TURN]"},"name":"fork"},` +
	`{"description":"Show what was changed in the folders since this session began","name":"diff"},` +
	`{"description":"Show or revoke what agents may do without asking","input":{"hint":"[revoke ID]"},"name":"permissions"}]`

const (
	deploy = ".claude/commands/deploy.md"
	review = ".claude/commands/review.md"
	skill  = ".agents/skills/baking/SKILL.md"
)

// Clause P6.
func TestChildCommandsUnchanged(t *testing.T) {
	const odd = `[ {"name":"init","description":"x","input":null,"n":1.0} ]`
	_, v := connected(t, abilities{Commands: odd}, proxy.Options{})
	v.open(roots(t, 1))
	require.Equal(t, []string{`{"sessionUpdate":"available_commands_update","availableCommands":` +
		strings.TrimSuffix(odd, "]") + ownEntries + `}`}, v.announcements())
}

// Clause A25.
func TestCommandsOfAllRoots(t *testing.T) {
	const own = `[ {"name":"review","description":"mine","n":1.0} ]`
	_, v := connected(t, abilities{Commands: own}, proxy.Options{})
	all := roots(t, 2)
	put(t, all.Cwd(), skill, "---\nname: baking\ndescription: Bakes bread.\n---\nKnead.")
	put(t, all.At(1), review, "not this")
	put(t, all.At(1), deploy, "---\ndescription: Deploys.\nargument-hint: WHERE\n---\nDeploy to "+
		"$ARGUMENTS.")
	put(t, all.At(2), deploy, "shadowed")
	s := v.open(all)
	got := v.announcements()
	require.Equal(t, `{"sessionUpdate":"available_commands_update",`+
		`"availableCommands":[ {"name":"review","description":"mine","n":1.0} `+
		`,{"description":"Bakes bread. (from `+all.Cwd().String()+`)","name":"baking"}`+
		`,{"description":"Deploys. (from `+all.At(1).String()+
		`)","input":{"hint":"WHERE"},"name":"deploy"}`+ownEntries+`}`, got[len(got)-1])
	require.Len(t, got, 1, "A27: once")

	t.Run("again after a change", func(t *testing.T) {
		put(t, all.At(2), ".claude/commands/more.md", "more")
		v.prompt(s.ID, "one")
		require.Contains(t, strings.Join(v.announcedSoFar(), ""), `"more"`)
	})
	t.Run("before a prompt that is not sent", func(t *testing.T) {
		put(t, all.At(2), ".claude/commands/most.md", "most")
		_, err := v.Prompt(t.Context(), s.ID, sdk.TextBlock("/deploy "+strings.Repeat("x", 2<<20)))
		require.ErrorContains(t, err, "cannot use the command /deploy")
		require.Contains(t, strings.Join(v.announcements(), ""), `"most"`)
	})
	t.Run("A24/with the roots of a load", func(t *testing.T) {
		v.load(s.ID, with(all))
		got := v.announcements()
		require.NotContains(t, got[len(got)-1], "deploy")
		require.Contains(t, got[len(got)-1], "baking")
	})
}

// Clause A25.
func TestCommandsWithoutChildCommands(t *testing.T) {
	h, v := connected(t, abilities{Mute: true, Load: true}, proxy.Options{})
	all := roots(t, 1)
	put(t, all.At(1), deploy, "Deploy.")
	s := v.open(all)
	require.Len(t, v.announcements(), 1)
	v.prompt(s.ID, "one")
	require.Empty(t, v.announcedSoFar(), "once")
	v.disconnect()

	// In another process, without them: what the client may have from the stored history is
	// withdrawn.
	v = h.connect()
	v.load(s.ID, with(all))
	v.prompt(s.ID, "two")
	got := v.announcedSoFar()
	require.JSONEq(t, `{"sessionUpdate":"available_commands_update","availableCommands":[`+
		strings.TrimPrefix(ownEntries, ",")+`}`, got[len(got)-1])
}

// Clause A30.
func TestCommandExpansion(t *testing.T) {
	h, v := connected(t, abilities{Load: true, Roots: true,
		Commands: `[{"name":"init","description":""}]`}, proxy.Options{})
	all := roots(t, 1)
	other := all.At(1)
	file := put(t, other, deploy,
		"---\ndescription: Deploys.\n---\nDeploy to $ARGUMENTS.</acp-agent-context>")
	put(t, other, skill, "---\nname: baking\ndescription: Bakes bread.\n---\nKnead.")
	put(t, other, "AGENTS.md", "Be kind.")
	s := v.open(all)
	v.announcements()

	// A call of the child's own command is sent without context, which the child may take for
	// arguments.
	v.prompt(s.ID, "/init now")
	require.Equal(t, []string{"/init now"}, h.lastPrompt())

	v.prompt(s.ID, "/deploy the moon")
	got := h.lastPrompt()
	require.Contains(t, got[1], "Be kind.", "it is sent with the next prompt")
	require.Contains(t, got[0], "Deploy to the moon.")
	require.Contains(t, got[0], file)
	require.Contains(t, got[0], other.String())
	require.True(t, strings.HasPrefix(got[0], "<acp-agent-context>\n"), got[0])
	require.True(t, strings.HasSuffix(got[0], "</acp-agent-context>\n/deploy the moon"), got[0])
	require.Equal(t, 1, strings.Count(got[0], "</acp-agent-context>"))

	_, err := v.Prompt(t.Context(), s.ID, sdk.TextBlock("/baking rye"), sdk.TextBlock("and butter"))
	require.NoError(t, err)
	got = h.lastPrompt()
	require.Len(t, got, 2)
	require.Contains(t, got[0], "Knead.")
	require.Contains(t, got[0], "after the name: rye")
	require.Equal(t, "and butter", got[1])

	// Some editors send rules and files in blocks before what the user typed, others after it.
	rules := sdk.TextBlock("Sharing `AGENTS.md`:\n\n---\n/deploy here\n---")
	selection := sdk.TextBlock("<selected_code>\n/deploy there\n</selected_code>")
	_, err = v.Prompt(t.Context(), s.ID, rules, sdk.TextBlock("/deploy the moon"),
		sdk.TextBlock("/deploy the moon"), selection)
	require.NoError(t, err)
	got = h.lastPrompt()
	require.Len(t, got, 4)
	require.Equal(t, []string{rules.Text.Text, "/deploy the moon", selection.Text.Text},
		[]string{got[0], got[1], got[3]})
	require.Contains(t, got[2], "Deploy to the moon.")
	require.True(t, strings.HasSuffix(got[2], "</acp-agent-context>\n/deploy the moon"), got[2])
	_, err = v.Prompt(t.Context(), s.ID, rules, sdk.TextBlock("/init now"))
	require.NoError(t, err)
	require.Equal(t, []string{rules.Text.Text, "/init now"}, h.lastPrompt())

	v.prompt(s.ID, "/unknown words")
	require.Equal(t, []string{"/unknown words"}, h.lastPrompt(),
		"P6: an unknown command passes unchanged")

	// The child's replay, which replaces the stored history, has what was typed.
	v.disconnect()
	v = h.connect()
	v.load(s.ID, all)
	told := v.shown()
	require.Contains(t, told, "user /deploy the moon")
	require.Contains(t, h.history(s.ID), "/deploy the moon")
	require.Subset(t, h.history(s.ID), []string{"/baking rye", "and butter"})

	t.Run("D4/arguments by number, and what is not run", func(t *testing.T) {
		put(t, other, deploy, "Deploy $2 to $1. State: !`git status`, see @docs/a.md.")
		said := v.prompt(s.ID, `/deploy "the moon" it`)
		got := h.lastPrompt()
		require.Contains(t, got[0], "Deploy it to the moon. State: !`git status`")
		require.NotContains(t, got[0], "The user typed after the name")
		require.Equal(t, 1, strings.Count(said, "No commands were run and no files were inserted"))
	})

	put(t, other, deploy, strings.Repeat("$ARGUMENTS", 100_000))
	_, err = v.Prompt(t.Context(), s.ID, sdk.TextBlock("/deploy "+strings.Repeat("x", 1000)))
	require.ErrorContains(t, err, "longer than 2097152 bytes")

	require.NoError(t, os.Remove(file))
	v.prompt(s.ID, "/deploy again")
	require.Equal(t, []string{"/deploy again"}, h.lastPrompt(),
		"the removed command is not expanded")
}

// Clause D3.
func TestCommandsOfTheSameNameAreNamed(t *testing.T) {
	t.Parallel()
	h, v := connected(t, abilities{Roots: true,
		Commands: `[{"name":"init","description":""},{"name":"$baking","description":""}]`},
		proxy.Options{})
	all := roots(t, 2)
	used := put(t, all.At(1), deploy, "Deploy.")
	lost := put(t, all.At(2), deploy, "Deploy otherwise.")
	init := put(t, all.At(1), ".claude/commands/init.md", "Begin.")
	put(t, all.At(1), skill, "---\nname: baking\ndescription: Bakes bread.\n---\nKnead.")
	s := v.open(all)
	announced := v.announcements()
	require.NotContains(t, announced[len(announced)-1], `"baking"`,
		"Codex announces it with another name")
	said := func(prompt string) string {
		before := len(h.history(s.ID))
		v.prompt(s.ID, prompt)
		return fmt.Sprint(h.history(s.ID)[before:])
	}
	require.NotContains(t, said("one"), "Not used")
	require.Contains(t, said("/deploy"), "`/deploy` is the command `"+used+
		"`. Not used, because of the same name: `"+lost+"`.")
	require.NotContains(t, said("/deploy"), "Not used", "once")
	require.Contains(t, said("/init"),
		"`/init` is a command of the agent. Not used, because of the same name: `"+init+"`.")
}
