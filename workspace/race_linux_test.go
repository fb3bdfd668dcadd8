package workspace_test

import (
	"context"
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

	"github.com/acp-agent/acp-agent/internal/test/containmenttest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/workspace"
)

// expected reports whether err is one that a race may cause.
func expected(err error) bool {
	var (
		outside *workspace.OutsideError
		special *workspace.SpecialFileError
		denied  *workspace.DeniedError
		path    *fs.PathError
	)
	return errors.As(err, &outside) || errors.As(err, &special) || errors.As(err, &denied) ||
		errors.As(err, &path)
}

// Clause C5.
func TestReadReplacedFile(t *testing.T) {
	g := newGrounds(t)
	link(t, filepath.Join(g.a, "d"), filepath.Join(g.b, "across"))
	write(t, filepath.Join(g.a, "d/e/g"), "A/d/e/f")
	stop := pair{filepath.Join(g.a, "d/e/f"), filepath.Join(g.a, "d/e/g"), "", ""}.swapping(t, nil)
	defer stop()
	r := racer{ws: g.ws}
	for i := range 2000 {
		read := reading("read").do
		if i%4 == 0 {
			read = (*racer).readByHandle
		}
		text, err := read(&r, "../B/across/e/f")
		require.NoError(t, err)
		require.Equal(t, "A/d/e/f", text)
	}
}

// racers is how many goroutines perform them, in addition to the one that swaps.
const racers = 3

// While names are swapped, no operation reads, writes, creates or removes anything outside or
// hangs, and every error is a documented one.
//
// Clause C5.
func TestOperationsWhileSwapping(t *testing.T) {
	total := volume.Of(10_000, 1_000_000)
	for _, c := range raceCases {
		t.Run(c.name, func(t *testing.T) {
			c.play(t, total/len(raceCases)+1)
		})
	}
}

// raceCase is a pair of names that are swapped, one good and one bad.
type raceCase struct {
	name      string
	good, bad string   // below the grounds
	was       string   // the target of good if that is a link
	is        string   // what bad is: "fifo", or the target of a link
	paths     []string // where things are done
}

var (
	dirPaths    = []string{"d", "d/e", "d/e/f", "d/e/f", "d/new", "d/e/new", "d/e/../new", "d/"}
	filePaths   = []string{"d/e/f", "d/e/f", "d/e/new", "d/e"}
	acrossPaths = []string{"../B/across/e/f", "../B/across/e", "../B/across/new", "../B/across/"}
)

var raceCases = []raceCase{
	{"directory with a link out", "A/d", "A/l", "", "$OUT", dirPaths},
	{"directory with a relative link out", "A/d", "A/l", "", "../out", dirPaths},
	{"the last directory with a link out", "A/d/e", "A/d/l", "", "$OUT/d", dirPaths[1:]},
	{"file with a link out", "A/d/e/f", "A/d/e/l", "", "$OUT/secret", filePaths},
	{"file with a dangling link out", "A/d/e/f", "A/d/e/l", "", "$OUT/new", filePaths},
	{"file with a fifo", "A/d/e/f", "A/d/e/fifo", "", "fifo", filePaths},
	{"directory with a fifo", "A/d/e", "A/d/fifo", "", "fifo", dirPaths[1:]},
	{"a root itself", "A", "l", "", "$OUT", dirPaths},
	{"a link in with a link out", "A/in", "A/l", "d", "$OUT",
		[]string{"in/e/f", "in/e/f", "in/e/new", "in/new", "in/e"}},
	{"behind a link from another root", "A/d", "A/l", "", "$OUT", acrossPaths},
	{"a link across with a link out", "B/across", "B/l", "../A/d", "$OUT", acrossPaths},
	{"directory with a denied one's link", "A/d", "A/l", "", "denied", dirPaths},
	{"directory with a denied one's alias", "A/d", "A/l", "", "$DENIED", dirPaths},
	{"behind a link, a directory with one", "A/d/e", "A/d/l", "", "../denied", acrossPaths[:2]},
	{"behind a link, a file with one", "A/d/e/f", "A/d/e/l", "", "../../denied/f", acrossPaths[:2]},
}

func (c raceCase) play(t *testing.T, operations int) {
	g := newGroundsInMemory(t)
	for _, dir := range []string{g.out, filepath.Join(g.out, "d/e"), filepath.Join(g.out, "e"),
		filepath.Join(g.a, "denied/e")} {
		write(t, filepath.Join(dir, "f"), "SECRET")
	}
	link(t, filepath.Join(g.a, "d"), filepath.Join(g.b, "across"))
	ws := openWith(t,
		workspace.Options{Policy: workspace.Policy{Deny: dirs(t, filepath.Join(g.a, "denied"))}},
		g.a, g.b)
	p := pair{filepath.Join(g.dir, c.good), filepath.Join(g.dir, c.bad), c.was,
		strings.NewReplacer("$OUT", g.out, "$DENIED", filepath.Join(g.a, "denied")).Replace(c.is)}
	before := snapshot(t, g.out, nil)
	denied := snapshot(t, filepath.Join(g.a, "denied"), nil)
	p.mend()

	stop := p.swapping(t, p.mend)
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
	if strings.Contains(strings.ToLower(c.is), "denied") {
		require.Equal(t, denied, snapshot(t, filepath.Join(g.a, "denied"), nil))
	}
}

// newGroundsInMemory is newGrounds in memory if possible.
func newGroundsInMemory(t *testing.T) grounds {
	t.Setenv("TMPDIR", newMemory(t))
	return newGrounds(t)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// says reports whether err is a documented error.
func says(err error) bool {
	return expected(err) || as[*workspace.ChangedError](err) ||
		as[*workspace.ProtectedError](err) ||
		as[*workspace.NotTextError](err) || as[*workspace.ReplacedError](err)
}

// pair is two names that are swapped, one good and one bad. Operations may damage it.
type pair struct{ good, bad, was, is string }

// swapping exchanges the names over and over until stop is called.
func (p pair) swapping(t *testing.T, mend func()) (stop func()) {
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
			if err := exchange(); mend != nil && (err != nil || i%8 == 0) {
				mend()
			}
		}
	}()
	return func() {
		stopped.Store(true)
		<-done
	}
}

// mend creates what is missing of the pair.
func (p pair) mend() {
	_, oneErr := os.Lstat(p.good)
	_, otherErr := os.Lstat(p.bad)
	switch {
	case oneErr == nil && otherErr == nil && p.isBad(p.good) != p.isBad(p.bad):
		return
	case p.isBad(p.good) || otherErr == nil && !p.isBad(p.bad):
		p.good, p.bad = p.bad, p.good // it is the other way round just now
	}
	if !p.isBad(p.bad) {
		_ = os.RemoveAll(p.bad)
		if p.is == "fifo" {
			_ = unix.Mkfifo(p.bad, 0o644)
		} else {
			_ = os.Symlink(p.is, p.bad)
		}
	}
	if p.isBad(p.good) {
		_ = os.Remove(p.good)
	}
	p.fill()
}

// isBad reports whether a path is what the bad name is.
func (p pair) isBad(path string) bool {
	info, err := os.Lstat(path)
	target, _ := os.Readlink(path)
	return err == nil && (info.Mode()&fs.ModeNamedPipe != 0 || target == p.is)
}

// fill creates the good name: A, A/d, A/d/e or A/d/e/f, with everything in it.
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
	case p.was != "":
		_ = os.Symlink(p.was, p.good)
		return
	case name == "l" && filepath.Base(p.bad) != "A", name == "fifo":
		name = filepath.Base(p.bad)
	}
	rel := below[name]
	if rel == "" {
		write(os.OpenFile(p.good, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644))
		return
	}
	// The link may come back at any moment: do not create anything through it.
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

// racer performs operations. It has a name of its own to move things to and from.
type racer struct {
	ws      *workspace.Workspace
	scratch string
}

type raceOperation struct {
	name string
	do   func(r *racer, path string) (string, error)
}

// reading returns an operation of the corpus.
func reading(name string) raceOperation {
	for _, op := range operations {
		if op.name == name {
			return raceOperation{name, func(r *racer, path string) (string,
				error) {
				return op.do(r.ws, path)
			}}
		}
	}
	panic("no operation " + name)
}

var raceable = []raceOperation{
	reading("read"), reading("text"), reading("list"), reading("search"), reading("stat"), reading("lstat"), reading("readlink"),
	reading("fs-read"), reading("write"), reading("write-new"), reading("fs-create"), reading("mkdir"), reading("remove"),
	{"read by handle", (*racer).readByHandle},
	{"write a version", (*racer).writeVersion},
	{"rename from", (*racer).moveFrom},
	{"rename to", (*racer).moveTo},
}

func (r *racer) readByHandle(path string) (string, error) {
	d, err := r.ws.OpenDir(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	defer d.Close()
	f, err := d.Open(filepath.Base(path))
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	return string(text), err
}

// writeVersion replaces the file at path if it has the content that it has at first.
func (r *racer) writeVersion(path string) (string, error) {
	const content = "A/d/e/f"
	_, err := r.ws.WriteFile(context.Background(), path, []byte(content),
		workspace.WriteOptions{IfUnchanged: workspace.VersionOf([]byte(content))})
	return "", err
}

// moveFrom moves what is at path to a place of its own, and reads it there.
func (r *racer) moveFrom(path string) (string, error) {
	r.clear()
	if err := r.ws.Rename(path, r.scratch, workspace.Ref{}, workspace.Ref{}); err != nil {
		return "", err
	}
	text, _, _ := read(r.ws, r.scratch)
	return text, nil
}

// moveTo moves a file, or a directory with one, to path.
func (r *racer) moveTo(path string) (string, error) {
	r.clear()
	name := r.scratch
	if filepath.Base(path) != "f" {
		name = filepath.Join(r.scratch, "f")
		if err := r.ws.Mkdir(r.scratch, workspace.Ref{}); err != nil {
			return "", err
		}
	}
	if _, err := put(r.ws, name, "MOVED"); err != nil {
		return "", err
	}
	err := r.ws.Rename(r.scratch, path, workspace.Ref{}, workspace.Ref{})
	return "", err
}

// clear empties the name of the racer, or gives it a new one.
func (r *racer) clear() {
	if _, err := r.ws.Lstat(r.scratch); err == nil {
		_ = r.ws.Remove(r.scratch, workspace.RemoveOptions{})
		r.scratch = fresh("scratch")
	}
}

// racedMounts is how many operations run while something is mounted and unmounted.
var racedMounts = volume.Of(1_000, 3_000)

// A mount that appears between the look at a name and its use is not reached.
//
// Clause C7.
func TestOperationsWhileMounting(t *testing.T) {
	if !containmenttest.InNamespace(t) {
		return
	}
	for _, over := range []string{"d", "d/e", "d/e/f"} {
		t.Run("C7/"+over, func(t *testing.T) {
			g := newGroundsInMemory(t)
			for _, path := range []string{"f", "e/f", "d/e/f"} {
				write(t, filepath.Join(g.out, path), "SECRET")
			}
			source := map[string]string{"d": g.out, "d/e": filepath.Join(g.out, "e"),
				"d/e/f": filepath.Join(g.out, "secret")}[over]
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

// makeAgain creates what the operations remove.
func makeAgain(ws *workspace.Workspace) {
	_ = ws.Mkdir("d", workspace.Ref{})
	_ = ws.Mkdir("d/e", workspace.Ref{})
	_, _ = put(ws, "d/e/f", "A/d/e/f")
}

// mounting mounts and unmounts source over a name until stop is called.
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

// unmountBelow unmounts everything below dir. A mount moves with the directory above it.
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

// Clause C5.
func TestCreateOnlyOnce(t *testing.T) {
	g := newGrounds(t)
	for i := range 100 {
		path := "new" + strconv.Itoa(i)
		made := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := g.ws.WriteFile(t.Context(), path, []byte("x"),
					workspace.WriteOptions{Create: workspace.CreateOnly})
				made <- err
			}()
		}
		one, two := <-made, <-made
		if one == nil {
			one, two = two, one
		}
		require.NoError(t, two)
		require.ErrorIs(t, one, os.ErrExist, "exactly one of them has made it")
	}
}
