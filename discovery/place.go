package discovery

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/acp-agent/acp-agent/workspace"
)

// place is a directory that a search looks into.
type place struct {
	dir  *workspace.Directory
	rel  string // as it was found, slash-separated from the root
	up   *place
	seen *workspace.Seen

	entries []workspace.Entry // once it was listed
	err     error             // why not all of them
	listed  bool
}

// place is the open directory name in up, or the root if up is nil. What it looks like is noted before anything is looked
// for in it, so that what changes later is noticed.
func (s *search) place(dir *workspace.Directory, up *place, name string) *place {
	p := &place{dir: dir, rel: name, up: up}
	if up != nil {
		p.rel = join(up.rel, name)
	}
	if p.seen = s.watched[p.rel]; p.seen != nil {
		return p
	}
	info, err := dir.Stat()
	p.seen = &workspace.Seen{Name: name}
	if err == nil {
		p.seen.Look = workspace.LookOf(info.FileInfo, s.began)
	}
	s.watched[p.rel] = p.seen
	if up != nil && up.holds(dir.Ref(), name) {
		up.seen.Below = append(up.seen.Below, p.seen)
	} else {
		s.findings.seen = append(s.findings.seen, seen{s.path(p.rel), dir.Ref(), p.seen})
	}
	return p
}

// list are the entries, read once.
func (p *place) list(ctx context.Context) ([]workspace.Entry, error) {
	if !p.listed {
		p.watch()
		p.entries, p.err = p.dir.Entries(ctx)
		p.listed = true
	}
	return p.entries, p.err
}

// entry is the entry name. The error is that there is none, or that it cannot be looked at. What was listed
// is not looked at again; a name in another case may be the same to the file system, and is.
func (p *place) entry(name string) (workspace.Entry, error) {
	if p.listed && p.err == nil && isASCII(name) {
		like := false
		for _, e := range p.entries {
			if e.Name == name {
				return e, nil
			}
			like = like || strings.EqualFold(e.Name, name)
		}
		if !like {
			return workspace.Entry{}, fs.ErrNotExist
		}
	}
	info, err := p.dir.Lstat(name)
	if err != nil {
		return workspace.Entry{}, err
	}
	return workspace.Entry{Name: name, Type: info.Mode().Type()}, nil
}

// holds reports whether ref is name in p, and no link led there.
func (p *place) holds(ref workspace.Ref, name string) bool {
	dir := p.dir.Ref()
	if ref.Root() != dir.Root() {
		return false
	}
	rel, in := ref.Rel(), dir.Rel()
	if in == "." {
		return rel == name
	}
	return len(rel) == len(in)+1+len(name) && rel[:len(in)] == in && rel[len(in)] == '/' && rel[len(in)+1:] == name
}

// above is the place above p that is the same directory, nil for none.
func (p *place) above() *place {
	for up := p.up; up != nil; up = up.up {
		if up.dir.Ref() == p.dir.Ref() {
			return up
		}
	}
	return nil
}

// isGone reports whether err, of an attempt to open e, says that there is no such entry: a link that leads to nothing is one.
func isGone(e workspace.Entry, err error) bool {
	return errors.Is(err, fs.ErrNotExist) && e.Type&fs.ModeSymlink == 0
}

// join is name in the directory at rel.
func join(rel, name string) string {
	if rel == "." {
		return name
	}
	return rel + "/" + name
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
