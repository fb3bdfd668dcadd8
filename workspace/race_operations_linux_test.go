package workspace_test

import (
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/workspace"
)

// raceOperations is how many operations the race test makes, unless WORKSPACE_RACE_OPERATIONS says more.
const raceOperations = 100_000

// racers is how many goroutines make them, beside the one that swaps.
const racers = 3

// Whatever is done while names are swapped, nothing outside is read, written, made or removed, nothing waits, and
// every failure is one that says something.
func TestC5_EveryOperationWhileNamesAreSwapped(t *testing.T) {
	total := raceOperations
	if more := os.Getenv("WORKSPACE_RACE_OPERATIONS"); more != "" {
		var err error
		total, err = strconv.Atoi(more)
		require.NoError(t, err)
	}
	for _, c := range raceCases {
		t.Run(c.name, func(t *testing.T) {
			c.play(t, total/len(raceCases)+1)
		})
	}
}

// raceCase is a pair of names that are swapped, one for what is there by right and one for what is not.
type raceCase struct {
	name      string
	good, bad string   // below the grounds
	is        string   // what bad is: "fifo", or the target of a link
	paths     []string // where things are done
}

var (
	dirPaths  = []string{"d", "d/e", "d/e/f", "d/e/f", "d/new", "d/e/new", "d/e/../new", "d/"}
	filePaths = []string{"d/e/f", "d/e/f", "d/e/new", "d/e"}
)

var raceCases = []raceCase{
	{"directory with a link out", "A/d", "A/l", "$OUT", dirPaths},
	{"directory with a relative link out", "A/d", "A/l", "../out", dirPaths},
	{"the last directory with a link out", "A/d/e", "A/d/l", "$OUT/d", dirPaths[1:]},
	{"file with a link out", "A/d/e/f", "A/d/e/l", "$OUT/secret", filePaths},
	{"file with a dangling link out", "A/d/e/f", "A/d/e/l", "$OUT/new", filePaths},
	{"file with a fifo", "A/d/e/f", "A/d/e/fifo", "fifo", filePaths},
	{"directory with a fifo", "A/d/e", "A/d/fifo", "fifo", dirPaths[1:]},
	{"a root itself", "A", "l", "$OUT", dirPaths},
	{"behind a link from another root", "A/d", "A/l", "$OUT", []string{"../B/across/e/f", "../B/across/e", "../B/across/new", "../B/across/"}},
	{"directory with a denied one's link", "A/d", "A/l", "denied", dirPaths},
}

func (c raceCase) play(t *testing.T, operations int) {
	g := newGroundsInMemory(t)
	for _, dir := range []string{g.out, filepath.Join(g.out, "d/e"), filepath.Join(g.out, "e"), filepath.Join(g.a, "denied/e")} {
		write(t, filepath.Join(dir, "f"), "SECRET")
	}
	link(t, filepath.Join(g.a, "d"), filepath.Join(g.b, "across"))
	ws := openWith(t, workspace.Options{Policy: workspace.Policy{Deny: dirs(t, filepath.Join(g.a, "denied"))}}, g.a, g.b)
	p := pair{good: filepath.Join(g.dir, c.good), bad: filepath.Join(g.dir, c.bad), is: strings.ReplaceAll(c.is, "$OUT", g.out)}
	before := snapshot(t, g.out, nil)
	denied := snapshot(t, filepath.Join(g.a, "denied"), nil)
	p.mend()

	stop := p.swapping(t)
	var made, well atomic.Int64
	failed := make(chan string, racers)
	var all sync.WaitGroup
	for n := range racers {
		all.Go(func() {
			r := racer{ws: ws, scratch: "scratch" + strconv.Itoa(n)}
			for i := 0; i < operations/racers+1; i++ {
				op := raceable[rand.IntN(len(raceable))]
				path := c.paths[rand.IntN(len(c.paths))]
				text, err := op.do(&r, path)
				made.Add(1)
				if err == nil {
					well.Add(1)
				}
				if strings.Contains(text, "SECRET") || err != nil && !says(err) {
					failed <- op.name + " " + path + ": " + text + ": " + errorText(err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(3 * time.Minute):
		require.Fail(t, "an operation hangs")
	}
	stop()
	close(failed)
	for what := range failed {
		t.Error(what)
	}
	t.Logf("%d of %d operations succeeded", well.Load(), made.Load())
	require.Equal(t, before, snapshot(t, g.out, nil))
	if c.is == "denied" {
		require.Equal(t, denied, snapshot(t, filepath.Join(g.a, "denied"), nil))
	}
}

// newGroundsInMemory is newGrounds where nothing waits for a disk, if there is such a place.
func newGroundsInMemory(t *testing.T) grounds {
	if dir, err := os.MkdirTemp("/dev/shm", "workspace"); err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		t.Setenv("TMPDIR", dir)
	}
	return newGrounds(t)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// says reports whether err is one that callers can tell apart.
func says(err error) bool {
	return expected(err) || as[*workspace.ChangedError](err) || as[*workspace.LeftoverError](err) || as[*workspace.ProtectedError](err) ||
		as[*workspace.NotTextError](err) || as[*workspace.StrandedError](err)
}

// pair is two names, of which one is good and one bad, as long as somebody mends what operations do to them.
type pair struct{ good, bad, is string }

func (p pair) swapping(t *testing.T) (stop func()) {
	exchange := func() error {
		return unix.Renameat2(unix.AT_FDCWD, p.good, unix.AT_FDCWD, p.bad, unix.RENAME_EXCHANGE)
	}
	if err := exchange(); errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		t.Skip("this file system cannot exchange names:", err)
	}
	var stopped atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; !stopped.Load(); i++ {
			if exchange() != nil || i%8 == 0 {
				p.mend()
			}
		}
	}()
	return func() {
		stopped.Store(true)
		<-done
	}
}

// mend makes what is missing of the pair.
func (p pair) mend() {
	one, oneErr := os.Lstat(p.good)
	other, otherErr := os.Lstat(p.bad)
	switch {
	case oneErr == nil && otherErr == nil && p.isBad(one) != p.isBad(other):
		return
	case oneErr == nil && p.isBad(one) || otherErr == nil && !p.isBad(other):
		p.good, p.bad = p.bad, p.good // it is the other way round just now
	}
	if info, err := os.Lstat(p.bad); err != nil || !p.isBad(info) {
		_ = os.RemoveAll(p.bad)
		if p.is == "fifo" {
			_ = unix.Mkfifo(p.bad, 0o644)
		} else {
			_ = os.Symlink(p.is, p.bad)
		}
	}
	if info, err := os.Lstat(p.good); err == nil && p.isBad(info) {
		_ = os.Remove(p.good)
	}
	p.fill()
}

func (p pair) isBad(info os.FileInfo) bool {
	return info.Mode()&(fs.ModeSymlink|fs.ModeNamedPipe) != 0
}

// fill makes what is good: A, A/d, A/d/e or A/d/e/f, with all that is in it.
func (p pair) fill() {
	below := map[string]string{"A": "d/e/f", "l": "d/e/f", "d": "e/f", "e": "f", "f": ""}
	name := filepath.Base(p.good)
	write := func(f *os.File, err error) {
		if err == nil {
			_, _ = io.WriteString(f, "A/d/e/f")
			_ = f.Close()
		}
	}
	switch {
	case name == "l" && filepath.Base(p.bad) != "A", name == "fifo":
		name = filepath.Base(p.bad)
	}
	rel := below[name]
	if rel == "" {
		write(os.OpenFile(p.good, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644))
		return
	}
	// A move that is undone may put the link back at any moment: what is made here must not go through it.
	_ = os.MkdirAll(filepath.Dir(p.good), 0o755)
	_ = os.Mkdir(p.good, 0o755)
	fd, err := unix.Open(p.good, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	dir, err := os.OpenRoot("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return
	}
	defer dir.Close()
	_ = dir.MkdirAll(filepath.Dir(rel), 0o755)
	write(dir.OpenFile(rel, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644))
}
