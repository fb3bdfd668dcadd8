package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/workspace"
)

const (
	writers     = 8
	sharedLines = 4
	writerOf    = "TOOLS_TEST_WRITER"
)

// editsOfEach returns how many changes each of the writers makes: 10,000 in all with full volume.
func editsOfEach() int { return volume.Of(30, 10_000/writers) }

// sharedFile is the content of a file that all writers change: a line that all append to, a line of
// each writer, which only that one changes, and lines that any of them may change. It maps the name
// of a line to its value. Every change gives a line a value that no line had before.
type sharedFile map[string]string

// names returns the names of the lines in their order.
func (sharedFile) names() []string {
	names := []string{"all"}
	for n := range writers {
		names = append(names, fmt.Sprint("own ", n))
	}
	for n := range sharedLines {
		names = append(names, fmt.Sprint("shared ", n))
	}
	return names
}

func newSharedFile() sharedFile {
	f := sharedFile{}
	for _, name := range f.names() {
		f[name] = "start."
	}
	return f
}

func (f sharedFile) line(name string) string { return name + ": " + f[name] + "\n" }

func (f sharedFile) String() string {
	var b strings.Builder
	for _, name := range f.names() {
		b.WriteString(f.line(name))
	}
	return b.String()
}

func parseShared(text string) sharedFile {
	f := sharedFile{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		f[name] = value
	}
	return f
}

// madeChange is a change that a writer was told is made.
type madeChange struct {
	ID     string     // of the writer, and which of its changes
	Before sharedFile // what it relied on: the values of these lines
	After  sharedFile // the values that it gave to some of them
	Append bool       // it appended ID to the line of all
}

// writer makes changes in turn.
type writer struct {
	set     *Set
	n       int
	random  *rand.Rand
	own     string // the value of its own line
	made    []madeChange
	refused int
}

func newWriter(set *Set, n int) *writer {
	return &writer{set: set, n: n, own: "start.", random: rand.New(rand.NewPCG(7, uint64(n)))}
}

// run makes changes of all kinds. Those that conflict with no other change must succeed.
func (w *writer) run() error {
	for i := range editsOfEach() {
		id := fmt.Sprintf("%d/%d", w.n, i)
		var err error
		switch kind := w.random.IntN(10); {
		case kind < 5:
			err = w.editOwn(id)
		case kind < 7:
			err = w.append(id)
		case kind < 9:
			err = w.editShared(id)
		default:
			err = w.rewrite(id)
		}
		if err != nil {
			return fmt.Errorf("writer %d, change %d: %w", w.n, i, err)
		}
	}
	return nil
}

func (w *writer) call(tool string, a args) (string, error) {
	result, err := w.set.Call(context.Background(), tool, encode(a))
	return result.Text, err
}

func (w *writer) editOwn(id string) error {
	name := fmt.Sprint("own ", w.n)
	before, after := sharedFile{name: w.own}, sharedFile{name: id + "."}
	_, err := w.call("edit_file", args{"path": "f", "old_text": before.line(name),
		"new_text": after.line(name)})
	w.own = after[name]
	w.made = append(w.made, madeChange{ID: id, Before: before, After: after})
	return err
}

func (w *writer) append(id string) error {
	_, err := w.call("edit_file", args{"path": "f", "edits": []args{
		{"old_text": "all: ", "new_text": "all: " + id + ", "}}})
	w.made = append(w.made, madeChange{ID: id, Append: true})
	return err
}

// editShared changes two lines, which others may have changed since it read them.
func (w *writer) editShared(id string) error {
	now, _, err := w.read()
	if err != nil {
		return err
	}
	before, after, edits := sharedFile{}, sharedFile{}, []args{}
	for _, n := range w.random.Perm(sharedLines)[:2] {
		name := fmt.Sprint("shared ", n)
		before[name], after[name] = now[name], id+"."
		edits = append(edits, args{"old_text": before.line(name), "new_text": after.line(name)})
	}
	_, err = w.call("edit_file", args{"path": "f", "edits": edits})
	return w.conflicting(madeChange{ID: id, Before: before, After: after}, err)
}

// rewrite writes the whole file, if it is as it was read.
func (w *writer) rewrite(id string) error {
	now, version, err := w.read()
	if err != nil {
		return err
	}
	after, name := parseShared(now.String()), fmt.Sprint("shared ", w.random.IntN(sharedLines))
	after[name] = id + "."
	_, err = w.call("write_file", args{"path": "f", "content": after.String(), "if_version": version})
	delete(now, "all")
	return w.conflicting(madeChange{ID: id, Before: now, After: sharedFile{name: after[name]}}, err)
}

// conflicting records a change, which may also be refused because of another one.
func (w *writer) conflicting(c madeChange, err error) error {
	var changed *workspace.ChangedError
	var match *matchError
	if errors.As(err, &changed) || errors.As(err, &match) {
		w.refused++
		return nil
	}
	w.made = append(w.made, c)
	return err
}

func (w *writer) read() (now sharedFile, version string, err error) {
	text, err := w.call("read_file", args{"path": "f"})
	if err != nil {
		return nil, "", err
	}
	head, content, _ := strings.Cut(text, "\n")
	_, version, _ = strings.Cut(head, ", version ")
	version, _, _ = strings.Cut(version, ",")
	return parseShared(content), version, nil
}

// requireSomeOrder requires that a file is the result of making all these changes, each once, in
// some order in which those of one writer keep theirs.
func requireSomeOrder(t *testing.T, path string, made [][]madeChange) {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	state, waiting, appended := newSharedFile(), newRelying(made), ""
	for progress := true; progress; {
		progress = false
		for n := range made {
			for len(made[n]) > 0 && waiting.mayBeNext(made[n][0], state) {
				waiting.done(made[n][0])
				maps.Copy(state, made[n][0].After)
				if made[n][0].Append {
					appended += made[n][0].ID + ", "
				}
				made[n], progress = made[n][1:], true
			}
		}
	}
	for n := range made {
		if len(made[n]) > 0 {
			require.Failf(t, "no order is possible", "writer %d cannot make %+v with %v",
				n, made[n][0], state)
		}
	}
	final := parseShared(string(raw))
	// Every append is there once, and each writer has put a later one before.
	all := strings.Split(strings.TrimSuffix(final["all"], "start."), ", ")
	slices.Reverse(all)
	slices.SortStableFunc(all, func(a, b string) int { return strings.Compare(byWriter(a), byWriter(b)) })
	wanted := strings.Split(appended, ", ")
	slices.SortStableFunc(wanted,
		func(a, b string) int { return strings.Compare(byWriter(a), byWriter(b)) })
	require.Equal(t, wanted, all)
	final["all"] = state["all"]
	require.Equal(t, state, final)
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	for _, e := range entries {
		require.NotContains(t, e.Name(), ".acp-agent-")
	}
}

// byWriter returns the number of the writer in the id of a change.
func byWriter(id string) string {
	n, _, _ := strings.Cut(id, "/")
	return n
}

// relying counts, for each value of a line, the changes that rely on it and were not made yet.
type relying map[[2]string]int

func newRelying(made [][]madeChange) relying {
	r := relying{}
	for _, changes := range made {
		for _, c := range changes {
			for name, value := range c.Before {
				r[[2]string{name, value}]++
			}
		}
	}
	return r
}

// mayBeNext reports whether a change can be made in a state. One that gives a line another value
// comes after all others that rely on the value before, which never comes back.
func (r relying) mayBeNext(c madeChange, state sharedFile) bool {
	for name, value := range c.Before {
		_, changes := c.After[name]
		if state[name] != value || changes && r[[2]string{name, value}] > 1 {
			return false
		}
	}
	return true
}

func (r relying) done(c madeChange) {
	for name, value := range c.Before {
		r[[2]string{name, value}]--
	}
}

func permitAnything(context.Context, Change) error { return nil }

// Clause E1.
func TestEditsAtOnceAreAllMade(t *testing.T) {
	for name, o := range map[string]Options{
		"on disk": {}, "in an editor": {Editor: &lockedZed{zed: zed{unsaved: map[string]string{}}}},
	} {
		t.Run("E1/"+name, func(t *testing.T) {
			dir := plant(t, fileTree{"f": newSharedFile().String()})
			o.Permit = permitAnything
			set := New(openRoots(t, dir), o)
			all, made := make([]*writer, writers), make([][]madeChange, writers)
			results := make(chan error, writers)
			for n := range all {
				all[n] = newWriter(set, n)
				go func() { results <- all[n].run() }()
			}
			for range all {
				require.NoError(t, <-results)
			}
			for n, w := range all {
				made[n] = w.made
			}
			requireSomeOrder(t, filepath.Join(dir, "f"), made)
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
		writeAsProcess(t, n)
		return
	}
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be replaced, so there are no locks between processes")
	}
	for name, dir := range map[string]string{"disk": plant(t, nil), "memory": inMemory(t)} {
		t.Run("E1/"+name, func(t *testing.T) {
			path := filepath.Join(dir, "f")
			require.NoError(t, os.WriteFile(path, []byte(newSharedFile().String()), 0o600))
			var all sync.WaitGroup
			results, made := t.TempDir(), make([][]madeChange, writers)
			outputs, errs := make([]string, writers), make([]error, writers)
			for n := range writers {
				all.Go(func() {
					c := exec.CommandContext(t.Context(), os.Args[0],
						"-test.run=^TestEditsOfProcessesAtOnceAreAllMade$", "-test.count=1")
					result := filepath.Join(results, strconv.Itoa(n))
					c.Dir, c.Env = dir, append(os.Environ(), writerOf+"="+result)
					output, err := c.CombinedOutput()
					outputs[n], errs[n] = string(output), err
				})
			}
			all.Wait()
			for n, err := range errs {
				require.NoError(t, err, outputs[n])
				raw, err := os.ReadFile(filepath.Join(results, strconv.Itoa(n)))
				require.NoError(t, err)
				require.NoError(t, json.Unmarshal(raw, &made[n]))
			}
			requireSomeOrder(t, path, made)
		})
	}
}

// writeAsProcess is the writer whose number is the last name of a path, where it reports what it
// has changed.
func writeAsProcess(t *testing.T, result string) {
	n, err := strconv.Atoi(filepath.Base(result))
	require.NoError(t, err)
	wd, err := os.Getwd()
	require.NoError(t, err)
	w := newWriter(New(openRoots(t, wd), Options{Permit: permitAnything}), n)
	require.NoError(t, w.run())
	require.NoError(t, os.WriteFile(result, encode(w.made), 0o600))
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
	no := errors.New("no")
	for name, c := range map[string]struct {
		meanwhile string
		asked     int
		want      string // "" if the edit is refused
	}{
		"a refusal":         {"1 two\nthree\n", 2, ""},
		"another line":      {"one two\nnew\n", 1, "one 2\nnew\n"},
		"the line":          {"1 two\nthree\n", 2, "1 2\nthree\n"},
		"the text":          {"one 2\nthree\n", 1, ""},
		"what will be lost": {"one two\nnew\n", 2, "one 2\nnew\n"},
	} {
		t.Run(name, func(t *testing.T) {
			app, h := servePlanted(t, fileTree{"f": "one two\nthree\n"})
			h.decide = func(Change) error {
				if len(h.asked) > 1 && name == "a refusal" {
					return no
				}
				if len(h.asked) > 1 {
					return nil
				}
				f := filepath.Join(app, "f")
				if name == "what will be lost" {
					require.NoError(t, os.Link(f, f+" too"))
				}
				return os.WriteFile(f, []byte(c.meanwhile), 0o600)
			}
			a := args{"path": "f", "old_text": "two", "new_text": "2"}
			if c.want == "" {
				err, changed := h.refused("edit_file", a), new(*workspace.ChangedError)
				require.True(t, errors.Is(err, no) || errors.As(err, changed), err)
				require.Equal(t, fileTree{"f": c.meanwhile}, planted(t, app))
			} else {
				made := h.said("edit_file", a)
				require.Equal(t, c.want, planted(t, app)["f"])
				require.Contains(t, made, ", version "+versionOf(c.want)+"\n")
			}
			require.Len(t, h.asked, c.asked)
		})
	}
}
