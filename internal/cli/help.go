package cli

import (
	"cmp"
	"embed"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/acp-agent/acp-agent/internal/config"
	"github.com/acp-agent/acp-agent/internal/config/setup"
	"github.com/acp-agent/acp-agent/internal/terminal"
)

// helpTexts has a file for each command, such as help/sessions-list.txt: how it is called, what it
// does in a line and then in more words and, after the lines "Flags:" and "Examples:", these. The
// file of a command describes flags of its subcommands, too.
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

// readHelp returns the parts of the file of a command, none for the commands of cobra.
func readHelp(cmd *cobra.Command) (about, flags, examples string) {
	name := strings.TrimPrefix(words(cmd), "acp ") // acp-agent acp has a command of acp-agent
	text, _ := helpTexts.ReadFile("help/" + strings.ReplaceAll(name, " ", "-") + ".txt")
	about, examples, _ = strings.Cut("\n"+string(text), "\nExamples:\n")
	about, flags, _ = strings.Cut(about, "\nFlags:\n")
	return strings.TrimSpace(about), flags, strings.TrimSuffix(examples, "\n")
}

// describe gives cmd and its flags the texts of its file. It is called when somebody asks for them:
// an editor that starts the program does not wait for it.
func describe(cmd *cobra.Command) {
	if about, _, examples := readHelp(cmd); about != "" {
		cmd.Use, about, _ = strings.Cut(about, "\n")
		cmd.Short, about, _ = strings.Cut(about, "\n")
		cmd.Long, cmd.Example = strings.TrimSpace(about), examples
	}
	stateDir, _ := defaultStateDir() // none if it cannot be determined
	filled := strings.NewReplacer("\n      ", " ", "{state-dir}", fromHome(stateDir),
		"{config}", fromHome(config.DefaultPath()),
		"{editors}", strings.Join(setup.EditorNames(), ", "))
	for of := cmd; of != nil; of = of.Parent() {
		_, flags, _ := readHelp(of)
		for line := range strings.Lines(filled.Replace(flags)) {
			name, text, _ := strings.Cut(strings.TrimPrefix(line, "  --"), "  ")
			if flag := cmd.Flag(name); flag != nil && flag.Usage == "" {
				flag.Usage = strings.TrimSpace(text)
			}
		}
	}
}

func printHelp(cmd *cobra.Command) error {
	describe(cmd)
	_, err := fmt.Fprint(cmd.OutOrStdout(),
		terminal.Flow(cmp.Or(cmd.Long, cmd.Short)+"\n\n", usageWidth(cmd)))
	return cmp.Or(err, printUsage(cmd))
}

// helpWidth is the number of columns of help texts, except on narrower terminals.
const helpWidth = 80

func usageWidth(cmd *cobra.Command) int {
	return min(cmp.Or(terminal.Width(cmd.OutOrStdout()), helpWidth), helpWidth)
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
			if describe(sub); sub.IsAvailableCommand() {
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
