package discovery_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/discovery"
)

// Clause D4.
func TestExpand(t *testing.T) {
	for _, test := range []struct{ name, body, arguments, want string }{
		{"all", "Do $ARGUMENTS, $ARGUMENTS!", `a "b c"`, `Do a "b c", a "b c"!`},
		{"none typed", "Do $ARGUMENTS with $1 and $ARGUMENTS[0].", "",
			"Do  with $1 and $ARGUMENTS[0]."},
		{"by number", "$2 then $1, $3", `one "two three"`, "two three then one, $3"},
		{"by index", "$ARGUMENTS[1] then $ARGUMENTS[0], $ARGUMENTS[2]", `one 'two three'`,
			"two three then one, $ARGUMENTS[2]"},
		{"from zero", "$0 then $1", "one two", "one then two"},
		{"escaped", `\$1, $$1, \$ARGUMENTS, \x`, "one", `$1, $$1, $ARGUMENTS, \x`},
		{"words", `$1|$2|$3|$4`, `a\ b "" 'c\d' "e\"f"`, `a b||c\d|e"f`},
		{"arguments are not expanded", "$1 $ARGUMENTS", "$2 $ARGUMENTS", "$2 $2 $ARGUMENTS"},
		{"other dollars", "$HOME, $, $a, $99999", "x", "$HOME, $, $a, $99999"},
	} {
		t.Run("D4/"+test.name, func(t *testing.T) {
			e := discovery.Expand(test.body, test.arguments)
			require.Equal(t, test.want, e.String())
			require.Empty(t, e.Note())
		})
	}
	t.Run("D4/whether there are places", func(t *testing.T) {
		for body, want := range map[string]bool{"$ARGUMENTS": true, "$1": true,
			"$ARGUMENTS[4]": true, "$5": false, `\$1`: false, "x": false} {
			require.Equal(t, want, discovery.Expand(body, "one").TakesArguments, body)
		}
		c := scan(t, discovery.Options{}, tree(t, map[string]string{
			".claude/commands/x.md": "---\narguments: issue\n---\nFix $issue"}))
		e, err := c.Expand(t.Context(), c.Active(discovery.Command)[0], "7")
		require.NoError(t, err)
		require.True(t, e.TakesArguments)
	})
	t.Run("D4/commands and files stay text", func(t *testing.T) {
		body := "Diff: !`git diff $1`\nSee @docs/a.md, not @alice or a@b.de or `@c.md`.\n```!\nls\n```\n"
		e := discovery.Expand(body, "x")
		require.Equal(t, strings.Replace(body, "$1", "x", 1), e.String())
		require.Equal(t, []string{"!`git diff $1`", "```!", "@docs/a.md"}, discovery.Inert(e))
		require.Contains(t, e.Note(), "@docs/a.md")
	})
	t.Run("D4/named in the frontmatter", func(t *testing.T) {
		const body = "$branch, $issue-1, $issue-kind, $issues, \\$issue, $1, $ARGUMENTS, $kind"
		for head, want := range map[string]string{
			"arguments: [issue, issue-kind, branch, kind]": "fix it, 7-1, bug, $issues, $issue, 7, 7 bug 'fix it', $kind",
			"arguments: issue issue-kind branch kind":      "fix it, 7-1, bug, $issues, $issue, 7, 7 bug 'fix it', $kind",
			"arguments:\n- name: issue":                    "$branch, $issue-1, $issue-kind, $issues, \\$issue, 7, 7 bug 'fix it', $kind",
			"arguments: issue (.*":                         "$branch, $issue-1, $issue-kind, $issues, \\$issue, 7, 7 bug 'fix it', $kind",
		} {
			for path, kind := range map[string]discovery.Kind{".claude/commands/x.md": discovery.Command, ".claude/skills/x/SKILL.md": discovery.Skill} {
				c := scan(t, discovery.Options{},
					tree(t, map[string]string{path: "---\nname: x\ndescription: d\n" + head +
						"\n---\n" + body}))
				a := c.Active(kind)[0]
				e, err := c.Expand(t.Context(), a, "7 bug 'fix it'")
				require.NoError(t, err)
				require.Equal(t, want, e.String(), head)
				if strings.Contains(want, "7-1") {
					require.Equal(t, "[issue] [issue-kind] [branch] [kind]", a.Hint)
				}
			}
		}
	})
	t.Run("D4/long arguments", func(t *testing.T) {
		top := tree(t, map[string]string{".claude/commands/x.md": strings.Repeat("$ARGUMENTS",
			100_000)})
		c := scan(t, discovery.Options{}, top)
		_, err := c.Expand(t.Context(), c.Active(discovery.Command)[0], strings.Repeat("x", 1000))
		require.ErrorContains(t, err, "longer than 2097152 bytes: use shorter arguments")
	})
	t.Run("D4/a command of Gemini CLI", func(t *testing.T) {
		top := tree(t,
			map[string]string{".gemini/commands/x.toml": "prompt = '''Do {{args}} $1. !{ls} @{a.md}'''"})
		c := scan(t, discovery.Options{}, top)
		a := c.Active(discovery.Command)[0]
		e, err := c.Expand(t.Context(), a, "it now")
		require.NoError(t, err)
		require.Equal(t, "Do it now $1. !{ls} @{a.md}", e.String())
		require.Equal(t, []string{"!{ls}", "@{a.md}"}, discovery.Inert(e))
		require.True(t, e.TakesArguments)
	})
}
