package policy

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/commandline"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// Place is where an action happens.
type Place struct {
	Workspace *workspace.Workspace
	Catalog   *discovery.Catalog
	// Inside returns an error unless another program that opens an absolute path now reaches a file
	// or directory in the roots.
	Inside func(path string) error
	// Outside returns the real path of a file outside of the roots that may be read at all. It may be
	// nil.
	Outside func(ctx context.Context, path string) (real string, err error)
	// Server identifies the configuration of the only MCP server of the session with a name, "" if
	// there is none. It may be nil.
	Server func(name string) string
}

// file returns the file at an absolute path. content is what will be written, nil for a read.
func (p Place) file(ctx context.Context, name string, content, old *string) (File, error) {
	f := File{Path: name, Others: p.relative(filepath.Clean(name))}
	switch {
	case !filepath.IsAbs(name):
		return f, errors.New("a path is not absolute")
	case strings.ContainsFunc(name, unicode.IsControl), strings.Contains(name, " /"), strings.Contains(name, ",/"):
		return f, errors.New("a path may be several")
	}
	ref, err := p.find(name)
	if err != nil {
		if content == nil && p.Outside != nil {
			f.Real, err = p.Outside(ctx, name)
		}
		return f, err
	}
	f.locate(ref)
	info, err := p.Workspace.Stat(name)
	f.Folder = err == nil && info.Mode().IsDir()
	if content != nil {
		if old == nil {
			old = p.beginning(name)
		}
		change := tools.Change{Kind: tools.Write, Ref: ref, New: *content, Old: old}
		f.Risk = WhyAsk(ctx, p.Workspace, p.Catalog, change)
	}
	return f, nil
}

// beginning returns the first bytes of a file, nil if there is none.
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

// find returns where a path leads, if that is in the roots for other programs too. A file need not
// exist, nor the directories above it.
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
	above := path.Dir(filepath.ToSlash(ref.Path()))
	if len(missing) > 0 {
		above = path.Dir(filepath.ToSlash(missing[0].Path()))
	} else if err := p.Inside(name); err != nil {
		return ref, err
	}
	return ref, p.Inside(filepath.FromSlash(above))
}

// locate fills in where a file is. A name that is spelled in another root, or with "..", counts as
// it is spelled.
func (f *File) locate(ref workspace.Ref) {
	root := ref.Root()
	f.Real, f.Root, f.Names = ref.Real(), root.Real.String(), []string{ref.Rel()}
	for _, dir := range []workspace.Dir{root.Dir, root.Real} {
		if rel, err := filepath.Rel(dir.String(), f.Path); err == nil && filepath.IsLocal(rel) {
			f.Names = append(f.Names, filepath.ToSlash(rel))
		}
	}
}

// relative returns a clean path as patterns may name it: relative to each root that it is spelled
// in, and otherwise as it is.
func (p Place) relative(name string) []string {
	names := []string{strings.TrimLeft(filepath.ToSlash(name), "/")}
	for _, root := range p.Workspace.Opened() {
		for _, dir := range []workspace.Dir{root.Dir, root.Real} {
			if rel, err := filepath.Rel(dir.String(), name); err == nil && filepath.IsLocal(rel) {
				names = append(names, filepath.ToSlash(rel))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// maxMentions is the maximum number of words of a command that are looked up as files.
const maxMentions = 1000

// command fills in the command of an action, which runs in dir, "" if the agent has not said where.
func (p Place) command(a *Action, line, dir string) error {
	a.Verb, a.Line, a.RootTold = Run, line, dir != ""
	root := p.Workspace.Root(0)
	if dir == "" {
		dir = root.Dir.String()
	}
	p.mentions(a, dir)
	info, err := p.Workspace.Stat(dir)
	if err == nil {
		a.Root = info.Ref().Root().Real.String()
		err = p.Inside(dir)
	}
	if err != nil {
		return err
	}
	words, err := commandline.Plain(line)
	if err != nil {
		return nil
	}
	a.Words = words
	known, err := commandline.Understand(p.Workspace, dir, line)
	switch {
	case err == nil:
		a.Known = known.Rule
		if known.Bare != nil {
			a.Odd = known.Bare.Error()
		}
	case strings.TrimSuffix(path.Base(filepath.ToSlash(words[0])), ".exe") == "git":
		a.Odd = err.Error() // it may run what the repository names
	}
	return nil
}

// mentions adds the files that a command may name. Those after the maximum are known by name only.
func (p Place) mentions(a *Action, dir string) {
	for i, word := range Words(a.Line) {
		name := word
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		f := File{Path: name, Others: append(p.relative(filepath.Clean(name)), path.Clean(word))}
		if i >= maxMentions {
			a.Unclear = "the command is too long"
		} else if info, err := p.Workspace.Stat(name); err == nil {
			f.locate(info.Ref())
		}
		a.Files = append(a.Files, f)
	}
}

// HandOver returns an error unless another program that opens path now reaches a file or directory
// of w.
func HandOver(w *workspace.Workspace, path string) error {
	if w.HandOverDir(path) == nil {
		return nil
	}
	return w.HandOverFile(path)
}

// Command returns the action of running a command line in dir. It is not odd if it runs with these
// variables in its environment.
func Command(w *workspace.Workspace, line, dir string) (a Action, env []string) {
	p := Place{Workspace: w, Inside: func(path string) error { return HandOver(w, path) }}
	if err := p.command(&a, line, dir); err != nil {
		a.Unclear = err.Error()
	}
	known, err := commandline.Understand(w, dir, line)
	if err != nil {
		return a, nil
	}
	return a, known.Env
}

// OutsideRead returns the action of reading the file outside the roots at a real path, to which path
// leads.
func OutsideRead(path, real string) Action {
	return Action{Verb: Read, Files: []File{{Path: path, Real: real}}}
}
