package cli

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/serve"
)

// Help texts fit a terminal of usual width, and flags name their values.
func TestHelpFits(t *testing.T) {
	root := newRoot(streams{})
	root.InitDefaultCompletionCmd("bash")
	var check func(*cobra.Command)
	check = func(cmd *cobra.Command) {
		var out bytes.Buffer
		cmd.SetOut(&out)
		require.NoError(t, cmd.Help())
		for line := range strings.Lines(out.String()) {
			if cmd.Name() == "completion" || cmd.HasParent() && cmd.Parent().Name() == "completion" {
				break // cobra's texts
			}
			if utf8.RuneCountInString(line) > helpWidth+len("\n") {
				t.Errorf("%s: %s", cmd.CommandPath(), line)
			}
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if name, _ := pflag.UnquoteUsage(f); name != "" && name != strings.ToUpper(name) {
				t.Errorf("%s --%s: %s", cmd.CommandPath(), f.Name, name)
			}
		})
		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}
	check(root)
}

// Every help text is that of a command.
func TestHelpTextsHaveACommand(t *testing.T) {
	files, err := helpTexts.ReadDir("help")
	require.NoError(t, err)
	root := newRoot(streams{})
	used := map[string]string{}
	var collect func(*cobra.Command)
	collect = func(cmd *cobra.Command) {
		addHelp(cmd)
		used[strings.ReplaceAll(words(cmd), " ", "-")+".txt"] = cmd.Long + cmd.Example
		for _, sub := range cmd.Commands() {
			collect(sub)
		}
	}
	collect(root)
	for _, file := range files {
		require.NotEmpty(t, used[file.Name()], file.Name())
	}
	require.Contains(t, used["serve.txt"], "at the path "+serve.Path)
}
