// Package folders decides which folders a session gets, and opens them.
//
// A [Set] is the one list of them. What a request names becomes a set with [Requested]. [Set.Choose]
// has the rules about what the session gets instead, [Declare] finds what the user has declared for
// that, and [Set.Open] opens it. [Set.Changed] is for a session that is open. Roots, params and
// messages are derived from the set when they are needed.
package folders

import (
	"slices"

	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/workspace"
)

// Set lists the folders of a session: the working directory, then the additional ones, none twice.
// It has what may be done in each, and who wants the session to have it. It does not change. The
// zero Set has no folders.
type Set struct {
	list    []entry
	listed  bool                  // a client has named the additional folders, even if there are none
	keeps   bool                  // Open leaves out those of the session that cannot be opened
	missing []workspace.RootError // what Open has left out
}

// entry is a folder of a set.
type entry struct {
	dir     workspace.Dir
	grant   workspace.Grant
	source  source
	setting string // where the source has named it, for messages; "" for the list of a request
	place   int    // in the list of a request
}

// source says who wants a session to have a folder.
type source int

const (
	client    source = iota
	declared         // the user, in a setting
	confirmed        // the user, who was asked about the real path, which must not lead elsewhere
	stored           // nobody now: the session had it
)

// isOfSession reports whether neither the request nor a setting has named the folder, so that nobody
// can correct it there.
func (e entry) isOfSession() bool { return e.source == confirmed || e.source == stored }

// Requested returns the folders that a request names. listed says whether it names additional ones,
// even if there are none.
func Requested(cwd workspace.Dir, additional []workspace.Dir, listed bool) Set {
	list := []entry{{dir: cwd}}
	for i, dir := range additional {
		list = append(list, entry{dir: dir, place: i})
	}
	return Set{list: unique(list), listed: listed}
}

// unique removes the entries that repeat a path.
func unique(list []entry) []entry {
	seen := make(map[workspace.Dir]bool, len(list))
	return slices.DeleteFunc(list, func(e entry) bool {
		again := seen[e.dir]
		seen[e.dir] = true
		return again
	})
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

// Additional returns the folders after the working directory.
func (s Set) Additional() workspace.Dirs {
	var paths []string
	for _, e := range s.additional() {
		paths = append(paths, e.dir.String())
	}
	dirs, _ := workspace.ParseDirs(paths) // they were parsed before
	return dirs
}

func (s Set) additional() []entry { return s.list[min(1, len(s.list)):] }

// Roots returns the folders as a root set, with their grants. Root i is entry i of the list.
func (s Set) Roots() workspace.Roots {
	return workspace.RootsFrom(s.Cwd(), s.Additional()).Granting(
		func(dir workspace.Dir) workspace.Grant { return s.find(dir).grant })
}

// find returns the entry with a path, the zero value if there is none.
func (s Set) find(dir workspace.Dir) (found entry) {
	for _, e := range s.list {
		if e.dir == dir {
			return e
		}
	}
	return found
}

// Setting returns where the user has declared a folder, "" if a client names it.
func (s Set) Setting(dir workspace.Dir) string {
	e := s.find(dir)
	if e.source == client {
		return ""
	}
	return e.setting
}

// In returns the set with the working directory cwd.
func (s Set) In(cwd workspace.Dir) Set {
	s.list = unique(slices.Concat([]entry{{dir: cwd}}, s.additional()))
	return s
}

// Changed returns the set without an additional folder, if removed is one, and with the folders that
// the user has confirmed. The user has seen all of them, so Open leaves out none.
func (s Set) Changed(removed workspace.Dir, added ...consent.Consent) Set {
	list := s.list[:1:1]
	for _, e := range s.additional() {
		if e.source == client { // its place is another now
			e.setting = "your editor"
		}
		if e.dir != removed {
			list = append(list, e)
		}
	}
	for _, c := range added {
		list = append(list, entry{dir: c.Folder, grant: grant(c.ReadOnly), source: confirmed,
			setting: c.Setting()})
	}
	return Set{list: unique(list), listed: s.listed}
}

func grant(readOnly bool) workspace.Grant {
	if readOnly {
		return workspace.ReadOnly
	}
	return workspace.ReadWrite
}
