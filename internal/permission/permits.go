package permission

import (
	"slices"
	"sync"

	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/workspace"
)

// Permits are the rules that hold in a session: those that the user has configured, and what they
// have answered.
type Permits struct {
	Configured *Permissions // nil if the user has configured none
	Consents   *consent.Store

	session   *SessionGrants
	workspace *workspace.Workspace
	origins   worktree.Origins
	rules     Rules // Configured, and the grants of the roots
	err       error // why they cannot be read

	mu    sync.Mutex
	asked []Action // allowed once, as a rule wants, and not done yet
}

// SessionGrants are what the user has allowed until a session is closed, whichever roots it has.
type SessionGrants struct {
	id    string
	mu    sync.Mutex
	given []Rule
}

// NewSessionGrants returns those of the session with this id: the user has allowed nothing yet.
func NewSessionGrants(id string) *SessionGrants { return &SessionGrants{id: id} }

// NewPermits returns the rules for a session while it has the roots of w. The session's id may be
// "" if nobody answers. configured returns what the user has configured for sessions in a folder,
// nil for nothing. What it denies or asks about for any root holds in the whole session.
func NewPermits(
	session *SessionGrants, w *workspace.Workspace, consents *consent.Store,
	origins worktree.Origins, configured func(cwd workspace.Dir) *Permissions,
) *Permits {
	s := &Permits{Consents: consents, session: session, workspace: w, origins: origins}
	for i, root := range w.Opened() {
		for _, dir := range append(origins.Of(root.Real), root.Dir) {
			p := configured(dir)
			if p == nil || i > 0 && len(p.Ask)+len(p.Deny) == 0 {
				continue
			}
			all := *p
			if i > 0 {
				all.Allow = nil
			}
			if s.Configured != nil {
				all = s.Configured.With(all)
			}
			s.Configured = &all
		}
	}
	if s.Configured != nil {
		s.rules, s.err = s.Configured.Rules()
	}
	s.rules.Deny = slices.Concat(ReadOnlyRules(w), s.rules.Deny)
	return s
}

// Rules returns the rules that hold now.
func (p *Permits) Rules() (rules Rules, err error) {
	rules, err = p.rules, p.err
	rules.Allow = slices.Clip(rules.Allow)
	if err == nil && (p.Configured == nil || !p.Configured.Only) {
		rules.Allow, err = p.appendGiven(rules.Allow)
	}
	p.session.mu.Lock()
	defer p.session.mu.Unlock()
	rules.Allow = append(rules.Allow, p.session.given...)
	return rules, err
}

// appendGiven appends the remembered rules of the user.
func (p *Permits) appendGiven(rules []Rule) ([]Rule, error) {
	all, err := p.Consents.List()
	if err != nil {
		return rules, err
	}
	for _, root := range p.workspace.Opened() {
		places := append(p.origins.Of(root.Real), root.Real)
		for _, c := range all {
			if c.Rule == "" || !slices.Contains(places, c.Root) {
				continue
			}
			r, err := Parse(c.Rule)
			if err != nil || r.checkAllow() != nil {
				continue // another version wrote it
			}
			r.Scope = Scope{Root: root.Real.String(), Within: c.Within, Server: c.Config}
			r.Given = c
			rules = append(rules, r)
		}
	}
	return rules, nil
}

// Decides reports whether there are rules about actions: those of the user, or only the grants of
// roots that may only be read.
func (p *Permits) Decides() bool { return p.Configured != nil || len(p.rules.Deny) > 0 }

// Restrictions returns the deny and ask rules, which hold as long as the session.
func (p *Permits) Restrictions() (Rules, error) {
	return Rules{Ask: p.rules.Ask, Deny: p.rules.Deny}, p.err
}

// Guarded returns the workspace for everybody to whom the rules apply.
func (p *Permits) Guarded() *workspace.Workspace {
	if p.err != nil {
		return p.workspace.Checked(func(workspace.Access, error) error { return p.err })
	}
	return p.rules.Guard(p.workspace)
}

// Decide decides about an action by the rules that hold now. If they cannot be read, err says why,
// and they allow nothing.
func (p *Permits) Decide(a Action) (v Verdict, err error) {
	rules, err := p.Rules()
	if err != nil {
		rules.Allow = nil
	}
	a.Session = p.session.id
	v = Decide(a, rules)
	if id := v.Rule.Given.ID; id != "" {
		_ = p.Consents.Use(id)
	}
	return v, err
}

// Offer is [Offer] for a rule that [Permits.Remember] remembers.
func (p *Permits) Offer(a Action) (r Rule, ok bool) {
	a.Session = p.session.id
	return Offer(a, p.Consents.Remembers() && (p.Configured == nil || !p.Configured.Only))
}

// Remember makes a rule hold that the user chose, in its session or from now on. about says where
// and when.
func (p *Permits) Remember(r Rule, about consent.Consent) error {
	if r.Session != "" {
		p.session.mu.Lock()
		defer p.session.mu.Unlock()
		p.session.given = append(p.session.given, r)
		return nil
	}
	root, err := workspace.ParseDir(r.Root)
	if err != nil {
		return err
	}
	c := consent.ForRule(root, r.String(), r.Server).In(r.Within)
	c.Agent, c.By, c.Title = about.Agent, about.By, about.Title
	return p.Consents.Allow(c)
}

// AllowExactly allows a command in this session, in the same folder, while its State is the same.
func (p *Permits) AllowExactly(a Action) {
	p.session.mu.Lock()
	defer p.session.mu.Unlock()
	p.session.given = append(p.session.given, p.exactly(a))
}

func (p *Permits) exactly(a Action) Rule {
	return Rule{verb: Run, matcher: exactRule{a.Command.Line, a.Command.State}, Preset: true,
		Scope: Scope{Root: a.Where.Root, Within: a.Where.Within, Session: p.session.id}}
}

// Renew lets what AllowExactly has allowed go on with the state that the command has left. It ends
// if that can no longer be determined.
func (p *Permits) Renew(a Action, state string) {
	own := p.session
	own.mu.Lock()
	defer own.mu.Unlock()
	i := slices.Index(own.given, p.exactly(a))
	switch {
	case i < 0:
	case state == "" && a.Command.State != "":
		own.given = slices.Delete(own.given, i, i+1)
	default:
		a.Command.State = state
		own.given[i] = p.exactly(a)
	}
}

// maxAsked is how many actions are remembered that the user has allowed once.
const maxAsked = 100

// NoteAsked notes that the user has allowed an action as a rule wants: it is not asked about again
// when the agent does it through the client.
func (p *Permits) NoteAsked(a Action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.asked) < maxAsked {
		p.asked = append(p.asked, a)
	}
}

// ForgetAsked forgets what was noted in the last turn.
func (p *Permits) ForgetAsked() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = nil
}

// Check checks an action that is done without a question, as [Rules.Check] does. What the user has
// just allowed is not asked about, once.
func (p *Permits) Check(a Action) error {
	if p.err != nil {
		return p.err
	}
	err := p.rules.Check(a)
	if _, asks := Asks(err); !asks {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.asked, a.IsPartOf)
	if i < 0 {
		return err
	}
	p.asked = slices.Delete(p.asked, i, i+1)
	return nil
}
