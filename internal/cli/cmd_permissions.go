package cli

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/config"
	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/usage"
	"github.com/acp-agent/acp-agent/workspace"
)

// newPermissions returns the commands for what the user allowed.
func newPermissions(s streams, set *settings) *cobra.Command {
	cmd := commandGroup(&cobra.Command{
		Use:   "permissions",
		Short: "Show, check and revoke what agents may do without asking you",
	}, newPermissionsList(s, set), newPermissionsCheck(s, set), newPermissionsFollow(s, set),
		newPermissionsRevoke(s, set))
	unknown := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 && slices.Contains([]string{"add", "allow", "ask", "deny", "set"}, args[0]) {
			return usage.Errorf("unknown command %q for %s; rules are in \"permissions\" of %s, and\n"+
				"acp-agent setup --yes --allow RULE adds one there", args[0], cmd.CommandPath(),
				cmp.Or(set.config.Path, config.DefaultPath()))
		}
		return unknown(cmd, args)
	}
	return cmd
}

// consentDir returns the directory of consents in the state directory.
func consentDir(state string) string { return filepath.Join(state, "mcp-allowed") }

// records returns the directory in which is kept where processes in the sandbox could write, or "".
func (set *settings) records() string {
	dir, err := set.stateDirectory()
	if err != nil {
		return ""
	}
	return consentDir(dir)
}

// mcpPolicy returns the policy for the MCP server called name.
func (set *settings) mcpPolicy(name string) mcp.Policy {
	p := set.config.MCPPolicy(name)
	p.Sandbox = set.complete(p.Sandbox)
	return p
}

// complete returns a sandbox with what is the same for all of this program.
func (set *settings) complete(s sandbox.Settings) sandbox.Settings {
	s.Records, s.Helper = set.records(), set.sandboxer()
	s.Own = append(set.ownPaths(), filepath.Dir(config.DefaultPath()))
	for _, directory := range []func() (string, error){set.stateDirectory, defaultStateDir} {
		dir, err := directory()
		if err == nil && !slices.Contains(s.Hidden, dir) {
			s.Hidden = append(s.Hidden, dir)
		}
	}
	return s
}

func (set *settings) consents() (*consent.Store, error) {
	dir, err := set.stateDirectory()
	if err != nil {
		return nil, err
	}
	return consent.NewStore(consentDir(dir)), nil
}

// consentsOf returns the consents for these roots, or all if there are no roots. Roots that no
// longer exist have no real path, so they are also compared by spelling.
func consentsOf(consents *consent.Store, roots []string) ([]consent.Consent, error) {
	if len(roots) == 0 {
		return consents.List()
	}
	dirs, err := usage.Absolute(roots...)
	if err != nil {
		return nil, usage.WithFlagNames(err, "dir", "dir")
	}
	wanted := make(map[workspace.Dir]bool)
	for _, dir := range dirs.All() {
		wanted[dir], wanted[workspace.Real(dir)] = true, true
	}
	all, err := consents.List()
	return slices.DeleteFunc(all, func(one consent.Consent) bool { return !wanted[one.Root] }), err
}

// allows describes what a consent allows, for a person.
func allows(c consent.Consent) string {
	switch {
	case c.Session != "":
		return fmt.Sprintf("folder %s in %s", text.Printable(c.Folder.String()),
			text.Printable(c.Session))
	case c.Link != "":
		return fmt.Sprintf("link %s to %s", text.Printable(c.Link), text.Printable(c.Target))
	case c.Within != "":
		return text.Printable(c.Rule + " in " + c.Within)
	case c.Rule != "":
		return text.Printable(c.Rule)
	case !c.Folder.IsZero():
		return "folder " + text.Printable(c.Folder.String())
	case c.Server == "":
		return "-"
	default:
		return fmt.Sprintf("server %s: %s", text.Printable(c.Server),
			cmp.Or(text.Printable(c.Command+c.Origin), "-"))
	}
}

// permissionsListFlags are the flags of permissions list.
type permissionsListFlags struct {
	roots []string
	json  bool
}

func newPermissionsList(s streams, set *settings) *cobra.Command {
	var l permissionsListFlags
	cmd := &cobra.Command{
		Use:   "list [--dir DIR]... [--json]",
		Short: "List the rules, and what else is always allowed",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			consents, err := set.consents()
			if err != nil {
				return err
			}
			found, err := consentsOf(consents, l.roots)
			if err != nil {
				return err
			}
			if err := l.print(s, found); err != nil || l.json || len(l.roots) > 0 {
				return err
			}
			return printConfigured(s, set)
		},
	}
	set.accept(cmd, "state-dir", "allow", "permissions")
	cmd.Flags().Var((*listValue)(&l.roots), "dir",
		"only what is allowed in the folder `DIR`; can be repeated")
	cmd.Flags().BoolVar(&l.json, "json", false, "print one JSON object per line")
	return cmd
}

func (l permissionsListFlags) print(s streams, found []consent.Consent) error {
	if l.json {
		for _, one := range found {
			one.Config = "" // is no use to people
			if err := writeJSON(s.out, one); err != nil {
				return err
			}
		}
		return nil
	}
	if len(found) == 0 {
		s.note("nothing is remembered")
		return nil
	}
	table := terminal.NewTable(s.out, "ID", "ALLOWS", "FOLDER", "GIVEN (UTC)", "USED (UTC)")
	for _, one := range found {
		table.Row(one.ID.Short(), allows(one), cmp.Or(text.Printable(one.Root.String()), "-"),
			timeOrDash(new(one.Allowed.UTC())), timeOrDash(&one.Used))
	}
	return table.Print()
}

// printConfigured prints the rules of the configuration.
func printConfigured(s streams, set *settings) error {
	print := func(where string, p *acp.Permissions) {
		if p == nil {
			return
		}
		for _, list := range []struct {
			effect string
			rules  []string
		}{{"deny", p.Deny}, {"ask", p.Ask}, {"allow", p.Allow}} {
			for _, rule := range list.rules {
				_ = terminal.Say(s.out, "%s: %s %s", where, list.effect, text.Printable(rule))
			}
		}
	}
	if set.permissions == nil || !set.permissions.Only {
		print(set.config.Path, set.config.Permissions)
		for _, w := range set.config.Workspaces {
			print(set.config.Path+", "+text.Printable(w.Cwd), w.Permissions)
		}
	}
	print("the command line", set.permissions)
	return nil
}

// newPermissionsFollow returns the command that accepts links.
func newPermissionsFollow(s streams, set *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "follow PATH",
		Short: "Let programs in the sandbox write where a link leads",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return usage.Errorf("%s needs one PATH", words(cmd))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			records := set.records()
			if records == "" {
				_, err := set.stateDirectory()
				return err
			}
			accepted, err := process.AcceptLinks(records, path)
			if err != nil {
				return namedfile.Explain(err)
			}
			for _, one := range accepted {
				fmt.Fprintf(s.out, "accepted %s: %s\n", one.ID.Short(), allows(one))
			}
			return nil
		},
	}
	set.accept(cmd, "state-dir")
	return cmd
}

// revokeFlags are the flags of permissions revoke.
type revokeFlags struct {
	roots []string
	all   bool
}

func newPermissionsRevoke(s streams, set *settings) *cobra.Command {
	var revoke revokeFlags
	cmd := &cobra.Command{
		Use:   "revoke ID... | --dir DIR... | --all",
		Short: "Take back what you allowed, so that you are asked again",
		Args:  revoke.args,
		RunE: func(_ *cobra.Command, names []string) error {
			consents, err := set.consents()
			if err != nil {
				return err
			}
			found, err := revoke.find(consents, names)
			if err != nil {
				return err
			}
			return revokeAll(s, consents, found)
		},
	}
	set.accept(cmd, "state-dir")
	cmd.Flags().Var((*listValue)(&revoke.roots), "dir",
		"everything for the folder `DIR`; can be repeated")
	cmd.Flags().BoolVar(&revoke.all, "all", false, "everything")
	cmd.ValidArgsFunction = set.completeConsents
	return cmd
}

// args accepts either IDs or one of the flags.
func (c *revokeFlags) args(cmd *cobra.Command, names []string) error {
	given := 0
	for _, is := range []bool{len(names) > 0, len(c.roots) > 0, c.all} {
		if is {
			given++
		}
	}
	if given != 1 || slices.Contains(names, "") {
		return usage.Errorf(
			"%s needs an ID, --dir DIR or --all; acp-agent permissions list shows the IDs",
			words(cmd))
	}
	return nil
}

// find returns the consents to revoke.
func (c revokeFlags) find(consents *consent.Store, names []string) ([]consent.Consent, error) {
	if len(names) == 0 {
		return consentsOf(consents, c.roots)
	}
	var found []consent.Consent
	for _, name := range names {
		one, err := consents.Find(consent.ID(name))
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, nil
}

func revokeAll(s streams, consents *consent.Store, found []consent.Consent) error {
	for _, one := range found {
		if err := consents.Forget(one.ID); err != nil {
			return err
		}
		fmt.Fprintf(s.out, "revoked %s: %s in %s\n", one.ID.Short(), allows(one),
			cmp.Or(text.Printable(one.Root.String()), "-"))
	}
	if len(found) == 0 {
		s.note("nothing is remembered")
	}
	return nil
}

// completeConsents offers the consents that begin with prefix and are not among args.
func (set *settings) completeConsents(
	_ *cobra.Command, args []string, prefix string,
) ([]string, cobra.ShellCompDirective) {
	consents, err := set.consents()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	all, err := consents.List()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var offered []string
	for _, one := range all {
		if name := one.ID.Short(); strings.HasPrefix(name, prefix) && !slices.Contains(args, name) {
			offered = append(offered, cobra.CompletionWithDesc(name,
				allows(one)+" in "+text.Printable(one.Root.String())))
		}
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}
