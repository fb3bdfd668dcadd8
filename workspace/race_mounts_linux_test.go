package workspace_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/internal/testutil/containmenttest"
	"github.com/acp-agent/acp-agent/workspace"
)

// racedMounts is how many operations are made while something is mounted and unmounted.
const racedMounts = 3000

// What is mounted over a name between the look at it and its use belongs to nobody.
func TestC7_EveryOperationWhileMountsComeAndGo(t *testing.T) {
	if !containmenttest.InNamespace(t) {
		return
	}
	for _, over := range []string{"d", "d/e", "d/e/f"} {
		t.Run("C7/"+over, func(t *testing.T) {
			g := newGroundsInMemory(t)
			for _, path := range []string{"f", "e/f", "d/e/f"} {
				write(t, filepath.Join(g.out, path), "SECRET")
			}
			source := map[string]string{"d": g.out, "d/e": filepath.Join(g.out, "e"), "d/e/f": filepath.Join(g.out, "secret")}[over]
			before := snapshot(t, g.out, nil)
			stop := mounting(source, filepath.Join(g.a, over))
			defer unmountBelow(t, g.dir)
			defer stop()
			var all sync.WaitGroup
			for n := range racers {
				all.Go(func() {
					r := racer{ws: g.ws, scratch: "scratch" + strconv.Itoa(n)}
					for i := range racedMounts {
						op, path := raceable[i%len(raceable)], dirPaths[i/len(raceable)%len(dirPaths)]
						if text, err := op.do(&r, path); strings.Contains(text, "SECRET") {
							t.Errorf("%s %s: %s %v", op.name, path, text, err)
							return
						}
						if i%97 == 0 {
							makeAgain(g.ws)
						}
					}
				})
			}
			all.Wait()
			stop()
			require.Equal(t, before, snapshot(t, g.out, nil))
		})
	}
}

// makeAgain makes what the operations take away.
func makeAgain(ws *workspace.Workspace) {
	_, _ = ws.MkdirAll("d/e", 0o755)
	_, _ = put(ws, "d/e/f", "A/d/e/f")
}

// mounting mounts source over a name and takes it away again, over and over.
func mounting(source, over string) (stop func()) {
	var stopped atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stopped.Load() {
			if unix.Mount(source, over, "", unix.MS_BIND, "") == nil {
				_ = unix.Unmount(over, unix.MNT_DETACH)
			}
		}
	}()
	return func() {
		stopped.Store(true)
		<-done
	}
}

// unmountBelow takes away what is mounted below dir. A mount goes with the directory above it, to wherever that is moved.
func unmountBelow(t *testing.T, dir string) {
	t.Helper()
	table, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	for line := range strings.Lines(string(table)) {
		if point := strings.Fields(line)[4]; strings.HasPrefix(point, dir+"/") {
			require.NoError(t, unix.Unmount(point, unix.MNT_DETACH))
		}
	}
}
