package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
)

// words returns the words of the command line that call cmd, without the program.
func words(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	meant := suggest(cmd, args[0])
	if cmd.Flags().Lookup("cwd") != nil && namedfile.IsDir(args[0]) {
		meant = "; for a folder, use --cwd " + text.ShellWord(args[0])
	}
	return usage.Errorf("%s takes no arguments (got %q)%s", words(cmd), args[0], meant)
}

// takes accepts between least and most arguments, none of them empty. what says what they are, and
// hint helps who gave none.
func takes(least, most int, what, hint string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least || slices.Contains(args, ""):
			return usage.Errorf("%s needs %s%s", words(cmd), what, hint)
		case len(args) > most:
			describe(cmd)
			return usage.Errorf("%s takes only %s (got %q as well); usage: %s", words(cmd), what,
				args[most], cmd.UseLine())
		}
		return nil
	}
}

// splitAtDash returns the arguments before "--", and the command after it.
func splitAtDash(cmd *cobra.Command, args []string) (before, command []string) {
	if at := cmd.ArgsLenAtDash(); at >= 0 {
		return args[:at], args[at:]
	}
	return args, nil
}

// exclusive rejects the use of more than one flag of a group, such as "load resume".
func exclusive(cmd *cobra.Command, groups ...string) error {
	for _, group := range groups {
		given := ""
		for flag := range strings.FieldsSeq(group) {
			switch {
			case !cmd.Flags().Changed(flag):
			case given != "":
				return usage.Errorf("--%s and --%s cannot be used together", given, flag)
			default:
				given = flag
			}
		}
	}
	return nil
}

// commandGroup returns a command with subcommands.
func commandGroup(name string, subcommands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: name}
	cmd.AddCommand(subcommands...)
	return showsHelp(cmd)
}

// showsHelp makes cmd, which has subcommands, print its help and reject unknown subcommands.
func showsHelp(cmd *cobra.Command) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return usage.Errorf("unknown command %q for %s%s", args[0], cmd.CommandPath(),
			suggest(cmd, args[0]))
	}
	return cmd
}

// suggest returns "; did you mean …?" with the subcommand that word may stand for, or a reference
// to the help.
func suggest(cmd *cobra.Command, word string) string {
	names := map[string]string{}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			names[sub.Name()] = sub.Name()
		}
	}
	addOtherWords(names)
	const few = 5
	if n := len(cmd.Commands()); cmd.HasParent() && n > 0 && n <= few {
		there := "; its only command is "
		if n > 1 {
			there = "; there are "
		}
		return cmp.Or(text.Meant(word, names),
			there+strings.Join(slices.Compact(slices.Sorted(maps.Values(names))), ", "))
	}
	return cmp.Or(text.Meant(word, names), fmt.Sprintf("; see %s --help", cmd.CommandPath()))
}

// otherWords are what people type for commands and flags.
var otherWords = map[string][]string{
	"add": {"create", "new"}, "delete": {"remove", "rm"}, "remove": {"delete", "rm"},
	"revoke": {"remove", "delete", "rm"}, "list": {"ls", "show"}, "check": {"test", "explain"},
	"setup": {"init", "install", "config"}, "doctor": {"check", "status", "verify"},
	"permissions": {"allow", "rules"}, "discover": {"roots", "folders", "dirs"},
	"run": {"chat", "ask", "prompt"}, "sessions": {"history"}, "agents": {"list"},
	"dir": {"folder", "root", "directory", "cwd"}, "log-level": {"verbose", "debug"},
	"yes": {"force", "yolo"}, "sandbox": {"mode"}, "server": {"url"},
	"login": {"signin", "auth", "logout"}, "uninstall": {"remove"}, "update": {"upgrade"},
}

// doneElsewhere says how people do what word stands for if no command does it, or "".
func doneElsewhere(word string) string {
	how := map[string]string{
		"login": "agents have their own commands to sign in; acp-agent doctor AGENT names them",
		"uninstall": "remove acp-agent with what installed it, and its entry in the settings of " +
			"your editor",
		"update": "update acp-agent with what installed it; acp-agent version shows what you have",
	}
	addOtherWords(how)
	return how[word]
}

// addOtherWords adds the other words for names, which are for [text.Meant].
func addOtherWords(names map[string]string) {
	for name, others := range otherWords {
		for _, other := range others {
			if names[name] != "" && names[other] == "" {
				names[other] = names[name]
			}
		}
	}
}

// explainFlagError is [cobra.Command.FlagErrorFunc].
func explainFlagError(cmd *cobra.Command, err error) error {
	describe(cmd)
	meant := ""
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok &&
		wrong.GetFlag().Value.Type() == "bool" {
		err = fmt.Errorf("--%s needs no value, and may be given true or false (got %q)",
			wrong.GetFlag().Name, wrong.GetValue())
	}
	if empty, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		_, help := pflag.UnquoteUsage(empty.GetFlag())
		err = fmt.Errorf("--%s needs a value (%s)", empty.GetFlag().Name, help)
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		names := flagNames(cmd)
		addOtherWords(names)
		meant = text.Meant(unknown.GetSpecifiedName(), names)
		if meant != "" && cmd.Flags().Changed("agent") {
			meant += " What is for the agent belongs after --"
		}
		if of := commandsWith(cmd.Root(), unknown.GetSpecifiedName()); meant == "" && of != nil {
			err = fmt.Errorf("%w, which is one of %s", err, strings.Join(of, ", "))
		}
	}
	return usage.Errorf("%v%s", err, cmp.Or(meant, "; see "+cmd.CommandPath()+" --help"))
}

// commandsWith returns the commands that have a flag.
func commandsWith(root *cobra.Command, flag string) (names []string) {
	for _, cmd := range root.Commands() {
		if f := cmd.Flags().Lookup(flag); f != nil && !f.Hidden && !cmd.Hidden {
			names = append(names, cmd.Name())
		}
	}
	return names
}

// adaptGenerated makes the commands that cobra generates reject unknown arguments like the others,
// and work with an invalid configuration.
func adaptGenerated(root *cobra.Command, set *settings) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	help, _, _ := root.Find([]string{"help"}) // which is there, as is the next
	help.Args = func(_ *cobra.Command, args []string) error {
		at, rest, err := root.Find(args)
		if err != nil || len(rest) > 0 {
			return usage.Errorf("unknown help topic %q%s", strings.Join(args, " "),
				suggest(at, append(rest, args...)[0]))
		}
		return nil
	}
	set.accept(help, needsNothing, nil)
	completion, _, _ := root.Find([]string{"completion"})
	completion.Short = "Print a completion script for a shell"
	showsHelp(completion)
	for _, shell := range completion.Commands() {
		shell.Args = noArgs
		set.accept(shell, needsNothing, nil)
	}
}
