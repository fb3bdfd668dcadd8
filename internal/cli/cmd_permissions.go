package cli

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/config"
	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/sandbox/confine"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/workspace"
)

func newPermissions(set *settings) *cobra.Command {
	cmd := commandGroup("permissions", newPermissionsList(set), newPermissionsCheck(set),
		newPermissionsFollow(set), newPermissionsRevoke(set))
	unknown := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 && slices.Contains([]string{"add", "allow", "ask", "deny", "set"},
			args[0]) {
			return usage.Errorf("unknown command %q for %s; rules are in \"permissions\" of %s, "+
				"and\n"+
				"acp-agent setup --yes --allow RULE adds one there", args[0], cmd.CommandPath(),
				cmp.Or(set.config.Path, config.DefaultPath()))
		}
		return unknown(cmd, args)
	}
	return cmd
}

// consentsOf returns the consents for these roots, or all if there are no roots. Roots that no
// longer exist have no real path, so they are also compared by spelling.
func consentsOf(s *storeSettings, roots []string) ([]consent.Consent, error) {
	dirs, err := usage.Absolute(roots...)
	if err != nil {
		return nil, usage.WithFlagNames(err, "dir", "dir")
	}
	wanted := make(map[workspace.Dir]bool)
	for _, dir := range dirs.All() {
		wanted[dir], wanted[workspace.Real(dir)] = true, true
	}
	all, err := s.consents().List()
	return slices.DeleteFunc(all, func(one consent.Consent) bool {
		return len(roots) > 0 && !wanted[one.Root]
	}), err
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

func newPermissionsList(set *settings) *cobra.Command {
	var roots []string
	return set.newCommand("list", noArgs, needsState,
		flags{"dir": &roots, "json": &set.json, "allow": nil, "permissions": nil},
		func(*cobra.Command, []string) error {
			found, err := consentsOf(&set.storeSettings, roots)
			if err != nil {
				return err
			}
			for i := range found {
				found[i].Config = "" // is no use to people
			}
			return printLines(set, found, func() error {
				return printPermissions(set, found, len(roots) == 0)
			})
		})
}

// printPermissions prints a table of what is remembered and, if configured is set, the rules of the
// configuration and the command line.
func printPermissions(set *settings, found []consent.Consent, configured bool) error {
	table := terminal.NewTable(set.out, "ID", "ALLOWS", "FOLDER", "GIVEN (UTC)", "USED (UTC)")
	for _, one := range found {
		table.Row(one.ID.Short(), allows(one), cmp.Or(text.Printable(one.Root.String()), "-"),
			timeOrDash(one.Allowed.UTC()), timeOrDash(one.Used))
	}
	if len(found) == 0 {
		set.note("nothing is remembered: agents ask you, and what you then always allow is " +
			"listed here")
	} else if err := table.Print(); err != nil {
		return err
	}
	print := func(where string, p *permission.Permissions) {
		if p == nil || !configured {
			return
		}
		for i, rules := range [][]string{p.Deny, p.Ask, p.Allow} {
			for _, rule := range rules {
				_ = terminal.Say(set.out, "%s: %s %s", where, []string{"deny", "ask", "allow"}[i],
					text.Printable(rule))
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

func newPermissionsFollow(set *settings) *cobra.Command {
	return set.newCommand("follow", takes(1, 1, "one PATH", ""), needsState, nil,
		func(_ *cobra.Command, args []string) error {
			path, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			accepted, err := confine.AcceptLinks(set.dir(consentName), path)
			for _, one := range accepted {
				fmt.Fprintf(set.out, "accepted %s: %s\n", one.ID.Short(), allows(one))
			}
			return namedfile.Explain(err)
		})
}

func newPermissionsRevoke(set *settings) *cobra.Command {
	var roots []string
	all := false
	oneKind := func(cmd *cobra.Command, names []string) error {
		given := min(len(names), 1) + min(len(roots), 1)
		if all {
			given++
		}
		if given != 1 || slices.Contains(names, "") {
			return usage.Errorf(
				"%s needs an ID, --dir DIR or --all, and one kind of them; acp-agent "+
					"permissions list shows the IDs",
				words(cmd))
		}
		return nil
	}
	return set.newCommand("revoke", oneKind, needsState, flags{"dir": &roots, "all": &all},
		func(_ *cobra.Command, names []string) error {
			var found []consent.Consent
			var err error
			if len(names) == 0 {
				found, err = consentsOf(&set.storeSettings, roots)
			}
			for _, name := range names {
				one, unclear := set.consents().Find(consent.ID(name))
				found, err = append(found, one), cmp.Or(err, unclear)
			}
			if err != nil {
				return err // nothing is revoked if one of them is not clear
			}
			for _, one := range found {
				if err := set.consents().Forget(one.ID); err != nil {
					return err
				}
				fmt.Fprintf(set.out, "revoked %s: %s in %s\n", one.ID.Short(), allows(one),
					cmp.Or(text.Printable(one.Root.String()), "-"))
			}
			if len(found) == 0 {
				set.note("nothing is remembered")
			}
			return nil
		})
}
