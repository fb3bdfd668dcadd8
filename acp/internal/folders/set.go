// Package folders decides which folders a session gets, and opens them.
//
// A [Set] is the one list of them. [Requested] makes the set of a request, [Declare] finds the
// folders that the user has declared, and [Set.Choose] has the rules that make of both the set of
// the session, which [Set.Open] opens. [Set.Changed] is for a session that is open. Roots, params
// and messages are derived from the set when they are needed.
package folders

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Set lists the folders of a session as they were named: the working directory, then the additional
// ones. Each has a grant, and a source that wants the session to have it. A Set does not change. The
// zero Set has no folders.
type Set struct {
	list    []entry               // at the positions that errors of package workspace have
	listed  bool                  // a client has named the additional folders, even if there are none
	keeps   bool                  // Open leaves out those of the session that cannot be opened
	missing []workspace.RootError // of those that Open has left out
}

// entry is a folder of a set.
type entry struct {
	dir    workspace.Dir
	grant  workspace.Grant
	source source
	member string // of the request that names the folder, or the setting
}

// source wants a session to have a folder.
type source int

const (
	client    source = iota
	declared         // the user, in a setting
	confirmed        // the user, when asked about the real path, which must not lead elsewhere
	stored           // nobody now: the session had it
)

// isSession reports whether neither the request nor a setting names the folder, so that nobody can
// correct it there.
func (s source) isSession() bool { return s == confirmed || s == stored }

// Requested returns the folders that a request names. listed says whether it names additional ones,
// even if there are none.
func Requested(cwd workspace.Dir, additional []workspace.Dir, listed bool) Set {
	list := []entry{{dir: cwd, member: "cwd"}}
	for _, dir := range additional {
		list = append(list, entry{dir: dir, member: protocol.AdditionalDirectories})
	}
	return Set{list: list, listed: listed}
}

// Listed reports whether a client has named the additional folders.
func (s Set) Listed() bool { return s.listed }

// Cwd returns the working directory, the zero Dir if there are no folders.
func (s Set) Cwd() workspace.Dir {
	if len(s.list) == 0 {
		return workspace.Dir{}
	}
	return s.list[0].dir
}

func (s Set) additional() []entry { return s.list[min(1, len(s.list)):] }

// Additional returns the folders after the working directory.
func (s Set) Additional() workspace.Dirs {
	var paths []string
	for _, e := range s.additional() {
		paths = append(paths, e.dir.String())
	}
	dirs, _ := workspace.ParseDirs(paths) // they were parsed before
	return dirs.Without(s.Cwd())
}

// Roots returns the folders as a root set, with their grants.
func (s Set) Roots() workspace.Roots {
	grants := map[workspace.Dir]workspace.Grant{}
	for _, e := range s.list {
		grants[e.dir] = e.grant
	}
	return workspace.RootsFrom(s.Cwd(), s.Additional()).Granting(
		func(dir workspace.Dir) workspace.Grant { return grants[dir] })
}

// find returns the entry with a path, the zero value if there is none.
func (s Set) find(dir workspace.Dir) (found entry) {
	if i := slices.IndexFunc(s.list, func(e entry) bool { return e.dir == dir }); i >= 0 {
		found = s.list[i]
	}
	return found
}

// Setting returns where the user has declared a folder, "" if a client names it.
func (s Set) Setting(dir workspace.Dir) string {
	if e := s.find(dir); e.source != client {
		return e.member
	}
	return ""
}

// In returns the set with the working directory of another, which may spell it in another way.
func (s Set) In(other Set) Set {
	list := slices.Clone(other.list[:1])
	for _, e := range s.additional() {
		if e.dir == s.Cwd() {
			e.dir = other.Cwd()
		}
		list = append(list, e)
	}
	s.list = list
	return s
}

// Choose returns the folders that the session of a request gets. all are those that the user has
// declared, and had are the roots of the session that is loaded, resumed or copied, the zero value
// for a new one. Choose reads disks.
//
//   - A list of the client stays as it is, even if it is empty.
//   - With keep, a session that is opened again has the roots that are stored, and a copy those of
//     its source. Those that are also declared have the setting that declares them.
//   - Otherwise it has those that the user declared.
//
// Folders of any source are read-only if the user has declared them so; see granted.
//
// Every lifecycle request passes through here, so a rule that gives a session other additional
// folders than the request names belongs here.
func (s Set) Choose(all []Declared, had sessionstore.Keys, keep bool) (Set, error) {
	if s.listed {
		return s.granted(all, had), nil
	}
	list := s.list[:1:1]
	var wrong []strictjson.Violation
	if keep {
		for _, dir := range had.Roots.Additional().All() {
			e, isDeclared := entryOf(all, dir)
			if !isDeclared {
				e = entry{dir: dir, source: stored, member: "the session's stored folder"}
			}
			list = append(list, e)
		}
	} else {
		for _, d := range all {
			for _, e := range d.wrong {
				wrong = append(wrong, d.entry().violation(e))
			}
			list = append(list, d.entry())
		}
	}
	s = Set{list: list, keeps: keep}
	return s.granted(all, had), strictjson.Refuse(wrong...)
}

// granted returns the set with those folders read-only that the user has declared so, or that were
// when the stored session, or the source of a copy, was last opened, and what is below them. Only a
// declaration of the user makes such a folder writable again, nothing that a client names or leaves
// out. The working directory of a new session may be in a folder that is declared so.
func (s Set) granted(all []Declared, had sessionstore.Keys) Set {
	var given []workspace.Root
	for _, d := range all {
		given = append(given, workspace.Root{Real: workspace.Real(d.dir), Grant: d.entry().grant})
	}
	isGiven := func(r workspace.Root) bool {
		return slices.ContainsFunc(given, func(g workspace.Root) bool { return g.Real == r.Real })
	}
	known := slices.DeleteFunc(had.Opened(), isGiven)
	s.list = slices.Clone(s.list)
	for i, e := range s.list {
		root, from := workspace.Root{Real: workspace.Real(e.dir)}, known
		if e.dir != s.Cwd() || isGiven(root) {
			from = slices.Concat(known, given)
		}
		s.list[i].grant, _ = workspace.GrantOf(root.Real, from)
	}
	return s
}

// Changed returns the set without an additional folder, if removed is one, and with those that the
// user has confirmed. The user has seen all of them, so Open leaves out none.
func (s Set) Changed(removed workspace.Dir, added ...consent.Consent) Set {
	list := s.list[:1:1]
	for _, e := range s.additional() {
		if e.source == client { // its position in the request means nothing now
			e.member = "your editor"
		}
		if e.dir != removed {
			list = append(list, e)
		}
	}
	for _, c := range added {
		list = append(list, confirmedBy(c).entry())
	}
	return Set{list: list, listed: s.listed}
}

// Open opens the folders: it resolves links and applies the limits of o.Policy. In a set that keeps
// the stored folders, it leaves out those of the session that cannot be opened, and returns the set
// without them: a client that names a folder can correct its request, but one that names none could
// never open the session again. The error is for the client, and names the settings of declared
// folders. The caller closes the workspace.
func (s Set) Open(ctx context.Context, o workspace.Options) (*workspace.Workspace, Set, error) {
	for { // after a folder was left out, others may be gone
		w, err := workspace.Open(ctx, s.Roots(), o)
		if err == nil {
			if err = s.checkShown(w); err != nil {
				_ = w.Close()
			}
			return w, s, err
		}
		wrong, _ := errors.AsType[workspace.RootErrors](err)
		left := s.leaveOut(wrong)
		if len(left.list) == len(s.list) {
			return nil, s, cmp.Or(s.refusal(wrong), err)
		}
		s = left
	}
}

// leaveOut returns the set without the kept folders that wrong is about.
func (s Set) leaveOut(wrong workspace.RootErrors) Set {
	isOut := make(map[workspace.Dir]bool)
	s.missing = slices.Clone(s.missing)
	for _, e := range wrong {
		if s.keeps && e.Root > 0 && s.list[e.Root].source.isSession() {
			isOut[s.list[e.Root].dir] = true
			s.missing = append(s.missing, e)
		}
	}
	s.list = slices.DeleteFunc(slices.Clone(s.list), func(e entry) bool { return isOut[e.dir] })
	return s
}

// checkShown checks that the paths of the folders that the user confirmed still lead to the same
// directories as when the user was asked.
func (s Set) checkShown(w *workspace.Workspace) error {
	var wrong []strictjson.Violation
	for _, root := range w.Opened() {
		if e := s.find(root.Dir); e.source == confirmed && root.Real != root.Dir {
			of := strictjson.NewViolation(e.member, e.dir.String(), strictjson.Unreadable)
			wrong = append(wrong,
				of.Expecting("it now leads to "+root.Real.String()+": add that folder instead"))
		}
	}
	return strictjson.Refuse(wrong...)
}

// refusal returns the error for the client about errors of the folders.
func (s Set) refusal(wrong workspace.RootErrors) error {
	var violations []strictjson.Violation
	for _, e := range wrong {
		about := entry{member: s.members()}
		if e.Root >= 0 {
			about = s.list[e.Root]
		}
		violations = append(violations, about.violation(e))
	}
	return strictjson.Refuse(violations...)
}

// members returns the member of the request, or the settings, that name the additional folders.
func (s Set) members() string {
	var names []string
	for _, e := range s.additional() {
		names = append(names, e.member)
	}
	return cmp.Or(strings.Join(slices.Compact(names), ", "), protocol.AdditionalDirectories)
}

// violation returns the violation for an error of the folder.
func (e entry) violation(wrong workspace.RootError) strictjson.Violation {
	v := strictjson.NewViolation(e.member, wrong.Path, strictjson.Reason(wrong.Reason))
	if wrong.Root < 0 {
		v.Value = nil
	}
	if wrong.Root > 0 && e.member == protocol.AdditionalDirectories {
		v = v.At(wrong.Root - 1)
	}
	if v.Expected = wrong.Detail; wrong.Reason == workspace.ReasonDenied {
		_, v.Expected = wrong.ProblemParts()
	}
	return v
}

// Movable returns the fields of violations about folders that the session had: their directories
// may have been renamed. A folder that only a client names may not be the session's.
func (s Set) Movable() []string {
	members := []string{"cwd"}
	for _, e := range s.list {
		if e.source.isSession() {
			members = append(members, e.member)
		}
	}
	return members
}

// Lost returns a message to the user about folders that the session has lost although the client
// did not ask for that, "" if there are none. had are its roots when it was last opened, or those
// of the session that it is a copy of, and opened are its roots now.
func (s Set) Lost(had sessionstore.Keys, opened []workspace.Root, isCopy bool) string {
	if s.listed {
		return ""
	}
	var dropped []string
	for i, dir := range had.Roots.All() {
		isHere := func(r workspace.Root) bool { return r.Dir == dir || r.Real == had.Real[i] }
		isMissing := func(e workspace.RootError) bool { return e.Path == dir.String() }
		if i > 0 && !slices.ContainsFunc(opened, isHere) &&
			!slices.ContainsFunc(s.missing, isMissing) {
			dropped = append(dropped, text.Code(dir.String()))
		}
	}
	if len(dropped) == 0 {
		return s.leftOut()
	}
	lacks := "This session no longer has %s: your editor opened it without naming folders. "
	if isCopy {
		lacks = "This copy does not have %s, unlike the original: your editor made it without " +
			"naming folders. "
	}
	return s.leftOut() + fmt.Sprintf(lacks+
		"/roots add brings a folder back, and acp-agent --keep-dirs keeps those of all "+
		"sessions.\n\n", strings.Join(dropped, ", "))
}

// leftOut returns a message to the user about the folders that Open has left out, or "".
func (s Set) leftOut() string {
	var b strings.Builder
	for _, e := range s.missing {
		problem, _ := e.ProblemParts() // without what to do about a request
		if e.Detail != "" {
			problem += " (" + text.Printable(e.Detail) + ")"
		}
		fmt.Fprintf(&b, "This session was opened without the folder %s, which %s. "+
			"/roots add brings it back when it is there again, also under another name.\n\n",
			text.Code(e.Path), problem)
	}
	return b.String()
}
