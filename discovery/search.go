package discovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/acp-agent/acp-agent/workspace"
)

// search looks through one root. It is used by one goroutine.
type search struct {
	ws   *workspace.Workspace
	root workspace.Root
	o    Options
	old  *findings // what was read before and may be used again; nil for none
	findings
	fixed  map[string]*place // directories that the table names, by path; nil for what is not there
	seen   map[string]bool   // directories whose entries are watched already
	bases  map[string]string // where searches of rows began, by what they looked for
	dirs   int
	bytes  int64
	buffer []byte
}

// findings are what a search found, and what that depends on. They are not changed any more.
type findings struct {
	artifacts []Artifact
	probes    []probe
	files     map[string]reading
	cuts      []Cut
}

// place is a directory that a search looks into.
type place struct {
	dir *workspace.Directory
	rel string // as it was found, slash-separated from the root
	up  *place
}

func newSearch(ws *workspace.Workspace, root workspace.Root, o Options, old *findings) *search {
	return &search{
		ws: ws, root: root, o: o, old: old,
		findings: findings{files: make(map[string]reading)},
		fixed:    make(map[string]*place),
		seen:     make(map[string]bool),
		bases:    make(map[string]string),
	}
}

// findingsOf searches the root for all rows. The error is the context's.
func findingsOf(ctx context.Context, ws *workspace.Workspace, root workspace.Root, rows []row, o Options, old *findings) (*findings, error) {
	s := newSearch(ws, root, o, old)
	defer s.close()
	timed, cancel := context.WithTimeoutCause(ctx, o.Timeout, errTimeout)
	defer cancel()
	top, err := ws.OpenDir(root.Dir.String())
	if err != nil {
		a := s.artifact(row{}, ".")
		a.invalid(reasonOf(err))
		s.artifacts = append(s.artifacts, a)
		s.watchPath(a.Path)
		return &s.findings, context.Cause(ctx)
	}
	defer top.Close()
	s.level(timed, rows, &place{dir: top, rel: "."})
	return &s.findings, context.Cause(ctx)
}

func (s *search) close() {
	for _, p := range s.fixed {
		if p != nil {
			_ = p.dir.Close()
		}
	}
}

// level looks for all rows from the directory at.
func (s *search) level(ctx context.Context, rows []row, at *place) {
	s.watch(at)
	for _, r := range rows {
		if s.spent(ctx, r) {
			continue
		}
		s.row(ctx, r, at)
	}
}

// row goes by the row's plain names to where the search begins.
func (s *search) row(ctx context.Context, r row, at *place) {
	base := at
	for _, name := range r.names[:min(r.fixed, len(r.names)-1)] {
		if base = s.enterFixed(r, base, name); base == nil {
			return
		}
	}
	rest := r.names[min(r.fixed, len(r.names)-1):]
	if base != at && s.again(r, base, rest) {
		return
	}
	h := &hunt{search: s, row: r, level: at, base: base}
	h.find(ctx, base, rest, 0)
}

// again lists a directory that an earlier row has been searched for under another name, as a link makes it.
func (s *search) again(r row, base *place, rest []string) bool {
	key := fmt.Sprint(r.Format, base.dir.Ref().Real(), rest)
	earlier, done := s.bases[key]
	if !done {
		s.bases[key] = base.rel
		return false
	}
	a := s.artifact(r, base.rel)
	a.State, a.ShadowedBy = Shadowed, s.path(earlier)
	a.Reason = "it is the same directory as " + a.ShadowedBy
	s.artifacts = append(s.artifacts, a)
	return true
}

// enterFixed opens a directory that the table names, once for all rows.
func (s *search) enterFixed(r row, at *place, name string) *place {
	rel := path.Join(at.rel, name)
	if p, known := s.fixed[rel]; known {
		return p
	}
	s.fixed[rel] = nil
	dir, err := at.dir.OpenDir(name)
	switch {
	case err == nil:
		s.fixed[rel] = &place{dir: dir, rel: rel, up: at}
		s.watch(s.fixed[rel])
	case errors.Is(err, syscall.ENOTDIR): // a file of that name is none of ours
	case s.missing(at, name, err):
	default:
		s.unreadable(r, at, name, err)
	}
	return s.fixed[rel]
}

// path is the client's spelling of what was found at rel.
func (s *search) path(rel string) string {
	if rel == "." {
		return s.root.Dir.String()
	}
	top := s.root.Dir.String()
	if last := top[len(top)-1]; last != '/' && last != filepath.Separator {
		top += string(filepath.Separator)
	}
	return top + filepath.FromSlash(rel)
}

// unreadable lists what cannot be opened.
func (s *search) unreadable(r row, at *place, name string, err error) {
	rel := path.Join(at.rel, name)
	s.watchEntry(at, name)
	a := s.artifact(r, rel)
	a.invalid(reasonOf(err))
	s.artifacts = append(s.artifacts, a)
}

// artifact is an artifact of the row at rel, of which nothing else is known.
func (s *search) artifact(r row, rel string) Artifact {
	return Artifact{
		Kind: r.Format.Kind(), Name: rel, Root: s.root, Place: r.Place, Path: s.path(rel), State: Active,
		rel: rel, rank: r.rank, oneOnly: r.OneOnly,
	}
}

// reasonOf says why something cannot be opened.
func reasonOf(err error) string {
	var outside *workspace.OutsideError
	var special *workspace.SpecialFileError
	var denied *workspace.DeniedError
	switch {
	case errors.As(err, &outside):
		return "it leads out of the roots: " + outside.Why
	case errors.As(err, &special):
		return "it is a " + special.Kind + ", not a file"
	case errors.As(err, &denied):
		return "the policy refuses " + denied.By.String()
	case errors.Is(err, fs.ErrNotExist):
		return "it is a link that leads to nothing"
	case errors.Is(err, syscall.EISDIR):
		return "it is a directory, not a file"
	case errors.Is(err, syscall.ELOOP):
		return "its links lead in a circle"
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return "it cannot be read: " + err.Error()
}

// skipped are names that no pattern stands for.
func skipped(name string) bool { return strings.HasPrefix(name, ".") || name == "node_modules" }
