package discovery

import (
	"errors"
	"io/fs"

	"github.com/acp-agent/acp-agent/workspace"
)

// probe is what was at a path that the result of a search depends on.
type probe struct {
	path string
	look workspace.Look
	why  string // why it could not be looked at
	real string // where it is
}

// lookAt looks at what is at a path.
func (s *search) lookAt(path string) probe {
	info, err := s.ws.Stat(path)
	if err != nil {
		return probe{path: path, why: reasonOf(err)}
	}
	return probe{path: path, look: workspace.LookOf(info.FileInfo, s.began), real: info.Ref().Real()}
}

// is reports whether there is certainly still the same at the path.
func (p probe) is(now probe) bool {
	return p.why == now.why && p.real == now.real && p.look.Still(now.look)
}

// seen is a directory that the result depends on, and that was reached by its path: the root, or what a link leads to.
type seen struct {
	path string
	ref  workspace.Ref
	*workspace.Seen
}

// watch makes the result depend on the names in a directory.
func (p *place) watch() { p.seen.Listed = true }

// watchLook makes the result depend on that name in at looks as it did, and is no link.
func (p *place) watchLook(name string, look workspace.Look) {
	p.seen.Entries = append(p.seen.Entries, workspace.SeenEntry{Name: name, Look: look})
}

// watchEntry makes the result depend on what name in at is.
func (s *search) watchEntry(at *place, name string) {
	info, err := at.dir.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		at.watchLook(name, workspace.Look{})
	case err == nil && info.Mode()&fs.ModeSymlink == 0:
		at.watchLook(name, workspace.LookOf(info.FileInfo, s.began))
	default:
		s.watchPath(s.path(join(at.rel, name)))
	}
}

// watchPath makes the result depend on what is at a path.
func (s *search) watchPath(path string) { s.paths = append(s.paths, s.lookAt(path)) }

// current reports whether everything that the findings depend on is as it was. It reads no file.
func (s *search) current(f *findings) bool {
	if f.timedOut() {
		return false
	}
	for i := range f.paths {
		if !f.paths[i].is(s.lookAt(f.paths[i].path)) {
			return false
		}
	}
	for i := range f.seen {
		if !s.shows(&f.seen[i]) {
			return false
		}
	}
	return true
}

// shows reports whether the directory that was seen is where it was, and looks as it did.
func (s *search) shows(d *seen) bool {
	dir, err := s.ws.OpenDir(d.path)
	if err != nil {
		return false
	}
	defer dir.Close()
	return dir.Ref() == d.ref && dir.Shows(d.Seen)
}

// timedOut reports whether the search ended early for lack of time; the next one may get further.
func (f *findings) timedOut() bool {
	for _, c := range f.cuts {
		if c.Bound == "Timeout" {
			return true
		}
	}
	return false
}
