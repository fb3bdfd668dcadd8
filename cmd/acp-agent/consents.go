package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/mcpclient"
	"github.com/acp-agent/acp-agent/workspace"
)

// newConsents looks after what was allowed of the MCP servers that folders name.
func newConsents(s streams, f *serveFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "consents",
		Short: "List and forget which MCP servers of folders you allowed for good",
		Long: `An MCP server that a file in a folder names is started only when you allow it. consents shows those that you
allowed always, and takes that back. A consent holds for a server as it was in its file: one that was changed since is
asked for anew.`,
		Args: subcommandArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newConsentsList(s, f), newConsentsForget(s, f))
	return heeding(cmd, "state-dir")
}

// consentDir is the directory of a state directory that remembers consents.
func consentDir(state string) string { return filepath.Join(state, "mcp-allowed") }

func (f serveFlags) consents() (*mcpclient.Consents, error) {
	dir, err := f.state()
	if err != nil {
		return nil, err
	}
	return mcpclient.NewConsents(consentDir(dir)), nil
}

// consentsOf are the consents that were given in these roots. A root that is gone has no real path any more: what was
// allowed in it is found by its spelling.
func consentsOf(consents *mcpclient.Consents, roots []string) ([]mcpclient.Consent, error) {
	dirs, err := absolute(roots...)
	if err != nil {
		return nil, flagged(err, "root", "root")
	}
	meant := make(map[workspace.Dir]bool)
	for _, dir := range dirs.All() {
		meant[dir], meant[workspace.Real(dir)] = true, true
	}
	all, err := consents.List()
	return slices.DeleteFunc(all, func(one mcpclient.Consent) bool { return !meant[one.Root] }), err
}

// consentReport is a consent as list shows it.
type consentReport struct {
	ID      mcpclient.ConsentID `json:"consentId"`
	Server  string              `json:"server"`
	Root    workspace.Dir       `json:"root"`
	File    string              `json:"file,omitempty"`
	Command string              `json:"command,omitempty"`
	Origin  string              `json:"origin,omitempty"`
	Allowed time.Time           `json:"allowedAt"`
}

// shownDigits are as many of a consent's name as a person is shown, and may type.
const shownDigits = 12

// consentsListFlags say what is listed, and how.
type consentsListFlags struct {
	roots []string
	json  bool
}

func newConsentsList(s streams, f *serveFlags) *cobra.Command {
	var l consentsListFlags
	cmd := &cobra.Command{
		Use:     "list [--root DIR]... [--json]",
		Short:   "List what is allowed: which server, in which root, since when",
		Long:    "list shows each MCP server that may be started without a question. Arguments, environment and headers, which may hold secrets, are not kept and not shown.",
		Example: "  acp-agent consents list --root app",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			consents, err := f.consents()
			if err != nil {
				return err
			}
			found, err := l.chosen(consents)
			if err != nil {
				return err
			}
			return l.print(s, found)
		},
	}
	cmd.Flags().StringArrayVar(&l.roots, "root", nil, "only what was allowed in the root `DIR`; repeat for more")
	cmd.Flags().BoolVar(&l.json, "json", false, "print one JSON object a line")
	return cmd
}

func (l consentsListFlags) chosen(consents *mcpclient.Consents) ([]mcpclient.Consent, error) {
	if len(l.roots) == 0 {
		return consents.List()
	}
	return consentsOf(consents, l.roots)
}

func (l consentsListFlags) print(s streams, found []mcpclient.Consent) error {
	if l.json {
		encoder := json.NewEncoder(s.out)
		for _, one := range found {
			if err := encoder.Encode(consentReport(one)); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CONSENT\tALLOWED (UTC)\tSERVER\tSTARTS\tROOT")
	for _, one := range found {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", one.ID[:shownDigits], one.Allowed.UTC().Format(time.DateTime), dash(printable(one.Server)),
			dash(printable(one.Command+one.Origin)), dash(printable(one.Root.String())))
	}
	if len(found) == 0 {
		fmt.Fprintln(s.err, "acp-agent: there are no such consents")
	}
	return table.Flush()
}
