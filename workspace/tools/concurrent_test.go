package tools

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

const (
	writers      = 8
	editsOfEach  = 25
	writerOf     = "TOOLS_TEST_WRITER"
	sharedHeader = "all: "
)

// sharedText returns a file with a line for all writers and one for each of them.
func sharedText() string {
	var b strings.Builder
	b.WriteString(sharedHeader + ".\n")
	for n := range writers {
		fmt.Fprintf(&b, "writer %d: 0\n", n)
	}
	return b.String()
}

// editShared is what writer n does: in turn it edits a line of its own and the line of all. Each
// edit must succeed. It returns what it has got as an error.
func editShared(set *Set, n int) error {
	for i := range editsOfEach {
		for _, a := range []args{
			{"path": "f", "old_text": fmt.Sprintf("writer %d: %d\n", n, i),
				"new_text": fmt.Sprintf("writer %d: %d\n", n, i+1)},
			{"path": "f", "old_text": ".\n", "new_text": fmt.Sprintf(" %d/%d.\n", n, i)},
		} {
			if _, err := set.Call(context.Background(), "edit_file", encode(a)); err != nil {
				return fmt.Errorf("writer %d, edit %d: %w", n, i, err)
			}
		}
	}
	return nil
}

// requireAllEdits requires that a file has every edit of every writer once, those of one writer in
// their order.
func requireAllEdits(t *testing.T, path string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	text := string(raw)
	for n := range writers {
		require.Contains(t, text, fmt.Sprintf("writer %d: %d\n", n, editsOfEach))
		var order []string
		for _, match := range regexp.MustCompile(fmt.Sprintf(` %d/(\d+)`, n)).
			FindAllStringSubmatch(text, -1) {
			order = append(order, match[1])
		}
		require.Len(t, order, editsOfEach, "writer %d in %s", n, text)
		for i, one := range order {
			require.Equal(t, strconv.Itoa(i), one, "writer %d", n)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	for _, e := range entries {
		require.NotContains(t, e.Name(), ".acp-agent-")
	}
}

func permitAnything(context.Context, Change) error { return nil }

// Clause E1.
func TestEditsAtOnceAreAllMade(t *testing.T) {
	for name, o := range map[string]Options{
		"on disk": {}, "in an editor": {Editor: &lockedZed{zed: zed{unsaved: map[string]string{}}}},
	} {
		t.Run("E1/"+name, func(t *testing.T) {
			dir := plant(t, fileTree{"f": sharedText()})
			o.Permit = permitAnything
			set := New(openRoots(t, dir), o)
			results := make(chan error, writers)
			for n := range writers {
				go func() { results <- editShared(set, n) }()
			}
			for range writers {
				require.NoError(t, <-results)
			}
			requireAllEdits(t, filepath.Join(dir, "f"))
		})
	}
}

// lockedZed is an editor that answers several requests at once.
type lockedZed struct {
	mu sync.Mutex
	zed
}

func (z *lockedZed) ReadTextFile(ctx context.Context, at workspace.Ref) (string, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.zed.ReadTextFile(ctx, at)
}

func (z *lockedZed) WriteTextFile(ctx context.Context, at workspace.Ref, text string) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.zed.WriteTextFile(ctx, at, text)
}

// Clause E1.
func TestEditsOfProcessesAtOnceAreAllMade(t *testing.T) {
	if n := os.Getenv(writerOf); n != "" {
		writer, err := strconv.Atoi(n)
		require.NoError(t, err)
		wd, err := os.Getwd()
		require.NoError(t, err)
		require.NoError(t, editShared(New(openRoots(t, wd), Options{Permit: permitAnything}), writer))
		return
	}
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be replaced, so there are no locks between processes")
	}
	for name, dir := range map[string]string{"disk": plant(t, nil), "memory": inMemory(t)} {
		t.Run("E1/"+name, func(t *testing.T) {
			path := filepath.Join(dir, "f")
			require.NoError(t, os.WriteFile(path, []byte(sharedText()), 0o600))
			var all sync.WaitGroup
			outputs := make([]string, writers)
			errs := make([]error, writers)
			for n := range writers {
				all.Go(func() {
					c := exec.CommandContext(t.Context(), os.Args[0],
						"-test.run=^TestEditsOfProcessesAtOnceAreAllMade$", "-test.count=1")
					c.Dir, c.Env = dir, append(os.Environ(), writerOf+"="+strconv.Itoa(n))
					output, err := c.CombinedOutput()
					outputs[n], errs[n] = string(output), err
				})
			}
			all.Wait()
			for n, err := range errs {
				require.NoError(t, err, outputs[n])
			}
			requireAllEdits(t, path)
		})
	}
}

// inMemory returns a new directory that is in memory, if possible.
func inMemory(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "tools")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// An edit whose lines others have changed meanwhile is another one than was permitted: it is asked
// about again. A file that is written as a whole is not.
//
// Clause E1, E2.
func TestEditOfChangedLinesIsAskedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile string
		asked     int
		want      string // "" if the edit is refused
	}{
		"another line": {"one two\nnew\n", 1, "one 2\nnew\n"},
		"the line":     {"1 two\nthree\n", 2, "1 2\nthree\n"},
		"the text":     {"one 2\nthree\n", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			app, h := servePlanted(t, fileTree{"f": "one two\nthree\n"})
			h.decide = func(Change) error {
				if len(h.asked) > 1 {
					return nil
				}
				return os.WriteFile(filepath.Join(app, "f"), []byte(c.meanwhile), 0o600)
			}
			a := args{"path": "f", "old_text": "two", "new_text": "2"}
			if c.want == "" {
				var changed *workspace.ChangedError
				require.ErrorAs(t, h.refused("edit_file", a), &changed)
				require.Equal(t, fileTree{"f": c.meanwhile}, planted(t, app))
			} else {
				made := do[changedFile](h, "edit_file", a)
				require.Equal(t, fileTree{"f": c.want}, planted(t, app))
				require.Equal(t, versionOf(c.want), made.Version)
			}
			require.Len(t, h.asked, c.asked)
		})
	}
}
