package permission

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/permission/commandline"
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
	if len(name) > maxPath {
		return File{Path: name}, errors.New("a path is too long")
	}
	f := p.at(name)
	switch {
	case !filepath.IsAbs(name):
		return f, errors.New("a path is not absolute")
	case strings.ContainsFunc(name, unicode.IsControl), strings.Contains(name, " /"), strings.Contains(name, ",/"):
		return f, errors.New("a path may be several")
	}
	ref, err := p.find(name)
	if err != nil {
		if content == nil && p.Outside != nil {
			var real string
			if real, err = p.Outside(ctx, name); err == nil {
				p.locateOutside(&f, real)
			}
		}
		return f, err
	}
	p.locate(&f, ref)
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

// lead returns where a path leads in the roots, by the same steps as a system call, and whether that
// is a folder. A file need not exist, nor the directories above it.
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
	above := path.Dir(filepath.ToSlash(ref.Path()))
	if len(missing) > 0 {
		above = path.Dir(filepath.ToSlash(missing[0].Path()))
	} else if err := p.Inside(name); err != nil {
		return ref, err
	}
	return ref, p.Inside(filepath.FromSlash(above))
}

// at returns the file that a path names, as it is spelled.
func (p Place) at(name string) File {
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

const (
	// maxMentions is the maximum number of words of a request that are looked up as files.
	maxMentions = 1000
	// maxWords is the maximum number of words that are compared with rules about files at all.
	maxWords = 5 * maxMentions
	// maxListed is the maximum number of folders that are listed for words that are patterns.
	maxListed = 100
	// maxFolders is the maximum number of folders in which the words of a request may be files.
	maxFolders = 10
	// maxPath is the length of the longest path that a system opens, in bytes.
	maxPath = 4096
)

// command fills in the command of an action, which runs in dir, "" if the agent has not said where.
// It returns the variables with which the command is not odd.
func (p Place) command(a *Action, line, dir string) (env []string, err error) {
	a.Verb, a.Line, a.RootTold = Run, line, dir != ""
	root := p.Workspace.Root(0)
	if dir == "" {
		dir = root.Dir.String()
	}
	words := Words(line)
	if len(words) > maxMentions {
		a.Unclear = "the command is too long"
	}
	a.Files = p.mentions(words, dir)
	info, err := p.Workspace.Stat(dir)
	if err == nil {
		a.Root = info.Ref().Root().Real.String()
		err = p.Inside(dir)
	}
	if err != nil {
		return nil, err
	}
	if a.RootTold {
		a.Within = info.Ref().Rel()
	}
	if a.Words, err = commandline.Plain(line); err != nil {
		return nil, nil
	}
	known, err := commandline.Understand(p.Workspace, dir, line)
	switch {
	case err == nil:
		a.Known, a.Reads = known.Rule, p.reads(known.Reads)
		if known.Bare != nil {
			a.Odd = known.Bare.Error()
		}
	case strings.TrimSuffix(path.Base(filepath.ToSlash(a.Words[0])), ".exe") == "git":
		a.Odd = err.Error() // it may run what the repository names
	}
	a.Local = p.isLocal(a.Words, dir)
	return known.Env, nil
}

// isLocal reports whether a command names a file in the roots, such as the script that it runs.
func (p Place) isLocal(words []string, dir string) bool {
	if strings.Contains(words[0], "/") && !filepath.IsAbs(words[0]) {
		return true
	}
	return slices.ContainsFunc(words, func(word string) bool {
		info, err := p.Workspace.Stat(absolute(dir, word))
		return err == nil && !info.Mode().IsDir()
	})
}

// absolute returns a path that starts in dir. It is not clean: a ".." after a link leads elsewhere.
func absolute(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return dir + string(filepath.Separator) + name
}

// mentions returns the files that words may name, from dir or from a folder that another word names,
// as in cd sub && cat x. Those after a maximum are known by name only, and those after another are
// left out.
func (p Place) mentions(words []string, dir string) (files []File) {
	dirs := []string{dir}
	for i := 0; i < len(dirs) && i*len(words) < 2*maxMentions; i++ {
		found := p.expand(words, dirs[i])
		for j, word := range slices.Concat(found, words[:min(len(words), maxWords)]) {
			if len(word) > maxPath {
				continue
			}
			f := p.named(word, dirs[i])
			if j < len(found)+maxMentions && p.look(&f) && len(dirs) < maxFolders &&
				!slices.Contains(dirs, f.Real) {
				dirs = append(dirs, f.Real)
			}
			files = append(files, f)
		}
	}
	return files
}

// expand returns the paths of files that a shell or another program puts in place of words that are
// patterns, at most maxMentions.
func (p Place) expand(words []string, dir string) (all []string) {
	room := maxListed
	for _, word := range words {
		if !isPattern(word) && !strings.Contains(word, "{") || len(word) > maxPath {
			continue
		}
		parts := strings.Split(filepath.ToSlash(absolute(dir, word)), "/")
		paths := parts[:1]
		for _, part := range parts[1:] {
			paths = p.extend(paths, part, &room)
		}
		all = append(all, paths...)
	}
	return all[:min(len(all), maxMentions)]
}

// extend returns what is at some paths under a name, or under all names that match a pattern in as
// many folders as there is room for.
func (p Place) extend(paths []string, pattern string, room *int) (all []string) {
	for _, at := range paths {
		if !strings.ContainsAny(pattern, "*?[{") {
			all = append(all, at+"/"+pattern)
			continue
		}
		if *room--; *room < 0 {
			break
		}
		d, err := p.Workspace.OpenDir(at)
		if err != nil {
			continue
		}
		entries, _ := d.Entries(context.Background())
		_ = d.Close()
		for _, e := range entries {
			if matches, _ := doublestar.Match(pattern, e.Name); matches {
				all = append(all, at+"/"+e.Name)
			}
		}
	}
	return all
}

// named returns the file that a word may name, also as an address or below the user's home
// directory.
func (p Place) named(word, dir string) File {
	name := word
	if u, err := url.Parse(word); err == nil && u.Scheme == "file" {
		name = u.Path
	}
	if below, found := strings.CutPrefix(name, "~/"); found {
		if home, err := os.UserHomeDir(); err == nil {
			name = filepath.Join(home, below)
		}
	}
	name = absolute(dir, name)
	if at := ownFolder().FindString(name); at != "" {
		name = absolute(dir, "./"+name[len(at):])
	}
	f := p.at(name)
	f.Others, f.Word = append(f.Others, path.Clean(word)), word
	return f
}

// ownFolder matches a path that leads to the folder in which the program runs that opens it.
var ownFolder = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^/+proc/+[^/]+/+(?:task/+[^/]+/+)?cwd(?:/|$)`)
})

// look fills in where a file is, in the roots or elsewhere, and reports whether it is a folder.
func (p Place) look(f *File) (folder bool) {
	if ref, folder, err := p.lead(f.Path); err == nil {
		p.locate(f, ref)
		return folder
	}
	real, err := filepath.EvalSymlinks(f.Path)
	if err != nil {
		return false
	}
	p.locateOutside(f, real)
	info, err := os.Stat(real)
	return err == nil && info.IsDir()
}

// locateOutside fills in the real path of a file whose path is in no root, "" if it does not exist. A
// link outside may lead into a root.
func (p Place) locateOutside(f *File, real string) {
	if f.Real = real; real != "" {
		f.Others = append(f.Others, p.relative(real)...)
	}
}

// reads returns the files of which a command prints the content.
func (p Place) reads(all []commandline.Reading) (files []File) {
	for _, r := range all {
		f := File{Path: r.Path, Folder: r.Folder, Names: p.relative(filepath.Clean(r.Path))}
		if r.Folder {
			if ref, _, err := p.lead(r.Path); err == nil {
				p.locate(&f, ref)
			}
		}
		files = append(files, f)
	}
	return files
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
	env, err := p.command(&a, line, dir)
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
func Contents(w *workspace.Workspace, a Action) (state string, names []string) {
	if len(Words(a.Line)) > maxMentions {
		return "", nil
	}
	seen := map[string]bool{}
	sum, room := sha256.New(), int64(maxHashed)
	for _, f := range a.Files {
		if seen[f.Path] {
			continue
		}
		seen[f.Path] = true
		hash, size, err := w.Hash(f.Path, room)
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
