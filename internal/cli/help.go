package cli

import (
	"cmp"
	"embed"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/acp-agent/acp-agent/internal/terminal"
)

// helpTexts has a file for each command that needs more words than its name, such as
// help/sessions-list.txt: what it does and, after the line "Examples:", how it is called.
//
//go:embed help
var helpTexts embed.FS

// overview is the list of commands that the program shows.
var overview = [...]struct {
	title    string
	commands []string
}{
	{"First", []string{"setup", "doctor", "run", "sessions", "agents"}},
	{"Sessions", []string{"models", "permissions", "discover", "worktree", "diff", "inspect"}},
	{"Other machines and programs",
		[]string{"serve", "connect", "tokens", "mcp", "sandbox", "conform"}},
	{"The program", []string{"acp", "completion", "version"}},
}

// addHelp gives cmd the texts of its file.
func addHelp(cmd *cobra.Command) {
	name := strings.TrimPrefix(words(cmd), "acp ") // acp-agent acp has a command of acp-agent
	file := "help/" + strings.ReplaceAll(name, " ", "-") + ".txt"
	if text, err := helpTexts.ReadFile(file); err == nil {
		long, examples, _ := strings.Cut("\n"+string(text), "\nExamples:\n")
		cmd.Long, cmd.Example = strings.TrimSpace(long), strings.TrimSuffix(examples, "\n")
	}
}

// printHelp prints the help of a command. It reads its text when somebody asks for help: an editor
// that starts the program does not wait for it.
func printHelp(cmd *cobra.Command) error {
	addHelp(cmd)
	_, err := fmt.Fprint(cmd.OutOrStdout(),
		terminal.Flow(cmp.Or(cmd.Long, cmd.Short)+"\n\n", usageWidth(cmd)))
	return cmp.Or(err, printUsage(cmd))
}

// helpWidth is the number of columns of help texts, except on narrower terminals.
const helpWidth = 80

func usageWidth(cmd *cobra.Command) int {
	if width := terminal.Width(cmd.OutOrStdout()); width > 0 {
		return min(width, helpWidth)
	}
	return helpWidth
}

// printUsage prints how a command is used.
func printUsage(cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if cmd.Runnable() {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	list := func(title string, commands []*cobra.Command) {
		fmt.Fprintf(&b, "\n%s:\n", title)
		for _, sub := range commands {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, "  %-11s  %s\n", sub.Name(), sub.Short)
			}
		}
	}
	width := usageWidth(cmd)
	flags := func(title string, set *pflag.FlagSet) {
		if set.HasAvailableFlags() {
			fmt.Fprintf(&b, "\n%s:\n%s", title, set.FlagUsagesWrapped(width))
		}
	}
	if cmd.HasParent() {
		if cmd.HasAvailableSubCommands() {
			list("Commands", cmd.Commands())
		}
		flags("Flags", cmd.LocalFlags())
		flags("Global Flags", cmd.InheritedFlags())
		if cmd.HasAvailableSubCommands() {
			fmt.Fprintf(&b, "\n%s COMMAND --help explains a command.\n", cmd.CommandPath())
		}
	} else {
		for _, group := range overview {
			var commands []*cobra.Command
			for _, name := range group.commands {
				sub, _, _ := cmd.Find([]string{name})
				commands = append(commands, sub)
			}
			list(group.title, commands)
		}
		b.WriteString("\nacp-agent COMMAND --help explains a command, " +
			"acp-agent acp --help all flags.\n")
	}
	_, err := fmt.Fprint(cmd.OutOrStdout(), terminal.Flow(b.String(), width))
	return err
}
