package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/acp-agent/acp-agent/internal/config/setup"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// completeValues lets shells complete the values of flags and arguments, and describes them.
func completeValues(root *cobra.Command, set *settings) {
	complete := map[string]cobra.CompletionFunc{
		"cwd": directories, "within": directories, "load": set.completeSessions,
		"resume": set.completeSessions, "fork": set.completeSessions,
		"editor": oneOf(setup.EditorNames()...),
	}
	for _, s := range set.table() {
		complete[s.flag] = s.complete
	}
	var add func(*cobra.Command)
	add = func(cmd *cobra.Command) {
		describe(cmd)
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if f := complete[flag.Name]; f != nil {
				_ = cmd.RegisterFlagCompletionFunc(flag.Name, f) // or it has one
			}
		})
		if cmd.Name() == "transfer" {
			_ = cmd.RegisterFlagCompletionFunc("to", set.completeAgents)
		}
		if cmd.ValidArgsFunction == nil && cmd.HasParent() && !cmd.HasSubCommands() {
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
		for _, sub := range cmd.Commands() {
			add(sub)
		}
	}
	add(root)
}

func oneOf(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

var directories = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)

// completeModels offers the models that --model accepts.
func (set *settings) completeModels(*cobra.Command, []string, string) (
	[]string, cobra.ShellCompDirective,
) {
	return set.config.ModelIDs(), cobra.ShellCompDirectiveNoFileComp
}

// completeAgents offers the agents that --agent accepts.
func (set *settings) completeAgents(
	*cobra.Command, []string, string,
) ([]string, cobra.ShellCompDirective) {
	var names []string
	list, _ := set.profiles() // an invalid registry offers nothing
	for _, p := range list {
		names = append(names, p.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeSessions offers the latest stored sessions that begin with prefix and are not among args.
func (set *settings) completeSessions(
	cmd *cobra.Command, args []string, prefix string,
) ([]string, cobra.ShellCompDirective) {
	const limit = 50
	var offered []string
	silent := set.storeSettings
	silent.log = nil
	if set.invalid != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	err := silent.withStore(func(store sessionstore.Store) error {
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
