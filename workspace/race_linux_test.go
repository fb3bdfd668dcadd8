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

// swapping exchanges two names over and over until stop is called.
func swapping(t *testing.T, one, other string) (stop func()) {
	exchange := func() error {
		return unix.Renameat2(unix.AT_FDCWD, one, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
	}
	if err := exchange(); errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		t.Skip("this file system cannot exchange names:", err)
	}
	var stopped atomic.Bool
	done := make(chan error)
	go func() {
		for !stopped.Load() {
			if err := exchange(); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	return func() {
		stopped.Store(true)
		require.NoError(t, <-done)
	}
}

var raceReads = volume.Of(2_000, 10_000)

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
func TestReadWhileSwapping(t *testing.T) {
	for name, c := range map[string]struct {
		swap [2]string // below the grounds
		path string
	}{
		"directory with a link out":             {[2]string{"A/d", "A/l"}, "d/e/f"},
		"directory with a relative link out":    {[2]string{"A/d", "A/r"}, "d/e/f"},
		"directory in the middle":               {[2]string{"A/d/e", "A/d/l"}, "d/e/f"},
		"file with a link out":                  {[2]string{"A/d/e/f", "A/d/e/l"}, "d/e/f"},
		"behind a link to another root":         {[2]string{"A/d", "A/l"}, "../B/across/e/f"},
		"a root itself":                         {[2]string{"A", "l"}, "d/e/f"},
		"a link in with a link out":             {[2]string{"A/in", "A/l"}, "in/e/f"},
		"a link across with a link out":         {[2]string{"B/across", "B/l"}, "../B/across/e/f"},
		"a file with a fifo":                    {[2]string{"A/d/e/f", "A/d/e/fifo"}, "d/e/f"},
		"a directory with a fifo":               {[2]string{"A/d/e", "A/d/e-fifo"}, "d/e/f"},
		"a directory with a denied one's link":  {[2]string{"A/d", "A/to-denied"}, "d/e/f"},
		"a directory with a denied one's alias": {[2]string{"A/d", "A/abs-to-denied"}, "d/e/f"},
		"behind a link, a directory with one": {[2]string{"A/d/e", "A/d/to-denied"},
			"../B/across/e/f"},
		"behind a link, a file with one": {[2]string{"A/d/e/f", "A/d/e/to-denied"},
			"../B/across/e/f"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGrounds(t)
			write(t, filepath.Join(g.out, "e/f"), "SECRET")
			write(t, filepath.Join(g.out, "f"), "SECRET")
			write(t, filepath.Join(g.out, "d/e/f"), "SECRET")
			write(t, filepath.Join(g.a, "denied/e/f"), "SECRET")
			write(t, filepath.Join(g.a, "d/denied/f"), "SECRET")
			write(t, filepath.Join(g.a, "d/e/denied/f"), "SECRET")
			link(t, "denied", filepath.Join(g.a, "d/to-denied"))
			link(t, "denied/f", filepath.Join(g.a, "d/e/to-denied"))
			for _, path := range []string{"A/l", "A/d/l", "B/l", "l"} {
				link(t, g.out, filepath.Join(g.dir, path))
			}
			link(t, filepath.Join(g.out, "secret"), filepath.Join(g.a, "d/e/l"))
			link(t, "../out", filepath.Join(g.a, "r"))
			link(t, "d", filepath.Join(g.a, "in"))
			link(t, "denied", filepath.Join(g.a, "to-denied"))
			link(t, filepath.Join(g.a, "denied"), filepath.Join(g.a, "abs-to-denied"))
			link(t, filepath.Join(g.a, "d"), filepath.Join(g.b, "across"))
			require.NoError(t, unix.Mkfifo(filepath.Join(g.a, "d/e/fifo"), 0o644))
			require.NoError(t, unix.Mkfifo(filepath.Join(g.a, "d/e-fifo"), 0o644))
			ws := openWith(t, workspace.Options{Policy: workspace.Policy{
				Deny: dirs(t, filepath.Join(g.a, "denied"), filepath.Join(g.a, "d/denied"),
					filepath.Join(g.a, "d/e/denied")),
			}}, g.a, g.b)

			stop := swapping(t, filepath.Join(g.dir, c.swap[0]), filepath.Join(g.dir, c.swap[1]))
			defer stop()
			reads := raceReads / 10
			if name == "directory with a link out" {
				reads = raceReads
			}
			good := 0
			for i := range reads {
				text, err := raced(ws, c.path, i)
				if err != nil {
					require.True(t, expected(err), "%v", err)
					continue
				}
				require.Equal(t, "A/d/e/f", text)
				good++
			}
			t.Logf("%d of %d reads succeeded", good, reads)
		})
	}
}

// raced reads path in one of several ways.
func raced(ws *workspace.Workspace, path string, i int) (string, error) {
	if i%4 != 0 {
		text, _, err := read(ws, path)
		return text, err
	}
	d, err := ws.OpenDir(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	defer d.Close()
	f, err := d.Open(filepath.Base(path))
	if err != nil {
		return "", err
	}
	defer f.Close()
	text := make([]byte, 16)
	n, err := f.ReadAt(text, 0)
	if n > 0 {
		err = nil
	}
	return string(text[:n]), err
}

// Clause C5.
func TestReadReplacedFile(t *testing.T) {
	g := newGrounds(t)
	link(t, filepath.Join(g.a, "d"), filepath.Join(g.b, "across"))
	write(t, filepath.Join(g.a, "d/e/g"), "A/d/e/f")
	stop := swapping(t, filepath.Join(g.a, "d/e/f"), filepath.Join(g.a, "d/e/g"))
	defer stop()
	for i := range 2000 {
		text, err := raced(g.ws, "../B/across/e/f", i)
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
	{"behind a link from another root", "A/d", "A/l", "$OUT",
		[]string{"../B/across/e/f", "../B/across/e", "../B/across/new", "../B/across/"}},
	{"directory with a denied one's link", "A/d", "A/l", "denied", dirPaths},
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
	p := pair{good: filepath.Join(g.dir, c.good), bad: filepath.Join(g.dir, c.bad),
		is: strings.ReplaceAll(c.is, "$OUT", g.out)}
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

// newGroundsInMemory is newGrounds in memory if possible.
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

// says reports whether err is a documented error.
func says(err error) bool {
	return expected(err) || as[*workspace.ChangedError](err) ||
		as[*workspace.ProtectedError](err) ||
		as[*workspace.NotTextError](err) || as[*workspace.ReplacedError](err)
}

// pair is two names that are swapped, one good and one bad. Operations may damage it.
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

// mend creates what is missing of the pair.
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

// A race ends after this many tries, or this many successful writes, which wait for the disk.
var (
	writeTries = volume.Of(1_000, 3_000)
	raceWrites = volume.Of(20, 60)
)

// Clause C5.
func TestWriteWhileSwapping(t *testing.T) {
	for name, c := range map[string]struct {
		swap [2]string // below the grounds
		dir  string
	}{
		"directory with a link out":            {[2]string{"A/d", "A/l"}, "d/e"},
		"the last directory with a link out":   {[2]string{"A/d/e", "A/d/l"}, "d/e"},
		"file with a link out":                 {[2]string{"A/d/e/f", "A/d/e/l"}, "d/e"},
		"file with a dangling link out":        {[2]string{"A/d/e/f", "A/d/e/dangling"}, "d/e"},
		"behind a link to another root":        {[2]string{"A/d", "A/l"}, "../B/across/e"},
		"a root itself":                        {[2]string{"A", "l"}, "d/e"},
		"a link in with a link out":            {[2]string{"A/in", "A/l"}, "in/e"},
		"a link across with a link out":        {[2]string{"B/across", "B/l"}, "../B/across/e"},
		"a file with a fifo":                   {[2]string{"A/d/e/f", "A/d/e/fifo"}, "d/e"},
		"a directory with a denied one's link": {[2]string{"A/d", "A/to-denied"}, "d/e"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGrounds(t)
			for _, dir := range []string{g.out, filepath.Join(g.out, "e"),
				filepath.Join(g.out, "d/e"), filepath.Join(g.a, "denied/e")} {
				write(t, filepath.Join(dir, "f"), "SECRET")
			}
			for _, path := range []string{"A/l", "A/d/l", "B/l", "l"} {
				link(t, g.out, filepath.Join(g.dir, path))
			}
			link(t, filepath.Join(g.out, "secret"), filepath.Join(g.a, "d/e/l"))
			link(t, filepath.Join(g.out, "new"), filepath.Join(g.a, "d/e/dangling"))
			link(t, "d", filepath.Join(g.a, "in"))
			link(t, "denied", filepath.Join(g.a, "to-denied"))
			link(t, filepath.Join(g.a, "d"), filepath.Join(g.b, "across"))
			require.NoError(t, unix.Mkfifo(filepath.Join(g.a, "d/e/fifo"), 0o644))
			ws := openWith(t,
				workspace.Options{Policy: workspace.Policy{Deny: dirs(t,
					filepath.Join(g.a, "denied"))}}, g.a, g.b)
			out, denied := picture(t, g.out), picture(t, filepath.Join(g.a, "denied"))

			stop := swapping(t, filepath.Join(g.dir, c.swap[0]), filepath.Join(g.dir, c.swap[1]))
			good, tries := 0, 0
			for ; tries < writeTries && good < raceWrites; tries++ {
				path := c.dir + "/f"
				if tries%2 == 1 {
					path = c.dir + "/new" + strconv.Itoa(tries)
				}
				_, err := put(ws, path, "WRITTEN")
				require.True(t, err == nil || expected(err), "%v", err)
				if err == nil {
					good++
				}
			}
			stop()
			t.Logf("%d of %d writes succeeded", good, tries)
			require.Equal(t, out, picture(t, g.out))
			if _, err := os.Lstat(filepath.Join(g.a, "denied/e")); errors.Is(err, os.ErrNotExist) {
				return // the root stands under its other name
			}
			require.Equal(t, denied, picture(t, filepath.Join(g.a, "denied")))
			for path := range picture(t, filepath.Join(g.b, "d")) {
				require.NotContains(t, path, ".acp-agent-")
			}
		})
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
