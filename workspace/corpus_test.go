//go:build linux || darwin

package workspace_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/testutil/containmenttest"
	"github.com/acp-agent/acp-agent/workspace"
)

// The corpus in testdata/containment says what each case is; its README says how one is written. Every attempt of a
// case is made by every operation, on a tree of its own, as root and as an ordinary user.
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
	s, ws := raise(t, c)
	for _, a := range c.Attempts {
		for _, op := range operations {
			if attempt(t, s, ws, a, op); s.Changed() {
				strike(s, ws)
				s, ws = raise(t, c)
			}
		}
	}
	strike(s, ws)
}

// raise makes the tree of a case and opens it.
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

// attempt does one thing at one path, and sees what came of it.
func attempt(t *testing.T, s *containmenttest.Stage, ws *workspace.Workspace, a containmenttest.Attempt, op operation) {
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
	go func() {
		got := result{held: harmless(s, op, path)}
		if got.held {
			got.text, got.err = op.do(ws, path)
		}
		done <- got
	}()
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

// harmless confines the calling goroutine to the tree. Where that cannot be, it reports whether the operation may be
// done at the path all the same.
func harmless(s *containmenttest.Stage, op operation, path string) bool {
	return containmenttest.Confine(s.Dir) || !op.changes || s.Within(path)
}

// snapshot is everything below dir but for some directories.
func snapshot(t *testing.T, dir string, but []string) map[string]string {
	t.Helper()
	return containmenttest.Picture(t, dir, but)
}
