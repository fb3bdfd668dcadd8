package permission

import (
	"path/filepath"

	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/workspace"
)

// Sources are where the rules of a session come from.
type Sources struct {
	Configured *Permissions // nil if the user has configured none
	Consents   *consent.Store
	Origins    Origins
}

// Origins has the tops of repositories by the real paths of their worktrees. The rules for a folder
// in a repository also hold for the same folder in its worktrees.
type Origins map[workspace.Dir]workspace.Dir

// of returns the folder that takes the place of dir, a real path, outside of the worktree that it is
// in, the zero Dir if it is in none.
func (o Origins) of(dir workspace.Dir) (original workspace.Dir) {
	deepest := ""
	for worktree, top := range o {
		rel, err := filepath.Rel(worktree.String(), dir.String())
		if err != nil || !filepath.IsLocal(rel) || len(worktree.String()) <= len(deepest) {
			continue
		}
		if same, err := workspace.ParseDir(filepath.Join(top.String(), rel)); err == nil {
			deepest, original = worktree.String(), same
		}
	}
	return original
}

// NewSources returns the sources for a session with the roots of w. configured returns what the user
// has configured for sessions in a folder, nil for nothing. What it denies or asks about for any root
// holds in the whole session.
func NewSources(
	w *workspace.Workspace, consents *consent.Store, origins Origins,
	configured func(cwd workspace.Dir) *Permissions,
) Sources {
	s := Sources{Consents: consents, Origins: origins}
	for i, root := range w.Opened() {
		for _, dir := range []workspace.Dir{root.Dir, origins.of(root.Real)} {
			p := (*Permissions)(nil)
			if !dir.IsZero() {
				p = configured(dir)
			}
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
	return s
}

// Rules returns the rules that hold now in a session with the roots of w.
func (s Sources) Rules(w *workspace.Workspace) (rules Rules, err error) {
	if s.Configured != nil {
		if rules, err = s.Configured.Rules(); err != nil || s.Configured.Only {
			return rules, err
		}
	}
	for _, root := range w.Opened() {
		all, err := s.Consents.Rules(root.Real, s.Origins.of(root.Real))
		if err != nil {
			return rules, err
		}
		for _, c := range all {
			r, err := Parse(c.Rule)
			if err != nil || r.checkAllow() != nil {
				continue // another version wrote it
			}
			r.Root, r.Within, r.Server, r.Given = root.Real.String(), c.Within, c.Config, c
			rules.Allow = append(rules.Allow, r)
		}
	}
	return rules, nil
}

// Lasting reports whether rules can be remembered for good.
func (s Sources) Lasting() bool {
	return s.Consents.Remembers() && (s.Configured == nil || !s.Configured.Only)
}

// Remember makes a rule hold for good that the user chose. about says where and when.
func (s Sources) Remember(r Rule, about consent.Consent) error {
	root, err := workspace.ParseDir(r.Root)
	if err != nil {
		return err
	}
	c := consent.ForRule(root, r.String(), r.Server).In(r.Within)
	c.Agent, c.By, c.Title = about.Agent, about.By, about.Title
	return s.Consents.Allow(c)
}
