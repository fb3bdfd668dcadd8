//go:build linux || darwin

package workspace_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// The corpus in testdata/containment says what each case is; its README says how one is written. Every attempt of a
// case is made by every operation, on a tree of its own, as root and as an ordinary user.
func TestContainmentCorpus(t *testing.T) {
	dir := os.Getenv("WORKSPACE_TEST_DIR")
	if dir == "" {
		dir = openToAll(t)
		corpus := filepath.Join(dir, "containment")
		require.NoError(t, os.CopyFS(corpus, os.DirFS("../testdata/containment")))
		if asUser(t, dir) {
			t.Log("every case passed as an ordinary user, and now as root")
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "containment", "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			playCase(t, file)
		})
	}
}

// stage is a case on the disk.
type stage struct {
	script script
	dir    string
	ws     *workspace.Workspace
	before map[string]string // a picture of it as it was set up
	now    map[string]string // and after the last attempt
	end    []func()
}

func playCase(t *testing.T, file string) {
	c := readScript(t, file)
	if c.root && os.Geteuid() != 0 {
		t.Skip("only root can set this up")
	}
	if c.linux && runtime.GOOS != "linux" {
		t.Skip("other systems take other names for one")
	}
	s := &stage{script: c}
	s.set(t)
	defer s.clear()
	for _, a := range c.attempts {
		for _, op := range operations {
			if s.attempt(t, a, op); !s.unchanged() {
				s.clear()
				s.set(t)
			}
		}
	}
}

// attempt does one thing at one path, and sees what came of it.
func (s *stage) attempt(t *testing.T, a attempt, op operation) {
	t.Helper()
	path := s.expand(a.path)
	said := fmt.Sprintf("line %d: %s %.80q", a.line, op.name, path)
	granted := s.ws.Opened()
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := op.do(s.ws, path)
		done <- result{text, err}
	}()
	select {
	case got := <-done:
		require.NotContains(t, got.text, "SECRET", said)
		want := a.verdict(op.name)
		if !verdicts[want](got.err) {
			t.Errorf("%s: want %s, got %v", said, want, got.err)
		}
	case <-time.After(time.Minute):
		require.Fail(t, "it hangs", said)
	}
	s.now = snapshot(t, s.dir, nil)
	require.Equal(t, s.outside(s.before), s.outside(s.now), "%s: what is outside has changed", said)
	require.Equal(t, granted, s.ws.Opened(), "%s: the roots have changed", said)
}

// set makes the tree and opens it.
func (s *stage) set(t *testing.T) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	s.dir = filepath.Join(dir, rand.Text())
	require.NoError(t, os.Mkdir(s.dir, 0o755))
	for _, line := range s.script.before {
		s.run(t, line)
	}
	roots := make([]string, len(s.script.roots))
	for i, root := range s.script.roots {
		roots[i] = s.in(root)
	}
	set, err := workspace.NewRoots(roots[0], roots[1:])
	require.NoError(t, err)
	var o workspace.Options
	for _, path := range s.script.deny {
		o.Policy.Deny = append(o.Policy.Deny, dirs(t, s.in(path))...)
	}
	s.ws, err = workspace.Open(context.Background(), set, o)
	require.NoError(t, err)
	s.end = append(s.end, func() { _ = s.ws.Close() })
	for _, line := range s.script.after {
		s.run(t, line)
	}
	s.before = snapshot(t, s.dir, nil)
}

// clear ends what set began.
func (s *stage) clear() {
	for _, end := range slices.Backward(s.end) {
		end()
	}
	s.end = nil
	_ = filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, _ error) error {
		if d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(s.dir)
}

func (s *stage) unchanged() bool { return maps.Equal(s.before, s.now) }

// outside is what a picture shows of all that was not granted.
func (s *stage) outside(picture map[string]string) map[string]string {
	seen := maps.Clone(picture)
	maps.DeleteFunc(seen, func(path, _ string) bool {
		return slices.ContainsFunc(s.script.granted, func(dir string) bool {
			return path == dir || strings.HasPrefix(path, dir+"/")
		})
	})
	return seen
}

// snapshot is everything below dir but for some directories: which file it is, its mode, its time and its content.
func snapshot(t *testing.T, dir string, but []string) map[string]string {
	t.Helper()
	seen := make(map[string]string)
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(dir, path)
		if err != nil && d == nil || relErr != nil {
			return fmt.Errorf("looking at %s: %w", path, err)
		}
		if slices.Contains(but, rel) {
			return fs.SkipDir
		}
		info, infoErr := d.Info()
		if infoErr != nil {
			return infoErr
		}
		what := fmt.Sprint(inode(info), info.Mode(), info.ModTime().UnixNano())
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			seen[rel] = what + " -> " + target
			return err
		case info.Mode().IsRegular():
			text, _ := os.ReadFile(path) // what may not be read is not compared
			what += " " + string(text)
		}
		seen[rel] = what
		return nil
	}))
	return seen
}
