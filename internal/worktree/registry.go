package worktree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
	"github.com/acp-agent/acp-agent/internal/files/links"
	"github.com/acp-agent/acp-agent/internal/files/privatefile"
	"github.com/acp-agent/acp-agent/internal/sandbox/confine"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// Registry has the tasks of a user for which worktrees were made. Several processes use it at once.
// A nil Registry has no [Registry.Origins] and nothing that was [Registry.Removed].
type Registry struct {
	records string // has a file NAME.json for each task
	dir     string // has a folder NAME for each task
}

// NewRegistry returns the registry that keeps its files in records, and makes worktrees in dir.
// Both are created when needed. Agents may write in dir, so it must not lie in records.
func NewRegistry(records, dir string) *Registry { return &Registry{records, links.RealPath(dir)} }

// Task has the worktrees that were made together, for the folders of a session.
type Task struct {
	Name         string        `json:"name"`
	Made         time.Time     `json:"made"`
	Folders      []Folder      `json:"folders"`
	Repositories []*Repository `json:"repositories"`
	// State says whether a process ended while it made or removed them.
	State State `json:"state,omitempty"`
}

// State is how far a task is made or removed.
type State string

// The states. In both of the latter [Registry.Remove] removes what is left.
const (
	Complete    State = ""
	HalfMade    State = "half made"
	HalfRemoved State = "half removed"
)

// Folder is a folder of the session for which the worktrees were made.
type Folder struct {
	// Original is the folder, and Path the folder that takes its place.
	Original string `json:"original"`
	Path     string `json:"path"`
	// Shared says that both are the same, because it is in no repository.
	Shared bool `json:"shared,omitempty"`
}

// Repository is a repository of which a worktree was made.
type Repository struct {
	// Top is the top of the checkout that the user works in, and Common git's own directory.
	Top    string `json:"top"`
	Common string `json:"common"`
	// Path is the worktree, Branch its branch, and Base the commit that was checked out.
	Path   string `json:"path"`
	Branch string `json:"branch"`
	Base   string `json:"base"`
	// Existing says that the branch was there before.
	Existing bool `json:"existing,omitempty"`
	// Changes is the number of uncommitted changes in Top, which the worktree does not have.
	Changes int `json:"changes,omitempty"`
	// Copied are the ignored files that were copied, by path, with a digest of their content.
	Copied map[string]string `json:"copied,omitempty"`
}

// Missing says what of the worktree is missing, or "".
func (r *Repository) Missing() string {
	switch {
	case !exists(r.Path):
		return "missing"
	case !exists(r.Common):
		return "original missing"
	}
	return ""
}

// Incomplete returns an error that says what to do if a part of the worktrees is not in its place.
func (s Task) Incomplete() error {
	missing := func(r *Repository) bool { return r.Missing() != "" }
	if s.State == Complete && !slices.ContainsFunc(s.Repositories, missing) {
		return nil
	}
	return fmt.Errorf("the worktrees %s are not complete: run acp-agent worktree remove %s, and "+
		"then acp-agent worktree add %[2]s --existing", text.Printable(s.Name),
		text.ShellWord(s.Name))
}

// Removed returns what to do if a path that does not exist was a folder in a worktree, ""
// otherwise.
func (r *Registry) Removed(path string) string {
	if r == nil {
		return ""
	}
	rel, err := filepath.Rel(r.dir, links.RealPath(path))
	if err != nil || !filepath.IsLocal(rel) || rel == "." {
		return ""
	}
	folder, _, _ := strings.Cut(rel, string(filepath.Separator))
	name, err := url.PathUnescape(strings.NewReplacer("~~", "%", "~", "%2F").Replace(folder))
	if err != nil {
		return ""
	}
	if task, err := r.Find(name); err == nil {
		return fmt.Sprint(task.Incomplete())
	}
	return fmt.Sprintf("the worktrees %s were removed, and their branches kept: acp-agent "+
		"worktree add %s --existing, with the folders that they were made of, makes them again",
		text.Printable(name), text.ShellWord(name))
}

// exists reports whether there is a file of any kind at a path, or it cannot be found out.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// Merge returns the command that merges what is checked out now into what the user has checked out,
// or "" if there is nothing to merge.
func (r *Repository) Merge(s Status) string {
	if s.Problem != "" || s.Branch == "" || s.Ahead == 0 {
		return ""
	}
	return "git -C " + text.ShellWord(r.Top) + " merge " + text.ShellWord(s.Branch)
}

// Push returns the command that pushes the branch, or "" if the repository has no remote.
func (r *Repository) Push(ctx context.Context) string {
	g, err := newGit(ctx, r.Path)
	if err != nil {
		return ""
	}
	remotes, err := g.line(ctx, "remote")
	remote, _, _ := strings.Cut(remotes, "\n")
	if err != nil || remote == "" {
		return ""
	}
	return "git -C " + text.ShellWord(r.Path) + " push -u " + text.ShellWord(remote) + " " +
		text.ShellWord(r.Branch)
}

// Roots returns the folders of a session in the worktrees.
func (s Task) Roots() (workspace.Roots, error) {
	var paths []string
	for _, f := range s.Folders {
		paths = append(paths, f.Path)
	}
	return workspace.NewRoots(paths[0], paths[1:])
}

// IsFor reports whether the worktrees were made for these folders.
func (s Task) IsFor(folders workspace.Roots) bool {
	paths := append([]string{folders.Cwd().String()}, folders.Additional().Strings()...)
	return slices.EqualFunc(s.Folders, paths,
		func(f Folder, path string) bool { return f.Original == path })
}

// place returns the folder of a task, and file its file.
func (r *Registry) place(name string) string { return filepath.Join(r.dir, fileName(name)) }

func (r *Registry) file(name string) string {
	return filepath.Join(r.records, fileName(name)+".json")
}

// hiddenState says why the folder of a task is hidden.
type hiddenState string

const (
	making   hiddenState = "making"
	removing hiddenState = "removing" // it is checked for the last time
	removed  hiddenState = "removed"  // it can be deleted
)

// hidden returns the name of the folder of a task while it is made or removed. No task has this
// name.
func (r *Registry) hidden(state hiddenState, name string) string {
	return filepath.Join(r.dir, "."+string(state)+"."+fileName(name))
}

// folders returns all names that the folder of a task can have.
func (r *Registry) folders(name string) []string {
	return []string{r.place(name), r.hidden(making, name), r.hidden(removing, name),
		r.hidden(removed, name)}
}

// claim keeps other processes from making or removing a task until release is called, as far as
// the system can.
func (r *Registry) claim(name string) (release func(), err error) {
	for _, path := range r.folders(name) {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		switch err := dirfd.TryLock(f); {
		case errors.Is(err, dirfd.ErrLocked):
			_ = f.Close()
			return nil, fmt.Errorf("another process is making or removing the worktrees %s",
				text.Printable(name))
		case err != nil: // there are no locks, and some systems rename no folder that is open
			_ = f.Close()
		default:
			return func() { _ = f.Close() }, nil
		}
	}
	return func() {}, nil
}

// state returns how far a task is made or removed.
func (r *Registry) state(name string) State {
	switch {
	case exists(r.hidden(making, name)):
		return HalfMade
	case exists(r.hidden(removing, name)), exists(r.hidden(removed, name)):
		return HalfRemoved
	}
	return Complete
}

// All yields the tasks as they were recorded, not followed, and an error for each record that cannot
// be read.
func (r *Registry) All() iter.Seq2[Task, error] {
	return func(yield func(Task, error) bool) {
		entries, err := os.ReadDir(r.records)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield(Task{}, fmt.Errorf("cannot list the worktrees: %w", err))
			return
		}
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".json") || !e.Type().IsRegular() {
				continue
			}
			s, err := r.read(filepath.Join(r.records, e.Name()))
			isRemoved := errors.Is(err, fs.ErrNotExist) // just now
			if !isRemoved && !yield(s, err) {
				return
			}
		}
	}
}

// ErrNone is the error for a name that no worktrees have.
var ErrNone = errors.New("acp-agent worktree list shows all")

// Find returns the task of a name, followed, or [ErrNone] if the name is unknown.
func (r *Registry) Find(name string) (Task, error) {
	s, err := r.read(r.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("there are no worktrees %s: %w", text.QuotedName(name), ErrNone)
	}
	return s.Follow(), err
}

// Follow finds the repositories of a task that were moved, if git has repaired their worktrees:
// both must name each other, and the repository must have our lock. It returns the task.
func (s Task) Follow() Task {
	for _, r := range s.Repositories {
		own, ok := confine.LinkedWorktree(r.Path)
		common := confine.RepositoryOf(own)
		lock, err := os.ReadFile(filepath.Join(own, "locked"))
		if ok && err == nil && !exists(r.Common) &&
			strings.TrimSpace(string(lock)) == lockReason(r.Branch) {
			r.Common, r.Top = common, filepath.Dir(common)
		}
	}
	return s
}

func (r *Registry) read(path string) (s Task, err error) {
	content, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(content, &s)
	}
	switch {
	case err != nil:
	case len(s.Folders) == 0, len(s.Repositories) == 0, slices.Contains(s.Repositories, nil):
		err = errors.New("it names no worktrees")
	case !strings.EqualFold(filepath.Base(path), filepath.Base(r.file(s.Name))):
		err = errors.New("it is the record of another task: " + text.QuotedName(s.Name))
	}
	if err != nil {
		return Task{}, fmt.Errorf("cannot read %s: %w", text.Printable(path), err)
	}
	s.State = r.state(s.Name)
	return s, nil
}

// save writes the file of a task with write, such as [privatefile.WriteFile].
func (r *Registry) save(s Task, write func(path string, content []byte) error) error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = write(r.file(s.Name), append(content, '\n'))
	}
	return err
}

// forget removes the file of a task and its empty folder.
func (r *Registry) forget(name string) error {
	for _, path := range r.folders(name) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return privatefile.Remove(r.file(name))
}
