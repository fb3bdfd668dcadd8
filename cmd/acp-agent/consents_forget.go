package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/mcpclient"
)

// forgetFlags say what is forgotten, if it is not named.
type forgetFlags struct {
	roots []string
	all   bool
}

func newConsentsForget(s streams, f *serveFlags) *cobra.Command {
	var forget forgetFlags
	cmd := &cobra.Command{
		Use:   "forget CONSENT... | --root DIR... | --all",
		Short: "Take back what you allowed, so that it is asked for again",
		Long: `forget takes back consents by their names or the beginnings of them, those of a root, or all. If one that is named is
not known, nothing is forgotten. A server that a session has started already goes on until that session is closed
or loaded anew.`,
		Example: "  acp-agent consents forget 3f2a9c1b7d20\n  acp-agent consents forget --root app",
		Args:    forget.args,
		RunE: func(_ *cobra.Command, names []string) error {
			consents, err := f.consents()
			if err != nil {
				return err
			}
			found, err := forget.chosen(consents, names)
			if err != nil {
				return err
			}
			return forgetAll(s, consents, found)
		},
	}
	cmd.Flags().StringArrayVar(&forget.roots, "root", nil, "what was allowed in the root `DIR`; repeat for more")
	cmd.Flags().BoolVar(&forget.all, "all", false, "all that was allowed")
	cmd.ValidArgsFunction = f.completeConsents
	return cmd
}

// args takes names, or one of the flags in place of them.
func (c *forgetFlags) args(cmd *cobra.Command, names []string) error {
	given := 0
	for _, is := range []bool{len(names) > 0, len(c.roots) > 0, c.all} {
		if is {
			given++
		}
	}
	if given != 1 || slices.Contains(names, "") {
		return usagef("%s needs either a CONSENT, as acp-agent consents list shows them, or --root DIR, or --all", cmd.CommandPath())
	}
	return nil
}

// chosen are the consents that are meant.
func (c forgetFlags) chosen(consents *mcpclient.Consents, names []string) ([]mcpclient.Consent, error) {
	switch {
	case c.all:
		return consents.List()
	case len(c.roots) > 0:
		return consentsOf(consents, c.roots)
	}
	var found []mcpclient.Consent
	for _, name := range names {
		one, err := consents.Find(mcpclient.ConsentID(name))
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, nil
}

func forgetAll(s streams, consents *mcpclient.Consents, found []mcpclient.Consent) error {
	for _, one := range found {
		if err := consents.Forget(one.ID); err != nil {
			return err
		}
		fmt.Fprintf(s.out, "forgot %s: %s in %s\n", one.ID[:shownDigits], dash(printable(one.Server)), dash(printable(one.Root.String())))
	}
	if len(found) == 0 {
		fmt.Fprintln(s.err, "acp-agent: there are no such consents")
	}
	return nil
}

// completeConsents offers the consents that begin with word, and are not on the line.
func (f *serveFlags) completeConsents(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	consents, err := f.consents()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	all, err := consents.List()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var offered []string
	for _, one := range all {
		if name := string(one.ID[:shownDigits]); strings.HasPrefix(name, word) && !slices.Contains(args, name) {
			offered = append(offered, cobra.CompletionWithDesc(name, printable(one.Server+" in "+one.Root.String())))
		}
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}
