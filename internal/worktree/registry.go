package worktree

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/privatefile"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// Registry are the sets of worktrees of a user. Several processes use it at once.
type Registry struct {
	records string // has a file NAME.json for each set
	dir     string // has a folder NAME for each set
}

// NewRegistry returns the registry that keeps its files in records, and makes worktrees in dir.
// Both are created when needed. Agents may write in dir, so it must not lie in records.
func NewRegistry(records, dir string) *Registry { return &Registry{records, withoutLinks(dir)} }

// withoutLinks returns a path without links, as git names it, as far as it exists.
func withoutLinks(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil || path == filepath.Dir(path) {
		return cmp.Or(real, path)
	}
	return filepath.Join(withoutLinks(filepath.Dir(path)), filepath.Base(path))
}

// Set are the worktrees that were made together, for the folders of a session.
type Set struct {
	Name         string        `json:"name"`
	Made         time.Time     `json:"made"`
	Folders      []Folder      `json:"folders"`
	Repositories []*Repository `json:"repositories"`
}

// Folder is a folder of the session for which the worktrees were made.
type Folder struct {
	// Original is the folder, and Path the folder that takes its place.
	Original string `json:"original"`
	Path     string `json:"path"`
	// Shared says that both are the same, because it is in no repository.
	Shared bool `json:"shared,omitempty"`
	// Nested are repositories in a shared folder, of which no worktrees are made.
	Nested []string `json:"-"`
}

// Repository is a repository of which a worktree was made.
type Repository struct {
	// Top is the top of the checkout that the user works in, and Common git's own directory.
	Top    string `json:"top"`
	Common string `json:"common"`
	// Path is the worktree, Branch its branch, and Base the commit at which the branch began.
	Path   string `json:"path"`
	Branch string `json:"branch"`
	Base   string `json:"base"`
	// Changes is the number of uncommitted changes in Top, which the worktree does not have.
	Changes int `json:"changes,omitempty"`
	// Copied are the ignored files that were copied, by path, with a digest of their content.
	Copied map[string]string `json:"copied,omitempty"`
}

// Gone reports whether the worktree has been removed.
func (r *Repository) Gone() bool {
	_, err := os.Lstat(r.Path)
	return errors.Is(err, fs.ErrNotExist)
}

// Merge returns the command that merges the branch into what the user has checked out.
func (r *Repository) Merge() string {
	return "git -C " + text.ShellWord(r.Top) + " merge " + text.ShellWord(r.Branch)
}

// Roots returns the folders of a session in the worktrees.
func (s Set) Roots() (workspace.Roots, error) {
	var paths []string
	for _, f := range s.Folders {
		paths = append(paths, f.Path)
	}
	return workspace.NewRoots(paths[0], paths[1:])
}

// IsFor reports whether the worktrees were made for these folders.
func (s Set) IsFor(folders workspace.Roots) bool {
	if folders.Len() != len(s.Folders) {
		return false
	}
	for i, dir := range folders.All() {
		if s.Folders[i].Original != dir.String() {
			return false
		}
	}
	return true
}

// place returns the folder of a set, and file its file.
func (r *Registry) place(name string) string { return filepath.Join(r.dir, fileName(name)) }

func (r *Registry) file(name string) string {
	return filepath.Join(r.records, fileName(name)+".json")
}

// List returns all sets, ordered by name.
func (r *Registry) List() ([]Set, error) {
	entries, err := os.ReadDir(r.records)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot list the worktrees: %w", err)
	}
	var sets []Set
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") || !e.Type().IsRegular() {
			continue
		}
		s, err := read(filepath.Join(r.records, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // just removed
		}
		if err != nil {
			return nil, err
		}
		sets = append(sets, s)
	}
	slices.SortFunc(sets, func(a, b Set) int { return strings.Compare(a.Name, b.Name) })
	return sets, nil
}

// Find returns the set of a name. The error is fs.ErrNotExist if there is none.
func (r *Registry) Find(name string) (Set, error) {
	s, err := read(r.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("there are no worktrees %s: acp-agent worktree list shows all: %w",
			text.QuotedName(name), fs.ErrNotExist)
	}
	return s, err
}

func read(path string) (s Set, err error) {
	content, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(content, &s)
	}
	if err == nil && (len(s.Folders) == 0 || len(s.Repositories) == 0) {
		err = errors.New("it names no worktrees")
	}
	if err != nil {
		return s, fmt.Errorf("cannot read %s: %w", text.Printable(path), err)
	}
	return s, nil
}

// save writes the file of a set with write, such as [privatefile.WriteFile].
func (r *Registry) save(s Set, write func(path string, content []byte) error) error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = write(r.file(s.Name), append(content, '\n'))
	}
	return err
}

// forget removes the file of a set and its folder, if that is empty.
func (r *Registry) forget(name string) error {
	if err := os.Remove(r.place(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return privatefile.Remove(r.file(name))
}
