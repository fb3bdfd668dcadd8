package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/internal/files/privatefile"
	"github.com/acp-agent/acp-agent/internal/text"
)

// Limits of the files that a snapshot copies: those that are not committed.
const (
	maxSnapshotFiles = 10_000
	maxSnapshotFile  = 4 << 20
	maxSnapshotBytes = 64 << 20
	maxLeftOut       = 1000
)

// Snapshots keep what the folders of sessions had before an agent changed them. Several processes
// use them at once.
type Snapshots struct{ dir string }

// NewSnapshots returns the snapshots in dir, which is created when needed. Agents must not write in
// it. If dir is empty, nothing is found, and no snapshot may be taken.
func NewSnapshots(dir string) Snapshots { return Snapshots{dir} }

// Snapshot is what a folder had. Git's objects of what was not committed are beside it.
type Snapshot struct {
	Session string    `json:"session"`
	Folder  string    `json:"folder"`
	Taken   time.Time `json:"taken"`
	// Tree has all files but LeftOut, which were too large or could not be read.
	Tree    string   `json:"tree,omitempty"`
	LeftOut []string `json:"leftOut,omitempty"`
	// Problem says why Tree is empty, or "".
	Problem string `json:"problem,omitempty"`

	objects string
}

// Take takes a snapshot of each folder of a session, a real path, that has none. What cannot be
// done until the deadline of ctx is left out, and the snapshot says so. Nothing of a repository
// changes.
func (s Snapshots) Take(ctx context.Context, session string, folders []string) error {
	var taking sync.WaitGroup
	failed := make([]error, len(folders))
	for i, folder := range folders {
		if exists(s.file(session, folder)) {
			continue
		}
		taking.Go(func() { failed[i] = s.take(ctx, session, folder) })
	}
	taking.Wait()
	return errors.Join(failed...)
}

// take takes the snapshot in a new directory. It counts once the file that describes it exists.
func (s Snapshots) take(ctx context.Context, session, folder string) (err error) {
	if err := privatefile.MakeDir(s.of(session)); err != nil {
		return err
	}
	work, err := os.MkdirTemp(s.of(session), "making-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	one := Snapshot{Session: session, Folder: folder, Taken: time.Now().UTC().Truncate(time.Second)}
	err = one.write(ctx, work)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	path := s.file(session, folder)
	taken := filepath.Dir(path)
	if err := errors.Join(os.RemoveAll(taken), os.Mkdir(taken, 0o700)); err != nil {
		return err
	}
	if err != nil {
		one.Problem = text.Line(err.Error(), 300)
	} else if err := os.Rename(
		filepath.Join(work, "objects"), filepath.Join(taken, "objects"),
	); err != nil {
		return err
	}
	content, err := json.Marshal(one)
	if err == nil {
		err = privatefile.WriteFile(path, content)
	}
	return err
}

// write writes the tree with its objects into dir.
func (s *Snapshot) write(ctx context.Context, dir string) error {
	g, err := newGit(ctx, s.Folder)
	if err != nil {
		return err
	}
	inside, err := g.line(ctx, "rev-parse", "--is-inside-work-tree")
	if isOutside(err) || err == nil && inside != "true" {
		return errors.New("it is in no git repository")
	}
	if err == nil {
		g, err = g.apart(ctx, dir, "")
	}
	if err != nil {
		return err
	}
	changed, err := g.output(ctx, "ls-files", "--modified", "--others", "--exclude-standard", "-z")
	if err != nil {
		return err
	}
	if n := strings.Count(changed, "\x00"); n > maxSnapshotFiles {
		return fmt.Errorf("it had %d files that were not committed", n)
	}
	kept, gone, err := s.choose(strings.Split(strings.TrimSuffix(changed, "\x00"), "\x00"))
	if err != nil {
		return err
	}
	writing := g.writing(dir)
	for _, step := range []struct {
		how   string
		files []string
	}{{"--force-remove", gone}, {"--add", kept}} {
		if len(step.files) == 0 {
			continue
		}
		update := writing
		update.stdin = strings.Join(step.files, "\x00")
		_, err := update.output(ctx, "update-index", "--replace", step.how, "-z", "--stdin")
		if err != nil {
			return err
		}
	}
	s.Tree, err = writing.line(ctx, "write-tree", "--missing-ok")
	return err
}

// choose returns which of the changed files are copied, and which are gone. It notes what is left
// out.
func (s *Snapshot) choose(changed []string) (kept, gone []string, err error) {
	root, err := os.OpenRoot(s.Folder)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	left := int64(maxSnapshotBytes)
	for _, name := range changed {
		info, err := root.Lstat(filepath.FromSlash(name))
		switch {
		case name == "" || strings.HasSuffix(name, "/"): // another repository
		case err != nil || isBelowLink(root, name):
			gone = append(gone, name)
		case !info.Mode().IsRegular(): // a link, or a submodule
			kept = append(kept, name)
		case info.Size() > min(left, maxSnapshotFile) || !isReadable(root, name):
			s.LeftOut = append(s.LeftOut, name)
		default:
			kept, left = append(kept, name), left-info.Size()
		}
	}
	if len(s.LeftOut) > maxLeftOut {
		return nil, nil, errors.New("too many files in it are large and not committed")
	}
	return kept, gone, nil
}

func isReadable(root *os.Root, name string) bool {
	f, err := root.Open(filepath.FromSlash(name))
	return err == nil && f.Close() == nil
}

// Find returns the snapshot of a folder of a session. Without one, its Problem says so.
func (s Snapshots) Find(session, folder string) (one Snapshot) {
	path := s.file(session, folder)
	content, err := os.ReadFile(path)
	if s.dir == "" {
		err = fs.ErrNotExist
	}
	if err == nil {
		err = json.Unmarshal(content, &one)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		one.Problem = "nothing was noted of it when the session began"
	case err != nil:
		one.Problem = "what was noted of it cannot be read: " + text.Line(err.Error(), 300)
	}
	one.Folder, one.objects = folder, filepath.Join(filepath.Dir(path), "objects")
	return one
}

// Compare returns the differences between the snapshot, which has a tree, and the folder, without
// what lies at some paths in it.
func (s Snapshot) Compare(ctx context.Context, without ...string) (Changes, error) {
	g, err := newGit(ctx, s.Folder)
	return Changes{git: g, tree: s.Tree, objects: s.objects,
		without: append(without, s.LeftOut...)}, err
}

// Remove removes the snapshots of a session.
func (s Snapshots) Remove(session string) error {
	if s.dir == "" {
		return nil
	}
	return os.RemoveAll(s.of(session))
}

// Prune removes the snapshots of the sessions that are gone, and what processes that were killed
// have left of others.
func (s Snapshots) Prune(gone func(session string) bool) error {
	if s.dir == "" {
		return nil
	}
	dirs, err := filepath.Glob(filepath.Join(s.dir, "*", "*"))
	for _, dir := range dirs {
		var one Snapshot
		content, readErr := os.ReadFile(filepath.Join(dir, snapshotName))
		switch {
		case readErr == nil && json.Unmarshal(content, &one) == nil && gone(one.Session):
			err = errors.Join(err, s.Remove(one.Session))
		case errors.Is(readErr, fs.ErrNotExist) && isLeftBehind(dir):
			err = errors.Join(err, os.RemoveAll(dir))
			_ = os.Remove(filepath.Dir(dir)) // unless the session has others
		}
	}
	return err
}

// isLeftBehind reports whether a directory of take is so old that it can no longer be in use.
func isLeftBehind(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && time.Since(info.ModTime()) > 24*time.Hour
}

// snapshotName is the name of the file that describes a snapshot.
const snapshotName = "snapshot.json"

// of returns the directory of a session's snapshots, and file the file that describes one.
func (s Snapshots) of(session string) string { return filepath.Join(s.dir, digest(session)) }

func (s Snapshots) file(session, folder string) string {
	return filepath.Join(s.of(session), digest(folder), snapshotName)
}

func digest(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}
