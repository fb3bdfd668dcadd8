package folders

import (
	"errors"
	"slices"

	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Choose returns the folders that the session of a request gets. all are those that the user has
// declared, and had are the roots of the session that is loaded, resumed or copied, the zero value
// for a new one.
//
//   - A list of the client stays as it is, even if it is empty.
//   - With keep, a session that is opened again has the roots that are stored, and a copy those of
//     its source.
//   - Otherwise it has those that the user declared.
//
// Whoever names the folders, the user says in which of them nothing may be changed; see granted.
//
// Every lifecycle request passes through here, so a rule that gives a session other additional
// folders than the request names belongs here.
func (s Set) Choose(all []Declared, had sessionstore.Keys, keep bool) (Set, error) {
	switch {
	case s.listed:
	case keep:
		s = s.keeping(all, had.Roots.Additional())
	default:
		var err error
		if s, err = s.declaring(all); err != nil {
			return s, err
		}
	}
	return s.granted(all, had), nil
}

// keeping returns the set with the additional folders that the session had. Those that are also
// declared have the setting that declares them.
func (s Set) keeping(all []Declared, had workspace.Dirs) Set {
	list := s.list[:1:1]
	for _, dir := range had.All() {
		e, isDeclared := entryOf(all, dir)
		if !isDeclared {
			e = entry{dir: dir, source: stored, setting: "the session's stored folder"}
		}
		list = append(list, e)
	}
	return Set{list: unique(list), keeps: true}
}

// declaring returns the set with the folders that the user declared. The working directory may be
// one of them.
func (s Set) declaring(all []Declared) (Set, error) {
	cwd := s.list[0]
	if e, isDeclared := entryOf(all, cwd.dir); isDeclared {
		cwd = e
	}
	list := []entry{cwd}
	var wrong []strictjson.Violation
	for _, d := range all {
		dir, err := workspace.ParseDir(d.Path)
		problems, _ := errors.AsType[workspace.RootErrors](err)
		for _, e := range problems {
			wrong = append(wrong, violation(d.Setting, e))
		}
		list = append(list, d.entry(dir))
	}
	return Set{list: unique(list)}, strictjson.Refuse(wrong...)
}

// granted returns the set with those folders read-only that the user has declared so, or that were
// when the stored session, or the source of a copy, was last opened, and what is below them. Only a
// declaration of the user makes such a folder writable again, nothing that a client names or leaves
// out. The working directory of a new session may be in a folder that is declared so. granted reads
// disks.
func (s Set) granted(all []Declared, had sessionstore.Keys) Set {
	var given, known []workspace.Root
	for _, d := range all {
		if dir, err := workspace.ParseDir(d.Path); err == nil {
			given = append(given, workspace.Root{Dir: dir, Real: workspace.Real(dir),
				Grant: grant(d.ReadOnly)})
		}
	}
	isGiven := func(real workspace.Dir) bool {
		return slices.ContainsFunc(given, func(r workspace.Root) bool { return r.Real == real })
	}
	for _, root := range had.Opened() {
		if !isGiven(root.Real) {
			known = append(known, root)
		}
	}
	s.list = slices.Clone(s.list)
	for i, e := range s.list {
		real, from := workspace.Real(e.dir), known
		if i > 0 || isGiven(real) {
			from = slices.Concat(known, given)
		}
		s.list[i].grant, _ = workspace.GrantOf(real, from)
	}
	return s
}
