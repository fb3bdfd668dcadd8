package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/commandline"
	"github.com/acp-agent/acp-agent/internal/consent"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/workspace"
)

// newConsents returns the commands for permissions that were given permanently.
func newConsents(s streams, set *settings) *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "consents",
		Short: "List and revoke what you have allowed permanently",
		Long: `An MCP server that is configured in a file of a folder is started only if you
allow it. If you choose to always allow it, acp-agent remembers your consent. It
also remembers which folders you added to sessions with /roots add, and which
commands a model may run in a folder, such as all that begin with "go test";
docs/model.md says which words may follow.

Programs in the sandbox could replace links in the folders that they may write.
acp-agent remembers where such links lead, and follows them only to there.
consents lists all of these and revokes them.

A consent covers a server as it is configured in its file, and the content of
the files in the session's folders that its configuration names. If one of
these changes, you are asked again. What these files load is not covered.`,
	}, newConsentsList(s, set), newConsentsFollow(s, set), newConsentsRevoke(s, set),
		newConsentsForget(s, set))
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
		return nil, usage.WithFlagNames(err, "root", "root")
	}
	wanted := make(map[workspace.Dir]bool)
	for _, dir := range dirs.All() {
		wanted[dir], wanted[workspace.Real(dir)] = true, true
	}
	all, err := consents.List()
	return slices.DeleteFunc(all, func(one consent.Consent) bool { return !wanted[one.Root] }), err
}

// consentReport describes a consent.
type consentReport struct {
	ID      consent.ID    `json:"consentId"`
	Server  string        `json:"server,omitempty"`
	Root    workspace.Dir `json:"root"`
	File    string        `json:"file,omitempty"`
	Command string        `json:"command,omitempty"`
	Origin  string        `json:"origin,omitempty"`
	Folder  workspace.Dir `json:"folder,omitzero"`
	Session string        `json:"session,omitempty"`
	Prefix  []string      `json:"prefix,omitempty"`
	Link    string        `json:"link,omitempty"`
	Target  string        `json:"target,omitempty"`
	Allowed time.Time     `json:"allowedAt"`
}

// allows describes what a consent allows, for a person.
func allows(c consent.Consent) string {
	switch {
	case c.Session != "":
		return fmt.Sprintf("folder %s in %s", text.Printable(c.Folder.String()),
			text.Printable(c.Session))
	case c.Prefix != nil && !commandline.IsRule(c.Prefix):
		return "nothing any more: commands " + commandline.Show(c.Prefix)
	case c.Link != "":
		return fmt.Sprintf("link %s to %s", text.Printable(c.Link), text.Printable(c.Target))
	case c.Prefix != nil:
		return "commands " + commandline.Show(c.Prefix)
	case !c.Folder.IsZero():
		return "folder " + text.Printable(c.Folder.String())
	case c.Server == "":
		return "-"
	default:
		return fmt.Sprintf("server %s: %s", text.Printable(c.Server),
			cmp.Or(text.Printable(c.Command+c.Origin), "-"))
	}
}

// consentsListFlags are the flags of consents list.
type consentsListFlags struct {
	roots []string
	json  bool
}

func newConsentsList(s streams, set *settings) *cobra.Command {
	var l consentsListFlags
	cmd := &cobra.Command{
		Use:   "list [--root DIR]... [--json]",
		Short: "List permanent permissions",
		Long: `list shows each MCP server that can be started without asking you, its folder,
each folder that sessions get in addition, the commands that a model runs
without asking you, and the links that are followed for programs in the
sandbox. Arguments, environment variables and headers may contain secrets, so
they are neither stored nor shown.`,
		Example: "  acp-agent consents list --root app",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			consents, err := set.consents()
			if err != nil {
				return err
			}
			found, err := consentsOf(consents, l.roots)
			if err != nil {
				return err
			}
			return l.print(s, found)
		},
	}
	set.accept(cmd, "state-dir")
	cmd.Flags().Var((*listValue)(&l.roots), "root",
		"only consents for the folder `DIR`; can be repeated")
	cmd.Flags().BoolVar(&l.json, "json", false, "print one JSON object per line")
	return cmd
}

func (l consentsListFlags) print(s streams, found []consent.Consent) error {
	if l.json {
		for _, one := range found {
			if err := writeJSON(s.out, consentReport(one)); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CONSENT\tGIVEN (UTC)\tALLOWS\tFOLDER")
	for _, one := range found {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", one.ID.Short(),
			one.Allowed.UTC().Format(time.DateTime), allows(one),
			cmp.Or(text.Printable(one.Root.String()), "-"))
	}
	if len(found) == 0 {
		fmt.Fprintln(s.err, "acp-agent: no such consents")
	}
	return table.Flush()
}

// newConsentsFollow returns the command that accepts links.
func newConsentsFollow(s streams, set *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "follow PATH",
		Short: "Let programs in the sandbox write where a link leads",
		Long: `follow accepts the links on the way to PATH as they are now. You need it only
if you made a link in a folder in which programs in the sandbox could write
before, and such a program is to be given PATH: as a folder of a session, as
its own state, or by sandboxWrite. The same holds for a linked worktree of git
that such a program could have made: PATH is then the worktree, and follow lets
programs in the sandbox commit in it. Look first where the link, or the file
.git, leads, because a program could have made it.`,
		Example: "  acp-agent consents follow ~/.claude",
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
				return err
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

// revokeFlags are the flags of consents revoke.
type revokeFlags struct {
	roots []string
	all   bool
}

// newConsentsForget returns the same command under its earlier name.
func newConsentsForget(s streams, set *settings) *cobra.Command {
	cmd := newConsentsRevoke(s, set)
	cmd.Use, cmd.Hidden = strings.Replace(cmd.Use, "revoke", "forget", 1), true
	return cmd
}

func newConsentsRevoke(s streams, set *settings) *cobra.Command {
	var revoke revokeFlags
	cmd := &cobra.Command{
		Use:   "revoke CONSENT... | --root DIR... | --all",
		Short: "Revoke consents, so that you are asked again",
		Long: `revoke takes back the consents with the given IDs, which can be abbreviated,
all consents for a folder, or all consents. If one of the IDs is unknown,
nothing is revoked. A session keeps a running server or a folder until it is
closed or loaded again; a command is asked for at once. With --keep-dirs it
keeps the folder even then, until you type /roots remove in it.`,
		Example: "  acp-agent consents revoke 3f2a9c1b7d20\n  acp-agent consents revoke --root app",
		Args:    revoke.args,
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
	cmd.Flags().Var((*listValue)(&revoke.roots), "root",
		"all consents for the folder `DIR`; can be repeated")
	cmd.Flags().BoolVar(&revoke.all, "all", false, "all consents")
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
			"%s needs a CONSENT, --root DIR or --all; acp-agent consents list shows the consents",
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
		fmt.Fprintln(s.err, "acp-agent: no such consents")
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
