package cli

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/serve"
)

// newCommands returns the command line with all commands and their texts.
func newCommands(s streams) *cobra.Command {
	root, set := newRoot(s)
	addCommands(root, set)
	describeAll(root)
	return root
}

func describeAll(cmd *cobra.Command) {
	describe(cmd)
	for _, sub := range cmd.Commands() {
		describeAll(sub)
	}
}

// Help texts fit a terminal of usual width, and flags name their values.
func TestHelpFits(t *testing.T) {
	root := newCommands(streams{})
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
			require.NotEmpty(t, f.Usage, "%s --%s", cmd.CommandPath(), f.Name)
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

// Every help text is that of a command, and describes flags of it or of its subcommands.
func TestHelpTextsHaveACommand(t *testing.T) {
	files, err := helpTexts.ReadDir("help")
	require.NoError(t, err)
	used := map[string]string{}
	var collect func(*cobra.Command) []string
	collect = func(cmd *cobra.Command) (flags []string) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
		for _, sub := range cmd.Commands() {
			flags = append(flags, collect(sub)...)
		}
		about, described, examples := readHelp(cmd)
		used[strings.ReplaceAll(words(cmd), " ", "-")+".txt"] = about + examples
		described = "\n" + described
		for _, name := range regexp.MustCompile(`\n  --(\S+)`).FindAllStringSubmatch(described, -1) {
			require.Contains(t, flags, name[1], words(cmd))
		}
		return flags
	}
	collect(newCommands(streams{}))
	for _, file := range files {
		require.NotEmpty(t, used[file.Name()], file.Name())
	}
	require.Contains(t, used["serve.txt"], "at the path "+serve.Path)
}
