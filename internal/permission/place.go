package permission

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/permission/commandline"
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
// that is a folder. A file need not exist, nor the directories above it.
func (p Place) lead(name string) (ref workspace.Ref, folder bool, err error) {
	info, err := p.Workspace.Stat(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return info.Ref(), err == nil && info.Mode().IsDir(), err
	}
	ref, _, err = p.Workspace.MissingParents(name, false)
	return ref, false, err
}

// find is lead for a path that other programs open. It fails if they would reach something else.
func (p Place) find(name string) (workspace.Ref, error) {
	info, err := p.Workspace.Stat(name)
	switch {
	case err == nil:
		return info.Ref(), p.Inside(name)
	case !errors.Is(err, fs.ErrNotExist):
		return workspace.Ref{}, err
	}
	ref, missing, err := p.Workspace.MissingParents(name, false)
	if err != nil {
		return ref, err
	}
	first := ref
	if len(missing) > 0 {
		first = missing[0]
	} else if err := p.Inside(name); err != nil {
		return ref, err
	}
	return ref, p.Inside(filepath.Dir(first.Path()))
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

// command returns the action of a command, which runs in dir, "" if the agent has not said where,
// and the variables with which the command is not odd.
func (p Place) command(line, dir string) (a Action, env []string, err error) {
	a.Verb, a.Command.Line, a.Where.Told = Run, line, dir != ""
	root := p.Workspace.Root(0)
	if dir == "" {
		dir = root.Dir.String()
	}
	said := commandline.Read(line)
	words := said.Words()
	if len(words) > maxMentions {
		a.Unclear = "the command is too long"
	}
	named := p.mentions(dir, words, said)
	a.Files = named.files
	a.Hints = Hints{Files: named.vague, Reads: p.searched(said, named.dirs),
		More: said.Built || named.cut || a.Unclear != ""}
	info, err := p.Workspace.Stat(dir)
	if err == nil {
		a.Where.Root = info.Ref().Root().Real.String()
		err = p.Inside(dir)
	}
	if err != nil {
		return a, nil, err
	}
	if a.Where.Told {
		a.Where.Within = info.Ref().Rel()
	}
	if a.Command.Words, err = commandline.Plain(line); err != nil {
		return a, nil, nil
	}
	known, err := commandline.Understand(p.Workspace, dir, line)
	switch {
	case err == nil:
		a.Command.Known, a.Hints.Reads = known.Rule, p.reads(known.Reads)
		if known.Bare != nil {
			a.Command.Odd = known.Bare.Error()
		}
	case commandline.Program(a.Command.Words[0]) == "git":
		a.Command.Odd = err.Error() // it may run what the repository names
	}
	a.Command.Local = p.isLocal(a.Command.Words, dir)
	return a, known.Env, nil
}

// isLocal reports whether a command names a file in the roots, such as the script that it runs.
func (p Place) isLocal(words []string, dir string) bool {
	if strings.Contains(words[0], "/") && !filepath.IsAbs(words[0]) {
		return true
	}
	return slices.ContainsFunc(words, func(word string) bool {
		info, err := p.Workspace.Stat(commandline.Absolute(dir, word))
		return err == nil && !info.Mode().IsDir()
	})
}

// look fills in where a file is, in the roots or elsewhere, and reports whether it is a folder.
func (p Place) look(f *File) (folder bool) {
	if ref, folder, err := p.lead(f.Path); err == nil {
		p.locate(f, ref)
		return folder
	}
	real := withoutLinks(f.Path, maxLinks)
	p.locateOutside(f, real)
	info, err := os.Stat(real)
	return err == nil && info.IsDir()
}

// maxLinks is how many links to nothing are followed.
const maxLinks = 3

// withoutLinks returns the path without links, at most so many at its end, that a file has or would
// have.
func withoutLinks(path string, most int) string {
	path = filepath.Clean(path)
	for at := path; at != filepath.Dir(at); at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return real + strings.TrimPrefix(path, at)
		}
		if to, err := os.Readlink(at); err == nil && most > 0 { // to nothing that exists
			if !filepath.IsAbs(to) {
				to = filepath.Join(withoutLinks(filepath.Dir(at), most-1), to)
			}
			return withoutLinks(to+strings.TrimPrefix(path, at), most-1)
		}
	}
	return path
}

// locateOutside fills in the real path of a file whose path is in no root. A link outside may lead
// into a root.
func (p Place) locateOutside(f *File, real string) {
	f.Real, f.Others = real, append(f.Others, p.relative(real)...)
}

// reads returns the files of which a command prints the content, and the roots in its folders.
func (p Place) reads(all []commandline.Reading) (files []File) {
	for _, r := range all {
		f := File{Path: r.Path, Folder: r.Folder, Names: p.relative(filepath.Clean(r.Path))}
		if r.Folder && p.look(&f) && f.Root == "" {
			for _, root := range p.Workspace.Opened() {
				if real := root.Real.String(); isBelow(f.Real, real) {
					files = append(files, File{Real: real, Names: []string{"."}, Folder: true})
				}
			}
		}
		files = append(files, f)
	}
	return files
}

// searched returns the files and folders of which the commands of a line may print the content that
// run in one of some folders.
func (p Place) searched(line commandline.Line, dirs []string) (files []File) {
	for _, dir := range dirs {
		reads, folders := line.MayRead(p.Workspace, dir)
		for _, name := range folders {
			if f := p.named(name, dir); p.look(&f) {
				reads = append(reads, commandline.Reading{Path: f.Path, Folder: true})
			}
		}
		files = append(files, p.reads(reads)...)
	}
	return files
}

// Command returns the action of running a command line in dir. It is not odd if it runs with these
// variables in its environment.
func (p Place) Command(line, dir string) (a Action, env []string) {
	a, env, err := p.command(line, dir)
	if err != nil {
		a.Unclear = err.Error()
	}
	return a, env
}

// maxHashed bounds the files of a command whose content is compared, in bytes.
const maxHashed = 64 << 20

// Contents returns a text that changes if the content of a file changes that a command names, such
// as the script that it runs, or if one is created, and these files as the command writes them. The
// text is "" if that cannot be determined.
func (p Place) Contents(a Action) (state string, names []string) {
	if len(commandline.Read(a.Command.Line).Words()) > maxMentions {
		return "", nil
	}
	seen := map[string]bool{}
	sum, room := sha256.New(), int64(maxHashed)
	for _, f := range a.Files {
		if seen[f.Path] {
			continue
		}
		seen[f.Path] = true
		hash, size, err := p.Workspace.Hash(f.Path, room)
		if err != nil {
			continue
		}
		if room -= size; room < 0 {
			return "", nil
		}
		names = append(names, f.Word)
		fmt.Fprintf(sum, "%q %s\n", f.Path, hash)
	}
	return hex.EncodeToString(sum.Sum(nil)), names
}

// OutsideRead returns the action of reading the file at a real path, to which a path outside the
// roots leads.
func (p Place) OutsideRead(path, real string) Action {
	f := p.at(path)
	p.locateOutside(&f, real)
	return Action{Verb: Read, Files: []File{f}}
}
