package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/url"
	"reflect"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/serve"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/workspace"
)

func newTokens(set *settings) *cobra.Command {
	return commandGroup("tokens", newTokensAdd(set), newTokensPair(set), newTokensSet(set),
		newTokensList(set), newTokensRevoke(set))
}

// rightsFlags are the flags that say what a user may use.
type rightsFlags struct {
	within []string
	agent  string
	limits serve.Limits
	budget *acp.Budget
	rules  permission.Permissions
}

func (f *rightsFlags) flags() flags {
	return flags{"within": &f.within, "agent": &f.agent, "ask": &f.rules.Ask,
		"deny": &f.rules.Deny, "budget": f.setBudget,
		"max-connections": intValue{&f.limits.Connections, 1},
		"max-sessions":    intValue{&f.limits.Sessions, 1},
		"max-turns":       intValue{&f.limits.Turns, 1},
		"max-stored":      intValue{&f.limits.StoredBytes, 1}}
}

// setBudget sets the budget that the user gets, which is "none" for none.
func (f *rightsFlags) setBudget(text string) (err error) {
	f.budget = &acp.Budget{}
	if text == "none" {
		return nil
	}
	if *f.budget, err = acp.ParseBudget(text); err == nil && f.budget.IsZero() {
		err = errors.New(`say "none" for no budget`)
	}
	return err
}

// areGiven reports whether a command has one of the flags.
func (f *rightsFlags) areGiven() bool { return !reflect.ValueOf(*f).IsZero() }

// change returns an account with the rights that the flags name in place of its own.
func (f *rightsFlags) change(set *settings, a serve.Account) (serve.Account, error) {
	if len(f.within) > 0 {
		var err error
		if a.Within, err = foldersWithin(f.within); err != nil {
			return a, err
		}
	}
	if f.agent != "" {
		if _, _, err := set.command(f.agent, nil); err != nil {
			return a, usage.Errorf("--agent: %v", err)
		}
		a.Agent = f.agent
	}
	if _, err := f.rules.Rules(); err != nil {
		return a, usage.Errorf("--ask, --deny: %v", err)
	}
	if len(f.rules.Ask)+len(f.rules.Deny) > 0 {
		a.Ask, a.Deny = f.rules.Ask, f.rules.Deny
	}
	a.Limits.Connections = cmp.Or(f.limits.Connections, a.Limits.Connections)
	a.Limits.Sessions = cmp.Or(f.limits.Sessions, a.Limits.Sessions)
	a.Limits.Turns = cmp.Or(f.limits.Turns, a.Limits.Turns)
	a.Limits.StoredBytes = cmp.Or(f.limits.StoredBytes, a.Limits.StoredBytes)
	if f.budget != nil {
		a.Budget = *f.budget
	}
	return a, nil
}

func newTokensAdd(set *settings) *cobra.Command {
	var (
		rights  rightsFlags
		label   string
		expires age
	)
	own := rights.flags()
	own["label"], own["expires"] = verbatim(&label), &expires
	return set.newCommand("add", takesUser(0), needsState, own,
		func(cmd *cobra.Command, args []string) error {
			if err := rights.create(set, args[0]); err != nil {
				return err
			}
			t := serve.Token{Label: label, Created: time.Now().UTC()}
			if expires > 0 {
				t.Expires = t.Created.Add(time.Duration(expires))
			}
			secret, err := set.accounts().AddToken(args[0], t)
			if errors.Is(err, fs.ErrNotExist) {
				return errNoFolders(args[0])
			}
			if err == nil {
				_, err = fmt.Fprintln(set.out, secret)
			}
			return err
		})
}

// create creates an account if there are flags for it.
func (f *rightsFlags) create(set *settings, name string) error {
	if !f.areGiven() {
		return nil
	}
	_, err := set.accounts().Account(name)
	switch {
	case err == nil:
		err = fs.ErrExist
	case len(f.within) == 0:
		return errNoFolders(name)
	default:
		var a serve.Account
		if a, err = f.change(set, serve.Account{Name: name}); err == nil {
			err = set.accounts().Create(a)
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("there is a user %s: acp-agent tokens add %[1]s, without other rights, "+
			"adds a token, and acp-agent tokens set %[1]s changes the rights", name)
	}
	return err
}

func errNoFolders(name string) error {
	return usage.Errorf("name the folders that %s may open, such as --within ~/src",
		text.Name(name))
}

func newTokensPair(set *settings) *cobra.Command {
	var (
		role   = string(acp.RoleAnswer)
		label  string
		server = "http://localhost:8765"
	)
	return set.newCommand("pair", takesUser(0), needsState,
		flags{"role": &role, "label": verbatim(&label), "server": &server},
		func(_ *cobra.Command, args []string) error {
			may, err := serve.ParseRole(role)
			if err != nil {
				return usage.Errorf("--role: %v", err)
			}
			if err := checkPageAddress(server); err != nil {
				return err
			}
			code, err := set.accounts().AddCode(args[0], may, label)
			if err != nil {
				return explainUser(args[0], err)
			}
			link := serve.PairingLink(server, code)
			picture, err := terminal.QR(link)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(set.out, "%s\n\n%s\nOpen it within %d minutes. It works once.\n",
				link, picture, int(serve.CodeLife.Minutes()))
			return err
		})
}

// checkPageAddress checks that a browser can be paired at an address.
func checkPageAddress(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return usage.Errorf("--server: give the address of the page, such as " +
			"https://agent.example.org")
	case u.Scheme == "http" && !secret.IsLoopback(u.Hostname()):
		return usage.Errorf("--server: the page needs https, except on this machine: give its " +
			"https address, or forward its port with ssh -L and leave out --server")
	}
	return nil
}

func newTokensSet(set *settings) *cobra.Command {
	var rights rightsFlags
	return set.newCommand("set", takesUser(0), needsState, rights.flags(),
		func(_ *cobra.Command, args []string) error {
			if !rights.areGiven() {
				return usage.Errorf("say what to change: --within, --agent, --budget, --ask, " +
					"--deny or one of --max-…")
			}
			accounts := set.accounts()
			a, err := accounts.Account(args[0])
			if err != nil {
				return explainUser(args[0], err)
			}
			if a, err = rights.change(set, a); err != nil {
				return err
			}
			return explainUser(args[0], accounts.Change(a))
		})
}

// explainUser returns err, or what it means that there is no user with this name.
func explainUser(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s has no token; acp-agent tokens list shows who has, and tokens add "+
			"makes one", text.Name(name))
	}
	return err
}

// takesUser accepts a user and at most so many other arguments.
func takesUser(others int) cobra.PositionalArgs {
	return takes(1, 1+others, "the NAME of one user", ", such as ana")
}

// tokenReport describes a token of a user.
type tokenReport struct {
	Name    string         `json:"name"`
	Token   string         `json:"token"` // its id
	For     string         `json:"for"`
	Created time.Time      `json:"created,omitzero"`
	Expires time.Time      `json:"expires,omitzero"`
	Label   string         `json:"label,omitempty"`
	Agent   string         `json:"agent,omitempty"`
	Within  workspace.Dirs `json:"within"`
}

func newTokensList(set *settings) *cobra.Command {
	return set.newCommand("list", noArgs, needsState, flags{"json": &set.json},
		func(*cobra.Command, []string) error {
			all, damaged := reportTokens(set.accounts())
			return errors.Join(set.print(all, func() error { return printTokens(set.streams, all) }),
				damaged)
		})
}

// reportTokens describes all tokens. A user without a token has one without an id.
func reportTokens(accounts *serve.Accounts) (all []tokenReport, damaged error) {
	all = []tokenReport{} // not null
	list, damaged := accounts.List()
	for _, a := range list {
		own, err := accounts.Tokens(a.Name)
		damaged = errors.Join(damaged, err)
		if len(own) == 0 {
			own = []serve.Token{{ID: "-"}}
		}
		for _, t := range own {
			all = append(all, tokenReport{Name: a.Name, Token: t.ID, For: purpose(t), Created: t.Created,
				Expires: t.Expires, Label: t.Label, Agent: a.Agent, Within: a.Within})
		}
	}
	return all, damaged
}

func printTokens(s streams, all []tokenReport) error {
	if len(all) == 0 {
		s.note("nobody has a token yet: acp-agent tokens add NAME --within DIR makes one")
		return nil
	}
	table := terminal.NewTable(s.out, "NAME", "TOKEN", "FOR", "EXPIRES (UTC)",
		"WITHIN", "LABEL", "AGENT",
		"CREATED (UTC)")
	for _, r := range all {
		table.Row(r.Name, r.Token, r.For, timeOrDash(r.Expires),
			folders(r.Within.All(), false),
			cmp.Or(text.Printable(r.Label), "-"), cmp.Or(r.Agent, "-"), timeOrDash(r.Created))
	}
	return table.Print()
}

// purpose says what a token is for.
func purpose(t serve.Token) string {
	switch t.Kind {
	case serve.Code:
		return "pairing"
	case serve.Device:
		return "device, may " + string(t.Role)
	}
	return "programs"
}

// timeOrDash returns a time for a table.
func timeOrDash(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.DateTime)
}

func newTokensRevoke(set *settings) *cobra.Command {
	return set.newCommand("revoke", takesUser(math.MaxInt-1), needsState, nil,
		func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return revokeTokens(set.streams, set.accounts(), args[0], args[1:])
			}
			err := set.accounts().Revoke(args[0])
			if err == nil {
				_, err = fmt.Fprintln(set.out, "revoked", args[0])
			}
			return explainUser(args[0], err)
		})
}

// revokeTokens removes tokens of a user, all or none.
func revokeTokens(s streams, accounts *serve.Accounts, name string, ids []string) error {
	own, err := accounts.Tokens(name)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !slices.ContainsFunc(own, func(t serve.Token) bool { return t.ID == id }) {
			return fmt.Errorf("%s has no token %s; acp-agent tokens list shows them",
				text.Name(name), text.Name(id))
		}
	}
	for _, id := range ids {
		if err := accounts.RevokeToken(name, id); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		fmt.Fprintln(s.out, "revoked", name, id)
	}
	return nil
}
