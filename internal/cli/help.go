package cli

import (
	"embed"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// helpTexts has a file for each command that needs more words than its name, such as
// help/sessions-list.txt: what it does and, after the line "Examples:", how it is called.
//
//go:embed help
var helpTexts embed.FS

// addHelp gives cmd the texts of its file.
func addHelp(cmd *cobra.Command) {
	name := strings.TrimPrefix(words(cmd), "acp ") // acp-agent acp has a command of acp-agent
	file := "help/" + strings.ReplaceAll(name, " ", "-") + ".txt"
	if text, err := helpTexts.ReadFile(file); err == nil {
		long, examples, _ := strings.Cut("\n"+string(text), "\nExamples:\n")
		cmd.Long, cmd.Example = strings.TrimSpace(long), strings.TrimSuffix(examples, "\n")
	}
}

// printHelpTexts makes the commands read their texts when somebody asks for help: an editor that
// starts the program does not wait for them.
func printHelpTexts(root *cobra.Command) {
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		addHelp(cmd)
		help(cmd, args)
	})
}

// helpWidth is the number of columns of help texts.
const helpWidth = 80

// printUsage prints how a command is used, like cobra but within helpWidth columns.
func printUsage(cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if cmd.Runnable() {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s [command]\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nAvailable Commands:\n")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				fmt.Fprintf(&b, "  %-*s %s\n", sub.NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
	if cmd.HasAvailableLocalFlags() {
		b.WriteString("\nFlags:\n" + cmd.LocalFlags().FlagUsagesWrapped(helpWidth))
	}
	if cmd.HasAvailableInheritedFlags() {
		b.WriteString("\nGlobal Flags:\n" + cmd.InheritedFlags().FlagUsagesWrapped(helpWidth))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nUse \"%s [command] --help\" for more about a command.\n",
			cmd.CommandPath())
	}
	_, err := fmt.Fprint(cmd.OutOrStdout(), b.String())
	return err
}
