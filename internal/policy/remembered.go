package policy

import (
	"github.com/acp-agent/acp-agent/internal/consent"
	"github.com/acp-agent/acp-agent/workspace"
)

// Remembered returns the rules that the user gave for good in the roots of w, and the consent to
// each.
func Remembered(store *consent.Store, w *workspace.Workspace) (
	rules []Rule, consents []consent.Consent, err error,
) {
	var roots []workspace.Dir
	for _, root := range w.Opened() {
		roots = append(roots, root.Real)
	}
	all, err := store.Rules(roots...)
	for _, c := range all {
		r, err := Parse(c.Rule)
		if err != nil || r.checkAllow() != nil {
			continue // another version wrote it
		}
		r.Root, r.Server = c.Root.String(), c.Config
		rules, consents = append(rules, r), append(consents, c)
	}
	return rules, consents, err
}

// Is reports whether the rule is the one that a consent remembers.
func (r Rule) Is(c consent.Consent) bool {
	return r.Root != "" && r.Session == "" && r.Root == c.Root.String() && r.Server == c.Config &&
		r.String() == c.Rule
}
