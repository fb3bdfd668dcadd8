package discovery

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/acp-agent/acp-agent/workspace"
)

// search looks through one root. It is used by one goroutine.
type search struct {
	ws    *workspace.Workspace
	root  workspace.Root
	o     Options
	began time.Time
	old   *findings // what was read before and may be used again; nil for none
	findings
	fixed   map[string]*place          // directories that the table names, by path; nil for what is not there
	watched map[string]*workspace.Seen // by path
	bases   map[base]string            // where searches of rows began
	dirs    int
	bytes   int64
	buffer  []byte // for the file that is being read
}

// base is what a search of a row looks for, and where.
type base struct {
	format Format
	dir    workspace.Ref
	rest   string
}

// findings are what a search found, and what that depends on. They are not changed any more.
type findings struct {
	artifacts []*Artifact // by rank
	files     map[file]*reading
	seen      []seen  // directories that they depend on
	paths     []probe // and what else
	cuts      []Cut
}

func newSearch(ws *workspace.Workspace, root workspace.Root, o Options, old *findings) *search {
	return &search{
		ws: ws, root: root, o: o, old: old, began: time.Now(),
		findings: findings{files: make(map[file]*reading)},
		fixed:    make(map[string]*place),
		watched:  make(map[string]*workspace.Seen),
		bases:    make(map[base]string),
	}
}

// findingsOf searches the root for all rows. The error is the context's or workspace.ErrClosed.
func findingsOf(ctx context.Context, ws *workspace.Workspace, root workspace.Root, rows []row, o Options, old *findings) (*findings, error) {
	s := newSearch(ws, root, o, old)
	defer s.close()
	timed, cancel := context.WithTimeoutCause(ctx, o.Timeout, errTimeout)
	defer cancel()
	top, err := ws.OpenDir(root.Dir.String())
	if errors.Is(err, workspace.ErrClosed) {
		return nil, err
	}
	if err != nil {
		a := s.artifact(row{}, ".")
		a.invalid(reasonOf(err))
		s.add(a)
		s.watchPath(a.Path)
		return &s.findings, context.Cause(ctx)
	}
	defer top.Close()
	s.level(timed, rows, s.place(top, nil, "."))
	slices.SortStableFunc(s.artifacts, byRank)
	return &s.findings, context.Cause(ctx)
}

func (s *search) close() {
	for _, p := range s.fixed {
		if p != nil {
			_ = p.dir.Close()
		}
	}
}

func (s *search) add(a Artifact) { s.artifacts = append(s.artifacts, &a) }

// level looks for all rows from the directory at.
func (s *search) level(ctx context.Context, rows []row, at *place) {
	at.watch()
	if slices.ContainsFunc(rows, func(r row) bool { return r.fixed == 0 }) {
		_, _ = at.list(ctx) // which some row needs, and tells the others what is not there
	}
	for _, r := range rows {
		if s.spent(ctx, r) {
			continue
		}
		s.row(ctx, r, at)
	}
}

// row goes by the row's plain names to where the search begins.
func (s *search) row(ctx context.Context, r row, at *place) {
	from := at
	for _, name := range r.names[:min(r.fixed, len(r.names)-1)] {
		if from = s.enterFixed(r, from, name); from == nil {
			return
		}
	}
	rest := r.names[min(r.fixed, len(r.names)-1):]
	if from != at && s.again(r, from, rest) {
		return
	}
	h := &hunt{search: s, row: r, level: at, base: from}
	h.find(ctx, from, rest, 0)
}

// again lists a directory that an earlier row has been searched for under another name, as a link makes it.
func (s *search) again(r row, from *place, rest []string) bool {
	key := base{r.Format, from.dir.Ref(), strings.Join(rest, "/")}
	earlier, done := s.bases[key]
	if !done {
		s.bases[key] = from.rel
		return false
	}
	a := s.artifact(r, from.rel)
	a.State, a.ShadowedBy = Shadowed, s.path(earlier)
	a.Reason = "it is the same directory as " + a.ShadowedBy
	s.add(a)
	return true
}

// enterFixed opens a directory that the table names, once for all rows.
func (s *search) enterFixed(r row, at *place, name string) *place {
	rel := join(at.rel, name)
	if p, known := s.fixed[rel]; known {
		return p
	}
	s.fixed[rel] = nil
	e, err := at.entry(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	dir, err := at.dir.OpenDir(name)
	switch {
	case err == nil:
		s.fixed[rel] = s.place(dir, at, name)
		s.fixed[rel].watch()
	case errors.Is(err, syscall.ENOTDIR): // a file of that name is none of ours
	case isGone(e, err):
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
	s.watchEntry(at, name)
	a := s.artifact(r, join(at.rel, name))
	a.invalid(reasonOf(err))
	s.add(a)
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
