package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// maxCompletions is the most sessions that a shell is offered, the newest.
const maxCompletions = 50

// completing reports whether cmd answers a shell that completes a line.
func completing(cmd *cobra.Command) bool {
	return cmd.Name() == cobra.ShellCompRequestCmd || cmd.Name() == cobra.ShellCompNoDescRequestCmd
}

// completeValues tells shells what flags and arguments may be.
func (f *serveFlags) completeValues(root *cobra.Command) {
	words := func(list ...string) cobra.CompletionFunc {
		return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
	}
	for flag, values := range map[string]cobra.CompletionFunc{
		"agent":       words(names(proxy.KnownProfiles())...),
		"log-level":   words("debug", "info", "warn", "error"),
		"mounts":      words("none", "existing", "any"),
		"max-line":    cobra.NoFileCompletions,
		"max-roots":   cobra.NoFileCompletions,
		"replay-rate": cobra.NoFileCompletions,
	} {
		_ = root.RegisterFlagCompletionFunc(flag, values) // fails only for a flag that there is not, or twice
	}
	_ = root.MarkPersistentFlagDirname("state-dir")
	f.completeCommands(root)
}

// completeCommands does so for what the subcommands have of their own.
func (f *serveFlags) completeCommands(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		for _, flag := range []string{"cwd", "dir", "root", "fallback-root", "within"} {
			if sub.Flags().Lookup(flag) != nil {
				_ = sub.MarkFlagDirname(flag)
			}
		}
		for _, flag := range []string{"load", "resume", "fork"} {
			if sub.Flags().Lookup(flag) != nil {
				_ = sub.RegisterFlagCompletionFunc(flag, f.completeSessions)
			}
		}
		if sub.ValidArgsFunction == nil && !sub.HasSubCommands() {
			sub.ValidArgsFunction = cobra.NoFileCompletions
		}
		f.completeCommands(sub)
	}
}

// completeSessions offers the stored sessions that begin with word, and are not on the line.
func (f *serveFlags) completeSessions(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	var offered []string
	err := f.withStore(func(store sessionstore.Store) error {
		page, err := store.List(cmd.Context(), sessionstore.Query{Limit: maxCompletions})
		for _, s := range page.Sessions {
			if id := string(s.ID); strings.HasPrefix(id, word) && !slices.Contains(args, id) {
				offered = append(offered, cobra.CompletionWithDesc(id, harmless(s.Title)))
			}
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}
