package folders

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Open opens the folders: it resolves links and applies the limits of o.Policy, such as what a user
// of a server may open. If the set keeps what the session had, Open leaves out folders of the
// session that cannot be opened: whoever names a folder can correct the request, but a client that
// names none could never open the session again. Open returns the set without them. The error is for
// the client, and names the settings of declared folders. The caller closes the workspace.
func (s Set) Open(
	ctx context.Context, o workspace.Options,
) (*workspace.Workspace, Set, error) {
	for { // after a folder was left out, others may be gone
		w, err := workspace.Open(ctx, s.Roots(), o)
		if err == nil {
			if err = s.checkShown(w); err != nil {
				_ = w.Close()
				return nil, s, err
			}
			return w, s, nil
		}
		wrong, ok := errors.AsType[workspace.RootErrors](err)
		if !ok {
			return nil, s, err
		}
		left := s.leaveOut(wrong)
		if len(left.list) == len(s.list) {
			return nil, s, s.refuse(wrong)
		}
		s = left
	}
}

// leaveOut returns the set without the kept folders that wrong is about.
func (s Set) leaveOut(wrong workspace.RootErrors) Set {
	isOut := make(map[workspace.Dir]bool)
	missing := slices.Clone(s.missing)
	for _, e := range wrong {
		if s.keeps && e.Root > 0 && s.list[e.Root].isOfSession() {
			isOut[s.list[e.Root].dir] = true
			missing = append(missing, e)
		}
	}
	s.list = slices.DeleteFunc(slices.Clone(s.list), func(e entry) bool { return isOut[e.dir] })
	s.missing = missing
	return s
}

// checkShown checks that the paths of the folders that the user confirmed still lead to the same
// directories as when the user was asked.
func (s Set) checkShown(w *workspace.Workspace) error {
	var wrong []strictjson.Violation
	for i, root := range w.Opened() {
		e := s.list[i]
		if e.source == confirmed && i > 0 && root.Real != root.Dir {
			of := strictjson.NewViolation(e.setting, e.dir.String(), strictjson.Unreadable)
			wrong = append(wrong,
				of.Expecting("it now leads to "+root.Real.String()+": add that folder instead"))
		}
	}
	return strictjson.Refuse(wrong...)
}

// refuse returns the error for the client about errors of the folders. It names the members of the
// request, or the settings.
func (s Set) refuse(wrong workspace.RootErrors) error {
	violations := make([]strictjson.Violation, len(wrong))
	for i, e := range wrong {
		switch {
		case e.Root < 0:
			violations[i] = violation(s.members(), e)
		case e.Root == 0:
			violations[i] = violation("cwd", e)
		default:
			of := s.list[e.Root]
			if violations[i] = violation(of.member(), e); of.isInRequest() {
				violations[i] = violations[i].At(of.place)
			}
		}
	}
	return strictjson.Refuse(violations...)
}

// isInRequest reports whether the entry is in the list of a request.
func (e entry) isInRequest() bool { return e.source == client && e.setting == "" }

// member returns the member of a request, or the setting, that names the folder.
func (e entry) member() string {
	if e.isInRequest() {
		return protocol.AdditionalDirectories
	}
	return e.setting
}

// members returns what names the additional folders.
func (s Set) members() string {
	var names []string
	for _, e := range s.additional() {
		names = append(names, e.member())
	}
	if names == nil {
		return protocol.AdditionalDirectories
	}
	return strings.Join(slices.Compact(names), ", ")
}

// violation returns the violation of a member that e is about.
func violation(member string, e workspace.RootError) strictjson.Violation {
	var value any = e.Path
	if e.Root < 0 {
		value = nil
	}
	v := strictjson.NewViolation(member, value, strictjson.Reason(e.Reason)) // they have all reasons
	if e.Reason == workspace.ReasonDenied {
		_, why := e.ProblemParts()
		return v.Expecting(why)
	}
	return v.Expecting(e.Detail)
}

// Movable returns what names the folders that the session had, in errors of Open: their directories
// may have been renamed. A folder that only a client names may not be the session's.
func (s Set) Movable() []string {
	members := []string{"cwd"}
	for _, e := range s.list {
		if e.isOfSession() {
			members = append(members, e.setting)
		}
	}
	return members
}

// Lost returns a message to the user about folders that the session has lost although the client did
// not ask for that, "" if there are none. had are its roots when it was last opened, or those of the
// session that it is a copy of, and opened are those that it has now.
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

// leftOut returns a message to the user about what Open has left out, or "".
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
