package discovery

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/workspace"
)

// probe is something that the result of a search depends on: a file or directory, or that there is none. A
// directory stands for the names in it.
type probe struct {
	// dir is the directory that it is in, slash-separated from the root as it was found, and name its name there. Of what
	// is not reached from the root, name is a path.
	dir, name string
	print
}

// elsewhere is the dir of a probe whose name is a path.
const elsewhere = ""

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

func printOf(info fs.FileInfo, err error) print {
	if err != nil {
		return print{why: reasonOf(err), old: true}
	}
	return print{info: info, old: time.Since(info.ModTime()) > settled}
}

// same reports whether now is certainly the state that p was taken of.
func (p print) same(now print) bool {
	if p.info == nil || now.info == nil {
		return p.info == nil && now.info == nil && p.why == now.why
	}
	return p.old && p.real == now.real && os.SameFile(p.info, now.info) &&
		p.info.ModTime().Equal(now.info.ModTime()) && p.info.Size() == now.info.Size() && p.info.Mode() == now.info.Mode()
}

// look looks at name in dir, and follows it if it is a link.
func (s *search) look(dir *workspace.Directory, rel, name string) print {
	info, err := dir.Lstat(name)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return s.lookAt(s.path(path.Join(rel, name)))
	}
	return printOf(info.FileInfo, err)
}

// lookAt looks at what is at a path.
func (s *search) lookAt(path string) print {
	info, err := s.ws.Stat(path)
	p := printOf(info.FileInfo, err)
	if err == nil {
		p.real = info.Ref().Real()
	}
	return p
}

// printOfFile is the print of the file name in at, which was opened.
func printOfFile(info fs.FileInfo, ref workspace.Ref, at *place, name string) print {
	p := printOf(info, nil)
	if !at.holds(ref, name) {
		p.real = ref.Real()
	}
	return p
}

// holds reports whether ref is name in p, and no link led there.
func (p *place) holds(ref workspace.Ref, name string) bool {
	dir := p.dir.Ref()
	return ref.Root() == dir.Root() && ref.Rel() == path.Join(dir.Rel(), name)
}

// watch makes the result depend on the names in a directory.
func (s *search) watch(at *place) {
	switch {
	case s.seen[at.rel]:
	case at.up == nil:
		s.watchPath(s.path(at.rel))
	default:
		s.watchEntry(at.up, path.Base(at.rel))
	}
	s.seen[at.rel] = true
}

// watchEntry makes the result depend on what name in at is.
func (s *search) watchEntry(at *place, name string) {
	s.probes = append(s.probes, probe{at.rel, name, s.look(at.dir, at.rel, name)})
}

// watchPath makes the result depend on what is at a path.
func (s *search) watchPath(path string) {
	s.probes = append(s.probes, probe{elsewhere, path, s.lookAt(path)})
}

// current reports whether everything that the findings depend on is as it was. It reads no file.
func (s *search) current(f *findings) bool {
	if f.timedOut() {
		return false
	}
	way := way{search: s}
	defer way.back(0)
	for _, p := range f.probes {
		if !p.old || !p.same(way.look(p)) {
			return false
		}
	}
	return true
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

// way is the directories from the root to the one looked at last. Probes come in the order of the search, so most are in
// a directory that is open already.
type way struct {
	*search
	open []place
}

func (w *way) look(p probe) print {
	if p.dir == elsewhere {
		return w.lookAt(p.name)
	}
	dir, err := w.to(p.dir)
	if err != nil {
		return printOf(nil, err)
	}
	return w.search.look(dir, p.dir, p.name)
}

// to opens the directory at rel, from the deepest one on the way that is open.
func (w *way) to(rel string) (*workspace.Directory, error) {
	n := len(w.open)
	for n > 1 && !within(rel, w.open[n-1].rel) {
		n--
	}
	w.back(n)
	if n == 0 {
		dir, err := w.ws.OpenDir(w.root.Dir.String())
		if err != nil {
			return nil, err
		}
		w.open = append(w.open, place{dir: dir, rel: "."})
	}
	at := w.open[len(w.open)-1]
	if rel == at.rel {
		return at.dir, nil
	}
	rest := rel
	if at.rel != "." {
		rest = strings.TrimPrefix(rel, at.rel+"/")
	}
	for name := range strings.SplitSeq(rest, "/") {
		dir, err := at.dir.OpenDir(name)
		if err != nil {
			return nil, err
		}
		at = place{dir: dir, rel: path.Join(at.rel, name)}
		w.open = append(w.open, at)
	}
	return at.dir, nil
}

// back closes all but the first n directories.
func (w *way) back(n int) {
	for _, p := range w.open[n:] {
		_ = p.dir.Close()
	}
	w.open = w.open[:n]
}

func within(rel, dir string) bool { return rel == dir || strings.HasPrefix(rel, dir+"/") }

// missing reports whether err says that there is no such entry: a link that leads to nothing is one.
func (s *search) missing(at *place, name string, err error) bool {
	if !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	_, err = at.dir.Lstat(name)
	return err != nil
}
