package permission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-agent/acp-agent/workspace"
)

// RuleError is the verdict of a deny or ask rule.
type RuleError struct{ Verdict }

// ErrRejected says that the user, or a rule, does not allow an action.
var ErrRejected = errors.New("the user did not allow it")

// Is makes errors.Is find [ErrRejected].
func (e *RuleError) Is(target error) bool { return target == ErrRejected && e.Effect == Deny }

func (e *RuleError) Error() string {
	rule := "the user's rule " + strconv.Quote(e.Rule.String())
	switch {
	case e.Rule.Preset:
		return "the mode of the session denies it"
	case is[readOnlyRule](e.Rule):
		return "t" + strings.TrimPrefix(e.Reason(), "T")
	case e.Effect == Deny:
		return rule + " denies it"
	case e.Maybe:
		return rule + " may apply to it, and acp-agent cannot ask the user here: name each file, " +
			"without variables, patterns and searches, or leave it to the user"
	}
	return rule + " asks about it, and acp-agent cannot ask the user here: leave it to them, or " +
		"let them change the rule"
}

// Asks returns the error that a rule asks about an action, if err is one.
func Asks(err error) (rule *RuleError, ok bool) {
	rule, ok = errors.AsType[*RuleError](err)
	return rule, ok && rule.Effect == Ask
}

// Confirmed is a check for [workspace.Workspace.Checked] of what the user has just agreed to.
func Confirmed(_ workspace.Access, before error) error {
	if _, asks := Asks(before); asks {
		return nil
	}
	return before
}

// Check returns a *[RuleError] if a deny or ask rule is, or may be, about an action, as [Decide]
// decides.
func (r Rules) Check(a Action) error {
	v := Decide(a, Rules{Ask: r.Ask, Deny: r.Deny})
	if v.Rule.matcher == nil {
		return nil
	}
	return &RuleError{v}
}

// Guard returns w for somebody for whom the deny and ask rules hold: the files that they are about
// cannot be read or changed. Where the user can be asked, see [workspace.Workspace.Checked].
func (r Rules) Guard(w *workspace.Workspace) *workspace.Workspace {
	aboutFiles := func(rules []Rule) []Rule {
		return slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool {
			return r.verb != Read && r.verb != Edit
		})
	}
	files := Rules{Ask: aboutFiles(r.Ask), Deny: aboutFiles(r.Deny)}
	if len(files.Ask)+len(files.Deny) == 0 {
		return w
	}
	return w.Checked(func(a workspace.Access, _ error) error { return files.checkAccess(w, a) })
}

// checkAccess is Check for an access to files of w.
func (r Rules) checkAccess(w *workspace.Workspace, a workspace.Access) error {
	p := At(w)
	switch a.Kind {
	case workspace.Read:
		return r.Check(Action{Verb: Read, Files: []File{p.opened(a.Path, a.At)}})
	case workspace.Change:
		return r.Check(Action{Verb: Edit, Files: []File{p.opened(a.Path, a.At)}})
	}
	return r.checkMove(p, a)
}

// checkMove checks what is moved, and all that is in it.
func (r Rules) checkMove(p Place, a workspace.Access) error {
	err := r.checkMoved(p, a, ".")
	if err != nil || !a.Folder {
		return err
	}
	files := 0
	return p.Workspace.Walk(context.Background(), a.At.Path(), workspace.WalkOptions{},
		func(f *workspace.Folder) func() error {
			return func() error {
				if files += len(f.Entries); files > maxMoved {
					return fmt.Errorf("it has more than %d files, and rules may apply to some: "+
						"move a part of them", maxMoved)
				}
				return r.checkFolder(p, a, f)
			}
		})
}

// checkFolder checks the entries of a folder that is moved, or of one in it.
func (r Rules) checkFolder(p Place, a workspace.Access, f *workspace.Folder) error {
	below, err := filepath.Rel(a.At.Real(), f.Ref().Real())
	if err = cmp.Or(f.Err, err); err != nil {
		return err
	}
	for _, e := range f.Entries {
		if err := r.checkMoved(p, a, path.Join(filepath.ToSlash(below), e.Name)); err != nil {
			return err
		}
	}
	return nil
}

// checkMoved checks both names of what is below the place that is moved. A file that may not be
// read may not get another name, by which it may be.
func (r Rules) checkMoved(p Place, a workspace.Access, below string) error {
	from, to := p.opened(a.Path, a.At).in(below), p.opened(a.ToPath, a.To).in(below)
	return cmp.Or(r.Check(Action{Verb: Read, Files: []File{from}}),
		r.Check(Action{Verb: Edit, Files: []File{from, to}}))
}

// maxMoved is how many files of a folder are compared with rules.
const maxMoved = 10_000
