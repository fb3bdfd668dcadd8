package cli

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/config"
)

// referenceRow matches a row of a table that begins with code: the code and the rest of the row.
var referenceRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.*) \\|$")

// TestReferenceHasEveryFlag compares docs/reference.md with the flags and settings of the program.
func TestReferenceHasEveryFlag(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference.md")
	require.NoError(t, err)
	_, flags, found := strings.Cut(string(page), "\n### Flags\n")
	require.True(t, found)
	flags, rest, _ := strings.Cut(flags, "\n## Commands in a session\n")
	_, table, found := strings.Cut(rest, "\n## Settings\n")
	require.True(t, found)

	settings := map[string]string{} // the other cells by flag
	for _, row := range referenceRow.FindAllStringSubmatch(table, -1) {
		if flag, named := strings.CutPrefix(row[1], "--"); named {
			flag, _, _ = strings.Cut(flag, " ")
			settings[flag] = row[2]
		}
	}
	keys := config.KeysOf(reflect.TypeFor[config.Config]())
	for _, s := range newSettings(streams{}).table() {
		require.Contains(t, settings, s.flag)
		if s.variable != "" {
			require.Contains(t, settings[s.flag], "`"+s.variable+"`", s.flag)
		} else {
			require.NotContains(t, settings[s.flag], "ACP_AGENT_", s.flag)
		}
		if s.key != "" {
			require.Contains(t, keys, s.key)
		}
		words := strings.Split(s.flag, "-")
		for i := range words[1:] {
			words[i+1] = strings.ToUpper(words[i+1][:1]) + words[i+1][1:]
		}
		if s.key != "" && s.key != strings.Join(words, "") { // the page says what keys are called
			require.Contains(t, settings[s.flag], `"`+s.key+`"`, s.flag)
		}
	}

	rows := map[string]string{}
	for _, row := range referenceRow.FindAllStringSubmatch(flags, -1) {
		rows[row[1]] = row[2]
	}
	shown := regexp.MustCompile("`--([a-z-]+)")
	var compare func(*cobra.Command)
	compare = func(c *cobra.Command) {
		var has, want []string
		for _, match := range shown.FindAllStringSubmatch(rows[c.CommandPath()], -1) {
			has = append(has, match[1])
		}
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if _, ok := settings[f.Name]; !f.Hidden && f.Name != "help" && f.Name != "version" &&
				(!ok || slices.Contains(has, f.Name)) {
				want = append(want, f.Name)
			}
		})
		require.ElementsMatch(t, want, has, "docs/reference.md: flags of %s", c.CommandPath())
		for _, sub := range c.Commands() {
			if n := sub.Name(); !sub.Hidden && n != "completion" && n != "acp" {
				compare(sub)
			}
		}
	}
	compare(newRoot(streams{}))
}

// TestReferenceHasEveryCommand compares the first table of docs/reference.md with the commands.
func TestReferenceHasEveryCommand(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "\n## Commands\n")
	require.True(t, found)
	table, _, found = strings.Cut(table, "\n### ")
	require.True(t, found)

	var has []string
	for _, row := range referenceRow.FindAllStringSubmatch(table, -1) {
		if words := strings.Fields(row[1]); len(words) > 1 && !strings.HasPrefix(words[1], "[") {
			has = append(has, words[1])
		}
	}
	root := newRoot(streams{})
	root.InitDefaultCompletionCmd("")
	for _, c := range root.Commands() {
		if !c.Hidden && c.Name() != "help" {
			require.Contains(t, has, c.Name(), "docs/reference.md: the first table")
		}
	}
	for _, name := range has {
		c, _, err := root.Find([]string{name})
		require.NoError(t, err)
		require.NotSame(t, root, c, "docs/reference.md: the first table has %s", name)
	}
}
