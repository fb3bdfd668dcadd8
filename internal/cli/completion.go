package cli

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/acp/explore"
	"github.com/acp-agent/acp-agent/acp/model"
	"github.com/acp-agent/acp-agent/internal/config/inventory"
	"github.com/acp-agent/acp-agent/internal/config/setup"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// completing reports whether cmd is called by a shell to complete a command line.
func completing(cmd *cobra.Command) bool {
	return cmd.Name() == cobra.ShellCompRequestCmd || cmd.Name() == cobra.ShellCompNoDescRequestCmd
}

// completeValues lets shells complete the values of flags and arguments.
func completeValues(root *cobra.Command, set *settings) {
	for _, s := range set.table() {
		if s.complete != nil {
			_ = root.RegisterFlagCompletionFunc(s.flag, s.complete) // fails only for an unknown flag
		}
	}
	completeSubcommands(root, set)
}

// completeSubcommands does the same for the flags and arguments of subcommands.
func completeSubcommands(cmd *cobra.Command, set *settings) {
	for _, sub := range cmd.Commands() {
		for _, flag := range []string{"cwd", "dir", "fallback-dir", "within"} {
			if sub.Flags().Lookup(flag) != nil {
				_ = sub.MarkFlagDirname(flag)
			}
		}
		for _, flag := range []string{"load", "resume", "fork"} {
			if sub.Flags().Lookup(flag) != nil {
				_ = sub.RegisterFlagCompletionFunc(flag, set.completeSessions)
			}
		}
		if sub.Flags().Lookup("editor") != nil {
			_ = sub.RegisterFlagCompletionFunc("editor", oneOf(setup.EditorNames()...))
		}
		if sub.Name() == "transfer" {
			_ = sub.RegisterFlagCompletionFunc("to", set.completeOwners)
		}
		if sub.ValidArgsFunction == nil && !sub.HasSubCommands() {
			sub.ValidArgsFunction = cobra.NoFileCompletions
		}
		completeSubcommands(sub, set)
	}
}

// oneOf offers words.
func oneOf(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// directories offers directories.
func directories(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// completeModels offers the models that --model accepts.
func (set *settings) completeModels(
	*cobra.Command, []string, string,
) ([]string, cobra.ShellCompDirective) {
	return set.config.ModelIDs(), cobra.ShellCompDirectiveNoFileComp
}

// completeAgents offers the agents that --agent accepts.
func (set *settings) completeAgents(
	*cobra.Command, []string, string,
) ([]string, cobra.ShellCompDirective) {
	profiles, _ := set.agents() // an invalid registry offers nothing
	return inventory.AgentNames(profiles), cobra.ShellCompDirectiveNoFileComp
}

// completeOwners offers the agents to which a session can belong.
func (set *settings) completeOwners(
	cmd *cobra.Command, args []string, prefix string,
) ([]string, cobra.ShellCompDirective) {
	agents, directive := set.completeAgents(cmd, args, prefix)
	return append(agents, explore.Kind, model.Kind), directive
}

// completeSession offers the ids of stored sessions for the first argument.
func (set *settings) completeSession(
	cmd *cobra.Command, args []string, prefix string,
) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return set.completeSessions(cmd, args, prefix)
}

// completeSessions offers the latest stored sessions that begin with prefix and are not among args.
func (set *settings) completeSessions(
	cmd *cobra.Command, args []string, prefix string,
) ([]string, cobra.ShellCompDirective) {
	const limit = 50
	var offered []string
	err := set.withStore(io.Discard, func(store sessionstore.Store) error {
		page, err := store.List(cmd.Context(), sessionstore.Query{Limit: limit})
		for _, s := range page.Sessions {
			if id := string(s.ID); strings.HasPrefix(id, prefix) && !slices.Contains(args, id) {
				offered = append(offered, cobra.CompletionWithDesc(id, text.Plain(s.Title)))
			}
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}
