//go:build linux || darwin

package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/containmenttest"
	"github.com/acp-agent/acp-agent/workspace"
)

// TestContainmentCorpus makes every attempt in testdata/containment with every operation, on a tree
// of its own, as root and as an ordinary user.
func TestContainmentCorpus(t *testing.T) {
	require.Equal(t, containmenttest.Operations(), operationNames())
	require.ElementsMatch(t, containmenttest.Verdicts(), slices.Collect(maps.Keys(verdicts)))
	dir := os.Getenv("WORKSPACE_TEST_DIR")
	if dir == "" {
		dir = openToAll(t)
		corpus := filepath.Join(dir, "containment")
		require.NoError(t, os.CopyFS(corpus, os.DirFS("../testdata/containment")))
		if asUser(t, dir) {
			t.Log("every case passed as an ordinary user, and now as root")
		}
	}
	for _, c := range containmenttest.Cases(t, filepath.Join(dir, "containment")) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			c.Skip(t)
			playCase(t, c)
		})
	}
}

func playCase(t *testing.T, c containmenttest.Case) {
	hand := newHand(t)
	s, ws := raise(t, c)
	for _, a := range c.Attempts {
		for _, op := range operations {
			if attempt(t, hand, s, ws, a, op); s.Changed() {
				strike(s, ws)
				s, ws = raise(t, c)
			}
		}
	}
	strike(s, ws)
}

// raise creates the tree of a case and opens it.
func raise(t *testing.T, c containmenttest.Case) (*containmenttest.Stage, *workspace.Workspace) {
	t.Helper()
	s := c.Stage(t)
	roots := s.Roots()
	set, err := workspace.NewRoots(roots[0], roots[1:])
	require.NoError(t, err)
	var o workspace.Options
	if denied := s.Denied(); len(denied) > 0 {
		o.Policy.Deny = dirs(t, denied...)
	}
	ws, err := workspace.Open(context.Background(), set, o)
	require.NoError(t, err)
	s.Open(t)
	return s, ws
}

func strike(s *containmenttest.Stage, ws *workspace.Workspace) {
	_ = ws.Close()
	s.Clear()
}

// attempt performs one operation on one path, and checks the outcome.
func attempt(t *testing.T, hand *hand, s *containmenttest.Stage, ws *workspace.Workspace,
	a containmenttest.Attempt, op operation) {
	t.Helper()
	path := s.Path(a)
	said := fmt.Sprintf("line %d: %s %.80q", a.Line, op.name, path)
	granted := ws.Opened()
	type result struct {
		text string
		err  error
		held bool
	}
	done := make(chan result, 1)
	hand.work <- func() {
		got := result{held: hand.confined || !op.changes || s.Within(path)}
		if got.held {
			got.text, got.err = op.do(ws, path)
		}
		done <- got
	}
	var got result
	select {
	case got = <-done:
	case <-time.After(time.Minute):
		require.Fail(t, "it hangs", said)
	}
	s.RequireContained(t, got.text, said)
	if want := a.Verdict(op.name); got.held && !verdicts[want](got.err) {
		t.Errorf("%s: want %s, got %v", said, want, got.err)
	}
	require.Equal(t, granted, ws.Opened(), "%s: the roots have changed", said)
}

// hand is a goroutine that makes the attempts on the trees of a case. If the system supports it, it
// cannot change anything outside the directory of the test, in which the trees are.
type hand struct {
	work     chan func()
	confined bool // only the goroutine reads it
}

func newHand(t *testing.T) *hand {
	h := &hand{work: make(chan func())}
	t.Cleanup(func() { close(h.work) })
	dir, err := filepath.EvalSymlinks(filepath.Dir(t.TempDir()))
	require.NoError(t, err)
	go func() {
		h.confined = containmenttest.Confine(dir)
		for do := range h.work {
			do()
		}
	}()
	return h
}

// snapshot describes everything below dir except the directories but.
func snapshot(t *testing.T, dir string, but []string) map[string]string {
	t.Helper()
	return containmenttest.Picture(t, dir, but)
}

// operation is something to do at a path. It returns everything that it learned.
type operation struct {
	name    string
	do      func(ws *workspace.Workspace, path string) (string, error)
	changes bool
}

// changing returns the operation of a change.
func changing(name, change string) operation {
	return operation{name: name, changes: true,
		do: func(ws *workspace.Workspace, path string) (string, error) {
			return "", changes[change](ws, path)
		}}
}

var operations = []operation{
	{name: "read", do: func(ws *workspace.Workspace, path string) (string, error) {
		text, _, err := read(ws, path)
		return text, err
	}},
	{name: "text", do: func(ws *workspace.Workspace, path string) (string, error) {
		text, err := ws.ReadText(context.Background(), path, workspace.TextOptions{})
		return text.Content, err
	}},
	{name: "list", do: func(ws *workspace.Workspace, path string) (string, error) {
		d, err := ws.OpenDir(path)
		if err != nil {
			return "", err
		}
		defer d.Close()
		entries, err := d.Entries(context.Background())
		var names strings.Builder
		for _, e := range entries {
			names.WriteString(e.Name + "\n")
		}
		return names.String(), err
	}},
	{name: "search", do: searchAll},
	{name: "stat", do: func(ws *workspace.Workspace, path string) (string, error) {
		_, err := ws.Stat(path)
		return "", err
	}},
	{name: "lstat", do: func(ws *workspace.Workspace, path string) (string, error) {
		_, err := ws.Lstat(path)
		return "", err
	}},
	{name: "readlink", do: func(ws *workspace.Workspace, path string) (string, error) {
		_, err := ws.Readlink(path)
		return "", err
	}},
	{name: "fs-read", do: func(ws *workspace.Workspace, path string) (string, error) {
		f, err := ws.Fs().Open(path)
		if err != nil {
			return "", err
		}
		defer f.Close()
		if names, err := f.Readdirnames(0); err == nil {
			return strings.Join(names, "\n"), nil
		}
		text, err := io.ReadAll(f)
		return string(text), err
	}},
	changing("write", "WriteFile"),
	changing("write-new", "WriteFile, new"),
	changing("fs-create", "Fs.Create"),
	changing("mkdir", "Mkdir"),
	changing("rename-from", "Rename from"),
	changing("rename-to", "Rename to"),
	changing("remove", "Remove"),
}

// searchAll reads every file below path that it can.
func searchAll(ws *workspace.Workspace, path string) (string, error) {
	var found strings.Builder
	err := walk(context.Background(), ws, path, func(v visit) error {
		found.WriteString(v.Name + "\n")
		if v.Type.IsDir() {
			return nil
		}
		f, err := v.Open()
		if err != nil {
			return nil
		}
		defer f.Close()
		_, err = io.Copy(&found, f)
		return err
	})
	return found.String(), err
}

func operationNames() []string {
	names := make([]string, len(operations))
	for i, op := range operations {
		names[i] = op.name
	}
	return names
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func as[E error](err error) bool {
	var target E
	return errors.As(err, &target)
}

// verdicts are the possible outcomes of an operation.
var verdicts = map[string]func(error) bool{
	"ok":        func(err error) bool { return err == nil },
	"refused":   func(err error) bool { return err != nil },
	"any":       func(error) bool { return true },
	"outside":   as[*workspace.OutsideError],
	"denied":    as[*workspace.DeniedError],
	"protected": as[*workspace.ProtectedError],
	"special":   as[*workspace.SpecialFileError],
	"missing":   is(fs.ErrNotExist),
	"exists":    is(fs.ErrExist),
	"invalid": func(err error) bool {
		return errors.Is(err, fs.ErrInvalid) ||
			errors.Is(err, syscall.EINVAL)
	},
	"permission": is(os.ErrPermission),
	"isdir":      is(syscall.EISDIR),
	"notdir":     is(syscall.ENOTDIR),
	"notempty":   is(syscall.ENOTEMPTY),
	"loop":       is(syscall.ELOOP),
	"toolong":    is(syscall.ENAMETOOLONG),
}
