package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
)

// newRoot returns the command line without its commands, and its settings. Without a command the
// program serves an editor.
func newRoot(s streams) (*cobra.Command, *settings) {
	set := newSettings(s)
	// Cobra's own version flag would link its templates, which make the program a fifth larger.
	var showVersion bool
	root := &cobra.Command{
		Use:           "acp-agent",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          downstreamArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if showVersion {
				return printVersion(s)
			}
			return serveEditor(cmd.Context(), set, args)
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			set.mark(cmd)
			set.invalid = set.load()
			switch cmd.Name() {
			case cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
				completeValues(cmd.Root(), set)
				return nil
			}
			if showVersion {
				return nil
			}
			return set.check(set.needs[cmd])
		},
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { _ = printHelp(cmd) })
	root.SetUsageFunc(printUsage)
	root.SetFlagErrorFunc(explainFlagError)
	define(root.PersistentFlags(), "config", &set.configPath)
	return set.accept(root, needsAll, flags{"version,v": &showVersion}), set
}

func addCommands(root *cobra.Command, set *settings) {
	root.AddCommand(newRun(set), newSessions(set), newAgents(set),
		newModels(set), newWorktree(set), newDiff(set), newDiscover(set), newMCP(set),
		newMCPRelay(set), newPermissions(set), newSandbox(set), newServe(set),
		newConnect(set), newTokens(set), newInspect(set), newDoctor(set),
		newSetup(set), newConform(set), newVersion(set), newACP(set))
	adaptGenerated(root, set)
}

// downstreamArgs accepts only arguments after "--".
func downstreamArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || cmd.ArgsLenAtDash() == 0 {
		return nil
	}
	if how := doneElsewhere(args[0]); how != "" {
		return usage.Errorf("unknown command %q: %s", args[0], how)
	}
	meant := suggest(cmd.Root(), args[0])
	if _, known := profiles.Find(profiles.Known(), args[0]); known {
		meant = fmt.Sprintf("; did you mean --agent %s?", args[0])
	}
	return usage.Errorf(
		"unknown command %q%s (to run an agent behind acp-agent, put it after --: acp-agent -- %s)",
		args[0], meant, text.Line(strings.Join(args, " "), 200))
}

// separateAgentArgs inserts "--" into args before the first argument for the agent of --agent NAME:
// it is neither a flag of the program nor a command that accepts --agent. Editors append arguments
// of the agent, such as --terminal-login, to the command that they are configured with. doubts are
// those that may have been meant for acp-agent.
func separateAgentArgs(root *cobra.Command, args []string) (separated, doubts []string) {
	root.InitDefaultHelpFlag()
	i := skipFlags(root, args)
	if i < len(args) && args[i] == "acp" {
		i += 1 + skipFlags(root, args[i+1:])
	}
	isAgent := func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return name == "--agent"
	}
	if i == len(args) || args[i] == "--" || args[i] == "run" || isLike(root, args[i]) ||
		!slices.ContainsFunc(args[:i], isAgent) {
		return args, nil
	}
	doubts = slices.DeleteFunc(slices.Clone(args[i:]), func(arg string) bool {
		return !isLike(root, arg)
	})
	return slices.Insert(slices.Clone(args), i, "--"), doubts
}

// skipFlags returns the index of the first argument that is neither a flag of the root command nor
// the value of one.
func skipFlags(root *cobra.Command, args []string) int {
	for i := 0; i < len(args); i++ {
		flag, hasValue := findFlag(root, args[i])
		if flag == nil {
			return i
		}
		if !hasValue && flag.NoOptDefVal == "" {
			i++ // the next argument is its value
		}
	}
	return len(args)
}

// flagNames returns the flags of cmd for [text.Meant].
func flagNames(cmd *cobra.Command) map[string]string {
	flags := map[string]string{}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			flags[flag.Name] = "--" + flag.Name
		}
	})
	return flags
}

// isLike reports whether arg is a flag of cmd, or one with a few wrong letters.
func isLike(cmd *cobra.Command, arg string) bool {
	name, _, _ := strings.Cut(arg, "=")
	return strings.HasPrefix(name, "--") && text.Misspelled(name, flagNames(cmd))
}

// findFlag returns the flag of the root command that arg names, or nil, and whether arg contains
// its value.
func findFlag(root *cobra.Command, arg string) (flag *pflag.Flag, hasValue bool) {
	name, _, hasValue := strings.Cut(arg, "=")
	if long, ok := strings.CutPrefix(name, "--"); ok {
		return root.Flag(long), hasValue
	}
	if short, ok := strings.CutPrefix(name, "-"); ok && len(short) == 1 {
		return root.Flags().ShorthandLookup(short), hasValue
	}
	return nil, false
}
