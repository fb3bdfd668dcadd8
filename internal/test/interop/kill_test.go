package interop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/volume"
)

// remembered is what responses acknowledged about a session.
type remembered struct {
	// roots are the possible root sets, cwd first: the one acknowledged last, and those requested
	// since without an answer.
	roots []string
	// words are the prompts of finished turns.
	words []string
	// deleting is set if a delete was requested and not answered.
	deleting bool
}

// memory is the model of a store: what it must contain.
type memory struct {
	mu       sync.Mutex
	sessions map[string]*remembered
	words    int
	// acknowledged is the number of requests that were answered.
	acknowledged atomic.Int64
}

// workload sends requests to one process. Each workload has its own sessions, so that its answers
// are ordered.
type workload struct {
	p      *program.Process
	model  *memory
	dirs   []string
	random *rand.Rand
	active map[string]bool
	mine   []string
}

// rootsText returns a root set as comparable text.
func rootsText(cwd string, additional []string) string {
	return strings.Join(append([]string{cwd}, additional...), "\n")
}

// request sends a request; ok is false when the process ended before it answered.
func (w *workload) request(method string, params, result any) (ok bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	m, err := w.p.Call(ctx, method, params)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return false, fmt.Errorf("%s: %w", method, err)
		}
		return false, nil // it was killed
	}
	if err := m.Decode(result); err != nil {
		return false, fmt.Errorf("%s: %w", method, err)
	}
	w.model.acknowledged.Add(1)
	return true, nil
}

// directories draws a root set. All sessions of a test share one cwd.
func (w *workload) directories() []string {
	more := slices.Clone(w.dirs[1:])
	w.random.Shuffle(len(more), func(i, j int) { more[i], more[j] = more[j], more[i] })
	return more[:w.random.IntN(len(more)+1)]
}

// run sends requests until the process is gone or a number of steps is reached.
func (w *workload) run(steps int) error {
	for range steps {
		do := w.create
		if len(w.mine) > 0 {
			switch w.random.IntN(10) {
			case 0:
			case 1:
				do = w.fork
			case 2, 3:
				do = w.open
			case 4:
				do = w.close
			case 5:
				do = w.list
			case 6:
				do = w.delete
			default:
				do = w.prompt
			}
		}
		if ok, err := do(); err != nil || !ok {
			return err
		}
	}
	return nil
}

// pick returns one of the latest sessions, so that one process uses it more than once.
func (w *workload) pick() string {
	late := w.mine[max(0, len(w.mine)-3):]
	return late[w.random.IntN(len(late))]
}

func (w *workload) rooted(more []string) map[string]any {
	return map[string]any{"cwd": w.dirs[0], "mcpServers": []any{}, "additionalDirectories": more}
}

func (w *workload) create() (bool, error) {
	more := w.directories()
	var made struct{ SessionID string }
	ok, err := w.request("session/new", w.rooted(more), &made)
	if ok {
		w.learn(made.SessionID, &remembered{roots: []string{rootsText(w.dirs[0], more)}})
	}
	return ok, err
}

func (w *workload) learn(id string, r *remembered) {
	w.model.mu.Lock()
	defer w.model.mu.Unlock()
	w.model.sessions[id], w.active[id] = r, true
	w.mine = append(w.mine, id)
}

func (w *workload) fork() (bool, error) {
	source, more := w.pick(), w.directories()
	params := w.rooted(more)
	params["sessionId"] = source
	var made struct{ SessionID string }
	ok, err := w.request("session/fork", params, &made)
	if ok {
		words := slices.Clone(w.model.of(source).words)
		w.learn(made.SessionID, &remembered{roots: []string{rootsText(w.dirs[0], more)}, words: words})
	}
	return ok, err
}

// of returns what is known about one of the caller's sessions.
func (m *memory) of(id string) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sessions[id]
}

// open loads or resumes with other roots.
func (w *workload) open() (bool, error) {
	id, more, method := w.pick(), w.directories(), "session/load"
	if w.random.IntN(2) == 0 {
		method = "session/resume"
	}
	params, r, roots := w.rooted(more), w.model.of(id), rootsText(w.dirs[0], more)
	params["sessionId"] = id
	r.roots = append(r.roots, roots)
	ok, err := w.request(method, params, &struct{}{})
	if ok {
		r.roots, w.active[id] = []string{roots}, true
	}
	return ok, err
}

func (w *workload) prompt() (bool, error) {
	id := w.pick()
	if !w.active[id] {
		return w.open()
	}
	w.model.mu.Lock()
	w.model.words++
	word := fmt.Sprintf("word%dx", w.model.words)
	w.model.mu.Unlock()
	var done struct{ StopReason string }
	ok, err := w.request("session/prompt", promptParams(id, word), &done)
	if ok {
		r := w.model.of(id)
		r.words = append(r.words, word)
	}
	return ok, err
}

func (w *workload) close() (bool, error) {
	id := w.pick()
	ok, err := w.request("session/close", sessionParams(id), &struct{}{})
	w.active[id] = w.active[id] && !ok
	return ok, err
}

func (w *workload) list() (bool, error) {
	return w.request("session/list", map[string]any{}, &struct{}{})
}

func (w *workload) delete() (bool, error) {
	id := w.pick()
	w.model.of(id).deleting = true
	ok, err := w.request("session/delete", sessionParams(id), &struct{}{})
	if ok {
		w.model.mu.Lock()
		delete(w.model.sessions, id)
		w.model.mu.Unlock()
		w.mine = slices.DeleteFunc(w.mine, func(other string) bool { return other == id })
	}
	return ok, err
}

// everything returns all pages of session/list.
func (a *agent) everything() map[string]listed {
	a.t.Helper()
	all, cursor := map[string]listed{}, ""
	for {
		params := map[string]any{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		var page struct {
			Sessions   []listed
			NextCursor string
		}
		a.call("session/list", params, &page)
		for _, s := range page.Sessions {
			all[s.SessionID] = s
		}
		if cursor = page.NextCursor; cursor == "" {
			return all
		}
	}
}

// check compares the store with the model and settles what unanswered requests left open. It asks
// a, and ends it.
func (m *memory) check(t *testing.T, a *agent, histories bool) {
	t.Helper()
	found := a.everything()
	for id, r := range m.sessions {
		s, ok := found[id]
		if !ok && len(r.words) == 0 && a.opens(id, r) {
			continue // lists leave out sessions that were not prompted for a minute
		}
		if !ok {
			require.True(t, r.deleting, "session %s was acknowledged and is lost", id)
			delete(m.sessions, id)
			continue
		}
		r.deleting = false
		roots := rootsText(s.Cwd, s.AdditionalDirectories)
		require.Contains(t, r.roots, roots, "the roots of %s", id)
		r.roots = []string{roots}
		if histories {
			a.requireWords(id, s, r.words)
			a.call("session/close", sessionParams(id), nil) // a connection may have a thousand open
		}
	}
	a.leave()
}

// report says what was acknowledged after every 50 kills, and after the last.
func (m *memory) report(t *testing.T, kills, last int) {
	t.Helper()
	if kills%50 == 0 || kills == last {
		require.NotZero(t, m.words)
		t.Logf("%d kills, %d requests acknowledged, %d prompts, %d sessions left",
			kills, m.acknowledged.Load(), m.words, len(m.sessions))
	}
}

// opens reports whether a session exists. It loads it with the roots that were requested last.
func (a *agent) opens(id string, r *remembered) bool {
	a.t.Helper()
	last := r.roots[len(r.roots)-1]
	dirs := strings.Split(last, "\n")
	m := a.try("session/load", map[string]any{
		"sessionId": id, "cwd": dirs[0], "mcpServers": []any{}, "additionalDirectories": dirs[1:],
	})
	if m.Error == nil {
		r.deleting, r.roots = false, []string{last}
		a.call("session/close", sessionParams(id), nil)
	}
	return m.Error == nil
}

// requireWords loads a session and finds its prompts in order.
func (a *agent) requireWords(id string, s listed, words []string) {
	a.t.Helper()
	from := a.Count()
	a.call("session/load", map[string]any{
		"sessionId": id, "cwd": s.Cwd, "mcpServers": []any{}, "additionalDirectories": s.AdditionalDirectories,
	}, nil)
	history := a.updates(from, id)
	for _, word := range words {
		_, rest, ok := strings.Cut(history, word)
		require.True(a.t, ok, "%s of session %s was acknowledged and is lost", word, id)
		history = rest
	}
}

// lanes runs several workloads on one process, which is killed after a while or left to finish.
func lanes(t *testing.T, p *program.Process, m *memory, dirs []string, seed uint64, known [][]string, steps int) func() [][]string {
	t.Helper()
	var running sync.WaitGroup
	mine := make([][]string, len(known))
	for i := range known {
		w := &workload{p: p, model: m, dirs: dirs, random: rand.New(rand.NewPCG(seed, uint64(i))), active: map[string]bool{}, mine: known[i]}
		running.Go(func() {
			if err := w.run(steps); err != nil {
				t.Error(err)
			}
			mine[i] = w.mine
		})
	}
	return func() [][]string {
		running.Wait()
		return mine
	}
}

// The program is killed at random points while three workloads are running, and started again.
// Everything it acknowledged must be there: after every kill each session and its roots, after
// every tenth the histories of finished turns.
//
// Clause S1.
func TestKills(t *testing.T) {
	t.Parallel()
	kills := volume.Of(20, 500)
	state := filepath.Join(t.TempDir(), "state")
	dirs := []string{folder(t), folder(t), folder(t), folder(t)}
	m := &memory{sessions: map[string]*remembered{}}
	random := rand.New(rand.NewPCG(5, 6))
	mine := make([][]string, 3)
	for kill := range kills {
		p, err := program.Start(program.Options{Command: []string{program.Path(), "--state-dir", state}})
		require.NoError(t, err)
		_, err = p.Call(within(t), "initialize", map[string]any{"protocolVersion": 1})
		require.NoError(t, err)
		finish := lanes(t, p, m, dirs, uint64(kill), mine, 1<<20)
		// Kill after a random number of answers and then a random moment.
		from, target := p.Count(), random.IntN(volume.Of(60, 200))
		_, _, _ = p.Await(within(t), from+target, func(rawrpc.Message) bool { return true })
		for range random.IntN(2000) {
			_ = random.Uint64()
		}
		require.NoError(t, p.Kill())
		_, err = p.Wait(within(t))
		require.NoError(t, err)
		mine = finish()
		if t.Failed() {
			return
		}
		m.check(t, startIn(t, state).initialize(), kill%10 == 9 || kill == kills-1)
		for i := range mine {
			mine[i] = slices.DeleteFunc(mine[i], func(id string) bool { return m.sessions[id] == nil })
		}
		m.report(t, kill+1, kills)
	}
}

// Eight processes share one store. No request fails, and nothing is lost.
//
// Clause S2.
func TestSharedStore(t *testing.T) {
	t.Parallel()
	const programs, steps = 8, 40
	state := filepath.Join(t.TempDir(), "state")
	dirs := []string{folder(t), folder(t), folder(t)}
	m := &memory{sessions: map[string]*remembered{}}
	var finish []func() [][]string
	var agents []*agent
	for i := range programs {
		a := startIn(t, state).initialize()
		agents = append(agents, a)
		finish = append(finish, lanes(t, a.Process, m, dirs, uint64(i), make([][]string, 1), steps))
	}
	for _, f := range finish {
		f()
	}
	for _, a := range agents {
		a.leave()
		require.NotContains(t, a.stderr.String(), "locked")
	}
	for id, r := range m.sessions {
		require.False(t, r.deleting, id)
		require.Len(t, r.roots, 1, id)
	}
	m.check(t, startIn(t, state).initialize(), true)
}
