package permission

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/files/links"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// Place is where an action happens. [At] makes one.
type Place struct {
	Workspace *workspace.Workspace
	// Catalog is that of the workspace. Without one, any edit has a risk.
	Catalog *discovery.Catalog
	// Inside returns an error unless another program that opens an absolute path now reaches a file
	// or directory in the roots.
	Inside func(path string) error
	// Outside returns the real path of a file outside of the roots that may be read at all.
	Outside func(ctx context.Context, path string) (real string, err error)
	// Server identifies the configuration of the only MCP server of the session with a name, "" if
	// there is none.
	Server func(name string) string
}

// At returns a place with a workspace in which no file outside may be read, and that has no catalog
// and no servers.
func At(w *workspace.Workspace) Place {
	return Place{Workspace: w, Inside: w.HandOver,
		Outside: func(context.Context, string) (string, error) { return "", errOutside },
		Server:  func(string) string { return "" }}
}

var errOutside = errors.New("it is outside the folders of this session")

// file returns the file at an absolute path. content is what will be written, nil for a read.
func (p Place) file(ctx context.Context, name string, content, old *string) (File, error) {
	if len(name) > maxPath {
		return File{Path: name}, errors.New("a path is too long")
	}
	f := p.at(name)
	f.Folder = p.look(&f)
	switch {
	case !filepath.IsAbs(name):
		return f, errors.New("a path is not absolute")
	case strings.ContainsFunc(name, unicode.IsControl), strings.Contains(name, " /"),
		strings.Contains(name, ",/"):
		return f, errors.New("a path may be several")
	}
	ref, err := p.find(name)
	if err != nil && content == nil {
		real, err := p.Outside(ctx, name)
		if err == nil {
			f = p.at(name)
			p.locateOutside(&f, real)
		}
		return f, err
	}
	if err == nil && content != nil {
		begins := p.beginning(name)
		if begins == nil || old != nil && isScript(*old) { // old may be a part of the file
			begins = old
		}
		change := tools.Change{Kind: tools.Write, Ref: ref, New: *content, Old: begins}
		f.Risk = WhyAsk(ctx, p.Workspace, p.Catalog, change)
	}
	return f, err
}

// beginning returns the first bytes of a file, or nil.
func (p Place) beginning(name string) *string {
	f, err := p.Workspace.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	first := make([]byte, 3)
	n, _ := io.ReadFull(f, first)
	return new(string(first[:n]))
}

// lead returns where a path leads in the roots, by the same steps as a system call, and whether
// that is a folder. A file need not exist, nor the directories above it: nearest is the path of what
// other programs must reach to get there.
func (p Place) lead(name string) (ref workspace.Ref, nearest string, folder bool, err error) {
	info, err := p.Workspace.Stat(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return info.Ref(), name, err == nil && info.Mode().IsDir(), err
	}
	ref, missing, err := p.Workspace.MissingParents(name, false)
	if nearest = name; len(missing) > 0 {
		nearest = filepath.Dir(missing[0].Path())
	}
	return ref, nearest, false, err
}

// find is lead for a path that other programs open. It fails if they would reach something else.
func (p Place) find(name string) (workspace.Ref, error) {
	ref, nearest, _, err := p.lead(name)
	if err == nil {
		err = p.Inside(nearest)
	}
	return ref, err
}

// at returns the file that a path names, as it is spelled.
func (p Place) at(name string) File {
	if !filepath.IsAbs(name) {
		name = filepath.Join(p.Workspace.Root(0).Dir.String(), name)
	}
	return File{Path: name, Others: p.relative(filepath.Clean(name))}
}

// locate fills in where a file is. A name that is spelled in another root, or with "..", counts as
// it is spelled.
func (p Place) locate(f *File, ref workspace.Ref) {
	root := ref.Root()
	f.Real, f.Root, f.Names = ref.Real(), root.Real.String(), []string{ref.Rel()}
	for _, dir := range []workspace.Dir{root.Dir, root.Real} {
		if rel, ok := below(dir, f.Path); ok {
			f.Names = append(f.Names, rel)
		}
	}
	f.Others = append(f.Others, p.inRoots(f.Real)...)
}

// below returns a path relative to a directory, with slashes, if it is in there.
func below(dir workspace.Dir, name string) (rel string, ok bool) {
	rel, err := filepath.Rel(dir.String(), name)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

// relative returns a clean path as patterns may name it: as in the roots, and as it is.
func (p Place) relative(name string) []string {
	return append(p.inRoots(name), strings.TrimLeft(filepath.ToSlash(name), "/"))
}

// inRoots returns a clean path relative to each root that it is spelled in. Patterns may also have
// the name of a root that is not the working directory.
func (p Place) inRoots(name string) (names []string) {
	for i, root := range p.Workspace.Opened() {
		for _, dir := range []workspace.Dir{root.Dir, root.Real} {
			rel, ok := below(dir, name)
			if !ok || slices.Contains(names, rel) {
				continue
			}
			names = append(names, rel)
			if i > 0 {
				names = append(names, path.Join(filepath.Base(dir.String()), rel))
			}
		}
	}
	return names
}

// look fills in where a file is, in the roots or elsewhere, and reports whether it is a folder.
func (p Place) look(f *File) (folder bool) {
	if ref, _, folder, err := p.lead(f.Path); err == nil {
		p.locate(f, ref)
		return folder
	}
	real := links.RealPath(f.Path)
	p.locateOutside(f, real)
	info, err := os.Stat(real)
	return err == nil && info.IsDir()
}

// locateOutside fills in the real path of a file whose path is in no root. A link outside may lead
// into a root.
func (p Place) locateOutside(f *File, real string) {
	f.Real, f.Others = real, append(f.Others, p.relative(real)...)
}

// opened returns the file or folder at ref, to which a path led that may be relative.
func (p Place) opened(name string, ref workspace.Ref) File {
	f := p.at(name)
	p.locate(&f, ref)
	return f
}

// in returns what is in a folder under a name with slashes.
func (f File) in(below string) File {
	join := func(names []string) (joined []string) {
		for _, name := range names {
			joined = append(joined, path.Join(name, below))
		}
		return joined
	}
	return File{Path: filepath.Join(f.Path, below), Real: filepath.Join(f.Real, below),
		Root: f.Root, Names: join(f.Names), Others: join(f.Others)}
}

// Access returns the action of reading or editing the file at a path, which need not exist.
func (p Place) Access(verb Verb, name string) Action {
	f := p.at(name)
	p.look(&f)
	return Action{Verb: verb, Files: []File{f}}
}

// Changing returns the action of a change. risk is what [WhyAsk] says about it.
func (p Place) Changing(c tools.Change, risk string) Action {
	a := Action{Verb: Edit, Files: []File{p.opened(c.Asked, c.Ref)}, Standing: true}
	if c.Kind == tools.Move {
		a.Files = append(a.Files, p.opened(c.AskedTo, c.To))
	}
	for i := range a.Files {
		a.Files[i].Risk = risk
	}
	return a
}

// OutsideRead returns the action of reading the file at a real path, to which a path outside the
// roots leads.
func (p Place) OutsideRead(path, real string) Action {
	f := p.at(path)
	p.locateOutside(&f, real)
	return Action{Verb: Read, Files: []File{f}}
}
