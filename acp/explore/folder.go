package explore

import (
	"io/fs"
	"path"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/workspace"
)

// folder is an open directory of a root with the files in it that are looked at. It is
// closed when the last of its users has released it.
type folder struct {
	dir  *workspace.Directory
	root root
	// rel is its path in the root, slash-separated, "" for the root itself.
	rel   string
	files []string
	users atomic.Int32
}

// hold adds a user. Only who is one may call it.
func (f *folder) hold() { f.users.Add(1) }

func (f *folder) release() {
	if f.users.Add(-1) == 0 {
		_ = f.dir.Close()
	}
}

// join is the path of an entry in the root.
func (f *folder) join(name string) string { return path.Join(f.rel, name) }

// split sorts entries into those that are looked into and those that are read. Links are neither:
// what they lead to is found where it is.
func split(entries []workspace.Entry) (dirs, files []string, rules bool) {
	for _, e := range entries {
		switch {
		case e.Name == ".git":
		case e.Type.IsDir():
			dirs = append(dirs, e.Name)
		case e.Type&fs.ModeType == 0:
			files = append(files, e.Name)
			rules = rules || e.Name == gitignore
		}
	}
	return dirs, files, rules
}
