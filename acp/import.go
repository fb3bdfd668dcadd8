package acp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/protocol"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// maxListedMeta is the size up to which _meta of the backend's sessions is kept.
const maxListedMeta = 16 << 10

const (
	// maxImports is the most working directories that get an import of their own. A list for a
	// further one is answered after an import of all sessions.
	maxImports = 16
	// runningImports is the number of imports that ask the backend at the same time.
	runningImports = 2
)

// imports copies the sessions that the backend itself keeps (see [backend.Foreign]) into the store,
// so that lists have one source. A session/list begins an import of the sessions that match its
// cwd, and is answered from the store.
type imports struct {
	mu      sync.Mutex
	runs    map[workspace.Dir]*importRun // the latest for each cwd, the zero Dir for all
	running chan struct{}                // has a token for each one that asks
}

// importRun imports all sessions, or those with a certain working directory.
type importRun struct {
	agent   *agent
	foreign backend.Foreign
	begun   time.Time
	ended   chan struct{} // closed at the end
	// complete says that the backend has no other such sessions. It may be read once the import has
	// ended.
	complete bool

	mu      sync.Mutex              // held while sessions are stored
	waiting []sessionstore.Imported // not stored yet
	err     error                   // of the store
}

// foreign returns the backend as a [backend.Foreign], or nil if it keeps no sessions itself. For a
// client without the grant for these, only those on record exist.
func (a *agent) foreign() backend.Foreign {
	f, _ := a.backend.(backend.Foreign)
	if f != nil && !a.grants.Sessions {
		return onRecord{f}
	}
	return f
}

// importer returns the part of the store for sessions that the backend keeps itself. It is nil for
// a store that has only sessions that were made here: then the backend's own are not listed, and
// cannot be opened.
func (a *agent) importer() sessionstore.Importer {
	i, _ := sessionstore.As[sessionstore.Importer](a.options.Store)
	return i
}

// stateKey returns the backend's own id of the session that saved state, or "".
func (a *agent) stateKey(state []byte) string {
	if f := a.foreign(); f != nil && len(state) > 0 {
		return f.Key(state)
	}
	return ""
}

// refreshImports imports the backend's sessions with the working directory cwd, or all if it is the
// zero Dir, in the background, unless that was done just now. It waits a moment, because a backend
// that is already running is fast. It returns nil if there is nothing to import.
func (a *agent) refreshImports(ctx context.Context, cwd workspace.Dir) *importRun {
	f := a.foreign()
	if f == nil || a.importer() == nil {
		return nil
	}
	run := a.imports.begin(a, f, cwd)
	run.wait(ctx, time.Now().Add(a.options.tuning.ImportGrace))
	return run
}

// wait waits until the import has ended, at most until a time. It reports whether it has.
func (r *importRun) wait(ctx context.Context, until time.Time) bool {
	select {
	case <-r.ended:
		return true
	case <-time.After(time.Until(until)):
	case <-ctx.Done():
	}
	return false
}

// waitForPage waits until the import has ended. If that takes too long, it stores the sessions
// received so far, up to a page, and the import continues in the background.
func (r *importRun) waitForPage(ctx context.Context, first bool) {
	t := r.agent.options.tuning
	if !first {
		r.wait(ctx, time.Now().Add(t.ImportTimeout))
		return
	}
	if r.wait(ctx, r.begun.Add(t.ImportWait)) || ctx.Err() != nil ||
		!r.mu.TryLock() { // it is being stored
		return
	}
	defer r.mu.Unlock()
	r.storeNewest(r.agent.base, sessionstore.PageSize+1)
}

// isRefresh reports whether an earlier import has stored s, and so all others that existed then.
func (r *importRun) isRefresh(s sessionstore.Session) bool {
	return !s.Listed.IsZero() && s.Listed.Before(r.begun.Truncate(time.Millisecond))
}

// begin starts an import if one is due, and returns the latest one of cwd. A complete import of all
// sessions serves every cwd.
func (i *imports) begin(a *agent, f backend.Foreign, cwd workspace.Dir) *importRun {
	i.mu.Lock()
	defer i.mu.Unlock()
	for of, run := range i.runs {
		if run.over() && time.Since(run.begun) >= a.options.tuning.ImportEvery {
			delete(i.runs, of)
		}
	}
	if all := i.runs[workspace.Dir{}]; all != nil && all.over() && all.complete {
		return all
	}
	if i.runs[cwd] == nil && len(i.runs) >= maxImports {
		cwd = workspace.Dir{}
	}
	if run := i.runs[cwd]; run != nil {
		return run
	}
	run := &importRun{agent: a, foreign: f, begun: time.Now(), ended: make(chan struct{})}
	if i.runs == nil {
		i.runs = make(map[workspace.Dir]*importRun)
		i.running = make(chan struct{}, runningImports)
	}
	i.runs[cwd] = run
	a.running.Go(func() {
		defer close(run.ended)
		select {
		case i.running <- struct{}{}:
			defer func() { <-i.running }()
		case <-a.base.Done():
			return
		}
		_ = a.guard("listing sessions", func() error {
			run.importFrom(a.base, cwd)
			return nil
		})
	})
	return run
}

// latest returns the latest import of cwd, or nil.
func (i *imports) latest(cwd workspace.Dir) *importRun {
	i.mu.Lock()
	defer i.mu.Unlock()
	if run := i.runs[cwd]; run != nil {
		return run
	}
	return i.runs[workspace.Dir{}]
}

// wait waits for running imports, or until ctx ends.
func (i *imports) wait(ctx context.Context) {
	i.mu.Lock()
	runs := slices.Collect(maps.Values(i.runs))
	i.mu.Unlock()
	for _, run := range runs {
		select {
		case <-run.ended:
		case <-ctx.Done():
		}
	}
}

func (r *importRun) over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// importFrom imports the sessions whose working directory is cwd, as spelled or as its real path,
// or all sessions if cwd is the zero Dir. It removes those that the backend no longer has.
func (r *importRun) importFrom(ctx context.Context, cwd workspace.Dir) {
	a := r.agent
	asking, cancel := context.WithTimeout(ctx, a.options.tuning.ImportTimeout)
	defer cancel()
	reals := a.newRealPaths()
	l := sessionstore.Listed{Asked: time.Now(), StateKeys: make(map[string]bool)}
	asked := []*workspace.Dir{nil}
	if !cwd.IsZero() {
		l.Cwds = slices.Compact([]workspace.Dir{cwd, reals.of(asking, cwd)})
		asked = asked[:0]
		for i := range l.Cwds {
			asked = append(asked, &l.Cwds[i])
		}
	}
	complete := true
	for _, dir := range asked {
		complete = r.collect(asking, dir, reals, l.StateKeys) && complete
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.storeNewest(ctx, len(r.waiting))
	if r.complete = complete && r.err == nil; !r.complete || ctx.Err() != nil {
		return
	}
	n, err := a.importer().Retain(ctx, a.init.owner(), l)
	switch {
	case err != nil:
		a.log.Warn("cannot remove sessions that the agent no longer has", "error", err)
	case n > 0:
		a.log.Debug("removed sessions that the agent no longer has", "sessions", n)
	}
}

// collect collects the sessions that the backend yields, up to the limit, and their names. It skips
// those that cannot be stored. It reports whether the backend has no others.
func (r *importRun) collect(
	ctx context.Context, cwd *workspace.Dir, reals *realPaths, names map[string]bool,
) (complete bool) {
	a := r.agent
	seen := 0
	for s, err := range r.foreign.Sessions(ctx, cwd) {
		if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, backend.ErrPartial) {
			return false
		}
		if err != nil {
			if a.base.Err() == nil { // the connection has not ended
				a.log.Warn("cannot list the agent's sessions", "error", err)
			}
			return false
		}
		seen++
		if seen > a.options.tuning.ImportMax {
			a.log.Warn("the agent has too many sessions: the rest is not listed",
				"limit", a.options.tuning.ImportMax)
			return false
		}
		names[r.foreign.Key(s.State)] = true
		n, err := convertForeign(ctx, r.foreign, s, reals)
		if err != nil {
			a.log.Warn("cannot import a session of the agent", "error", err)
			continue
		}
		r.mu.Lock()
		r.waiting = append(r.waiting, n)
		r.mu.Unlock()
	}
	return true
}

// storeNewest stores up to n of the collected sessions, most recently active first, because a list
// may be read at the same time. The caller holds the lock.
func (r *importRun) storeNewest(ctx context.Context, n int) {
	n = min(n, len(r.waiting))
	if n == 0 || r.err != nil {
		return
	}
	slices.SortStableFunc(r.waiting, func(x, y sessionstore.Imported) int {
		return y.Updated.Compare(x.Updated)
	})
	a := r.agent
	var added int
	added, r.err = a.importer().Import(ctx, a.init.owner(), r.waiting[:n])
	r.waiting = r.waiting[n:]
	if r.err != nil && a.base.Err() == nil {
		a.log.Warn("cannot import the agent's sessions", "error", r.err)
	}
	if added > 0 {
		a.log.Debug("imported sessions of the agent", "sessions", added)
	}
}

// convertForeign converts a backend's session for the store.
func convertForeign(
	ctx context.Context, f backend.Foreign, s backend.ForeignSession, reals *realPaths,
) (sessionstore.Imported, error) {
	n := sessionstore.Imported{
		ID: sessionstore.NewID(), OnlyKnown: !reals.agent.grants.Sessions, State: s.State, Title: titleLine(s.Title), Updated: s.Updated,
		Archived: s.Archived,
	}
	if strictjson.IsObject(s.Meta) && len(s.Meta) <= maxListedMeta {
		n.Meta = s.Meta
	}
	switch {
	case len(s.State) > maxState:
		return n, fmt.Errorf("its state is over the limit of 64 KiB")
	case s.Cwd.IsZero():
		return n, fmt.Errorf("it has no working directory")
	}
	n.StateKey = f.Key(s.State)
	n.Keys = sessionstore.Keys{Roots: workspace.RootsFrom(s.Cwd, workspace.Dirs{}),
		Real: []workspace.Dir{reals.of(ctx, s.Cwd)}}
	return n, n.Validate()
}

// realPaths caches real paths, because an agent's many sessions have few different roots.
type realPaths struct {
	agent *agent
	known map[workspace.Dir]workspace.Dir
	left  time.Duration // for disks that do not answer
}

func (a *agent) newRealPaths() *realPaths {
	return &realPaths{a, make(map[workspace.Dir]workspace.Dir), a.options.tuning.ImportWait}
}

// of returns the real path of dir, or dir itself if its disk does not answer.
func (r *realPaths) of(ctx context.Context, dir workspace.Dir) workspace.Dir {
	real, known := r.known[dir]
	if known {
		return real
	}
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, r.left)
	defer cancel()
	real, err := fromDisk(ctx, r.agent, func() (workspace.Dir, error) {
		return workspace.Real(dir), nil
	})
	if err != nil {
		real = dir
	}
	r.left -= time.Since(begun)
	r.known[dir] = real
	return real
}

// maxForeignID is the longest id in a request that can be the backend's own, in bytes.
const maxForeignID = 1 << 10

// openable is a session that a request may open: a stored one, or one that only the backend may
// know.
type openable struct {
	sessionstore.Session
	foreign bool
}

// findOpenable returns the session that a request names. If it is not stored, the id may be the
// backend's own.
func (a *agent) findOpenable(ctx context.Context, p sessionParams) (openable, error) {
	stored, err := a.stored(ctx, p.id)
	f := a.foreign()
	if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != protocol.CodeNotFound ||
		f == nil || a.importer() == nil || len(p.id) > maxForeignID {
		return openable{Session: stored}, err
	}
	state := f.State(string(p.id))
	if state == nil {
		return openable{}, err
	}
	s, listed := a.findListed(ctx, f, string(p.id), p.roots.Cwd())
	if !listed { // whether it exists shows when it is opened
		s = backend.ForeignSession{State: state, Cwd: p.roots.Cwd()}
	}
	n, err := convertForeign(ctx, f, s, a.newRealPaths())
	return openable{foreign: true, Session: sessionstore.Session{
		ID: p.id, Agent: a.init.owner(), Keys: n.Keys, Title: n.Title, Updated: n.Updated,
		State: n.State, StateKey: n.StateKey, Archived: n.Archived, Meta: n.Meta,
	}}, err
}

// onlyBackendKnows reports whether nothing of the session's conversation is stored here, so that
// only the backend can continue it.
func (a *agent) onlyBackendKnows(ctx context.Context, s openable) bool {
	if s.foreign || s.Listed.IsZero() || s.Turns > 0 {
		return s.foreign
	}
	for range a.options.Store.History(ctx, s.ID) {
		return false
	}
	return true
}

// findListed looks for a session in the backend's list, for a limited time.
func (a *agent) findListed(
	ctx context.Context, f backend.Foreign, key string, cwd workspace.Dir,
) (backend.ForeignSession, bool) {
	ctx, cancel := context.WithTimeout(ctx, a.options.tuning.ImportWait)
	defer cancel()
	for _, in := range []*workspace.Dir{&cwd, nil} {
		for s, err := range f.Sessions(ctx, in) {
			if errors.Is(err, backend.ErrPartial) {
				break
			}
			if err != nil {
				a.log.Debug("cannot list the agent's sessions", "error", err)
				break
			}
			if f.Key(s.State) == key && !s.Cwd.IsZero() {
				return s, true
			}
		}
	}
	return backend.ForeignSession{}, false
}

// adopt stores a session that only the backend knew, under the id that the request gave it.
func (a *agent) adopt(
	ctx context.Context, s sessionstore.Session, change sessionstore.Activation,
) (sessionstore.Lease, error) {
	if change.State != nil {
		s.State, s.StateKey = change.State, change.StateKey
	}
	return a.importer().Adopt(ctx, s.Agent, sessionstore.Imported{
		ID: s.ID, StateKey: s.StateKey, State: s.State, Keys: change.Keys,
		Title: s.Title, Updated: s.Updated, Archived: s.Archived, Meta: s.Meta,
	}, change.History)
}
