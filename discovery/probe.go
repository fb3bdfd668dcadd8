package discovery

import (
	"io/fs"
	"path"
	"time"

	"github.com/acp-agent/acp-agent/workspace"
)

// probe is something that the result of a search depends on: a file or directory, or that there is none.
type probe struct {
	name string // in its directory; a path, if it has none
	print
}

// print tells whether a file was changed.
type print struct {
	info fs.FileInfo // nil: there was nothing that could be looked at
	why  string      // why not
	real string      // where a link leads; "" of what is no link
	old  bool        // it was not changed just before it was looked at
}

// settled is how old a change must be, because times of files are coarse: what was changed twice within a tick, and
// read in between, would look unchanged.
const settled = 2 * time.Second

func (s *search) printOf(info fs.FileInfo, err error) print {
	if err != nil {
		return print{why: reasonOf(err), old: true}
	}
	return print{info: info, old: s.began.Sub(info.ModTime()) > settled}
}

// same reports whether now is certainly the state that p was taken of.
func (p *print) same(now print) bool {
	if p.info == nil || now.info == nil {
		return p.info == nil && now.info == nil && p.why == now.why
	}
	return p.old && p.real == now.real && workspace.Unchanged(p.info, now.info)
}

// look looks at name in dir, which was found at rel, and follows it if it is a link.
func (s *search) look(dir *workspace.Directory, rel, name string) print {
	info, err := dir.Lstat(name)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return s.lookAt(s.path(join(rel, name)))
	}
	return s.printOf(info.FileInfo, err)
}

// lookAt looks at what is at a path.
func (s *search) lookAt(path string) print {
	info, err := s.ws.Stat(path)
	p := s.printOf(info.FileInfo, err)
	if err == nil {
		p.real = info.Ref().Real()
	}
	return p
}

// printOfFile is the print of the file name in at, which was read.
func (s *search) printOfFile(info workspace.Info, at *place, name string) print {
	p := s.printOf(info.FileInfo, nil)
	if !at.holds(info.Ref(), name) {
		p.real = info.Ref().Real()
	}
	return p
}

// watched is a directory that the result of a search depends on, and what of it.
type watched struct {
	rel string // as it was found, slash-separated from the root
	ref workspace.Ref
	print
	listed  bool    // it depends on the names in it
	entries []probe // and on these entries
	below   []*watched
}

// watch makes the result depend on the names in a directory.
func (p *place) watch() { p.watched.listed = true }

// watchEntry makes the result depend on what name in at is.
func (s *search) watchEntry(at *place, name string) {
	at.watched.entries = append(at.watched.entries, probe{name, s.look(at.dir, at.rel, name)})
}

// watchPath makes the result depend on what is at a path.
func (s *search) watchPath(path string) { s.paths = append(s.paths, probe{path, s.lookAt(path)}) }

// current reports whether everything that the findings depend on is as it was. It reads no file. Each directory is opened
// once, and what is in it is looked at through it.
func (s *search) current(f *findings) bool {
	if f.timedOut() {
		return false
	}
	for i := range f.paths {
		if p := &f.paths[i]; !p.old || !p.same(s.lookAt(p.name)) {
			return false
		}
	}
	if f.top == nil {
		return true
	}
	dir, err := s.ws.OpenDir(s.root.Dir.String())
	return err == nil && s.holds(dir, f.top)
}

// holds reports whether all that w says of dir is still so. It closes dir.
func (s *search) holds(dir *workspace.Directory, w *watched) bool {
	defer dir.Close()
	if w.listed && !s.listsTheSame(dir, w) {
		return false
	}
	for i := range w.entries {
		if p := &w.entries[i]; !p.old || !p.same(s.look(dir, w.rel, p.name)) {
			return false
		}
	}
	for _, below := range w.below {
		name := path.Base(below.rel)
		if below.lacks() && below.same(s.look(dir, w.rel, name)) {
			continue
		}
		child, err := dir.OpenDir(name)
		if err != nil || !s.holds(child, below) {
			return false
		}
	}
	return true
}

// listsTheSame reports whether dir is the directory that was listed, and its names are the same.
func (s *search) listsTheSame(dir *workspace.Directory, w *watched) bool {
	if dir.Ref() != w.ref {
		return false
	}
	info, err := dir.Stat()
	return w.same(s.printOf(info.FileInfo, err))
}

// lacks reports whether the result depends only on what the directory does not have: as long as its own times
// stay, so does that, and it need not be opened.
func (w *watched) lacks() bool {
	for i := range w.entries {
		if w.entries[i].info != nil {
			return false
		}
	}
	return !w.listed && len(w.below) == 0
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
