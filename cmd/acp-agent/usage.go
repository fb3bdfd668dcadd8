package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError is a command line that cannot be followed.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func usagef(format string, args ...any) error {
	return &usageError{message: fmt.Sprintf(format, args...)}
}

// noArgs takes no words but flags.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("%s takes flags alone, and %q is none; see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
}

// sessionArgs takes at least one session, and at most so many.
func sessionArgs(most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return usagef("%s needs a SESSION: acp-agent sessions list shows them", cmd.CommandPath())
		case len(args) > most:
			return usagef("%s takes one SESSION: leave out %q", cmd.CommandPath(), args[most])
		}
		return nil
	}
}

// onlyOne refuses flags that say different things of one matter.
func onlyOne(cmd *cobra.Command, flags ...string) error {
	given := ""
	for _, flag := range flags {
		switch {
		case !cmd.Flags().Changed(flag):
		case given != "":
			return usagef("give one of --%s and --%s, not both", given, flag)
		default:
			given = flag
		}
	}
	return nil
}

// subcommandArgs takes nothing: what is left of a line whose subcommand is known is its own.
func subcommandArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("unknown command %q for %s%s", args[0], cmd.CommandPath(), meant(args[0], subcommands(cmd)))
}

func subcommands(cmd *cobra.Command) []string {
	var list []string
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			list = append(list, c.Name())
		}
	}
	return list
}

// strictGenerated makes the commands that cobra adds refuse what they do not know.
func strictGenerated(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = topicArgs
		case "completion":
			cmd.Args = subcommandArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			heeding(cmd)
			for _, shell := range cmd.Commands() {
				shell.Args = noArgs
			}
		}
	}
}

// topicArgs takes the words of a command.
func topicArgs(cmd *cobra.Command, args []string) error {
	at := cmd.Root()
	for _, word := range args {
		i := slices.IndexFunc(at.Commands(), func(c *cobra.Command) bool { return c.Name() == word })
		if i < 0 {
			return usagef("there is no help on %q%s", strings.Join(args, " "), meant(word, subcommands(at)))
		}
		at = at.Commands()[i]
	}
	return nil
}

// heededBy is the annotation of a command that has the flags of the program that it heeds.
const heededBy = "heeds"

// heeding says which flags of the program a command and its subcommands heed, besides --config. The others are not in its
// help, and refused: what is dropped silently is missed later.
func heeding(cmd *cobra.Command, flags ...string) *cobra.Command {
	cmd.Annotations = map[string]string{heededBy: strings.Join(append(flags, "config"), " ")}
	return cmd
}

// heeds reports whether cmd heeds a flag of the program. One that does not say heeds all.
func heeds(cmd *cobra.Command, flag string) bool {
	for c := cmd; c != nil; c = c.Parent() {
		if flags, said := c.Annotations[heededBy]; said {
			return slices.Contains(strings.Fields(flags), flag)
		}
	}
	return true
}

// refuseUnheeded is an error if a flag was given that cmd does not heed.
func refuseUnheeded(cmd *cobra.Command) (err error) {
	program := cmd.Root().PersistentFlags()
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if err == nil && program.Lookup(flag.Name) == flag && !heeds(cmd, flag.Name) {
			err = usagef("--%s has no effect on %s: leave it out", flag.Name, cmd.CommandPath())
		}
	})
	return err
}

// helpOfHeeded shows in a command's help only the flags that it heeds.
func helpOfHeeded(root *cobra.Command) {
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		root.PersistentFlags().VisitAll(func(flag *pflag.Flag) { flag.Hidden = !heeds(cmd, flag.Name) })
		help(cmd, args)
	})
}

// meant is a question for the word of list that word is likely to be, or what there is to choose from.
func meant(word string, list []string) string {
	if near := nearest(word, list); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return "; known are " + strings.Join(list, ", ")
}

// nearest is the word of a list that takes the fewest edits, "" if that would be another word rather than a slip.
func nearest(word string, list []string) string {
	best, least := "", 1+max(2, len(word)/3)
	for _, candidate := range list {
		if n := edits(strings.ToLower(word), strings.ToLower(candidate)); n < least {
			best, least = candidate, n
		}
	}
	return best
}

// edits is the Levenshtein distance of a and b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
