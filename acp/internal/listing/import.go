package listing

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// maxListedMeta is the size up to which _meta of the backend's sessions is kept.
const maxListedMeta = 16 << 10

const (
	// maxImports is the maximum number of working directories that get an import of their own. A
	// list for a further directory is answered after an import of all sessions.
	maxImports = 16
	// runningImports is the number of imports that ask the backend at the same time.
	runningImports = 2
)

// imports copies the sessions that the backend keeps itself into the store, so that lists have one
// source. A session/list begins an import of the sessions that match its cwd, and is answered from
// the store.
type imports struct {
	mu      sync.Mutex
	runs    map[workspace.Dir]*importRun // the latest for each cwd, the zero Dir for all
	running chan struct{}                // has a token for each import that asks the backend
}

// importRun imports all sessions, or those with a certain working directory.
type importRun struct {
	Options
	begun time.Time
	ended chan struct{} // closed at the end
	// complete says that the backend has no other such sessions. It may be read once the import has
	// ended.
	complete bool

	mu      sync.Mutex             // held while sessions are stored
	waiting []sessionstore.Session // not stored yet
	err     error                  // of the store
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
	if !first {
		r.wait(ctx, time.Now().Add(r.Times.Timeout))
		return
	}
	if r.wait(ctx, r.begun.Add(r.Times.Wait)) || ctx.Err() != nil ||
		!r.mu.TryLock() { // it is being stored
		return
	}
	defer r.mu.Unlock()
	r.storeNewestLocked(r.Base, sessionstore.PageSize+1)
}

// isRefresh reports whether an earlier import has stored s, and so all others that existed then.
func (r *importRun) isRefresh(s sessionstore.Session) bool {
	return !s.Listed.IsZero() && s.Listed.Before(r.begun.Truncate(time.Millisecond))
}

// begin starts an import if one is due, and returns the latest one of cwd. A complete import of all
// sessions serves every cwd.
func (i *imports) begin(s *Sessions, cwd workspace.Dir) *importRun {
	i.mu.Lock()
	defer i.mu.Unlock()
	for of, run := range i.runs {
		if run.over() && time.Since(run.begun) >= s.Times.Every {
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
	run := &importRun{Options: s.Options, begun: time.Now(), ended: make(chan struct{})}
	i.runs[cwd] = run
	s.Tasks.Go(func() {
		defer close(run.ended)
		select {
		case i.running <- struct{}{}:
			defer func() { <-i.running }()
		case <-s.Base.Done():
			return
		}
		_ = s.Tasks.Guard("listing sessions", func() error {
			run.importFrom(s.Base, cwd)
			return nil
		})
	})
	return run
}

// latest returns the latest import of cwd, or nil.
func (i *imports) latest(cwd workspace.Dir) *importRun {
	i.mu.Lock()
	defer i.mu.Unlock()
	return cmp.Or(i.runs[cwd], i.runs[workspace.Dir{}])
}

// Wait waits for running imports, or until ctx ends.
func (s *Sessions) Wait(ctx context.Context) {
	i := &s.imports
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
	asking, cancel := context.WithTimeout(ctx, r.Times.Timeout)
	defer cancel()
	reals := r.newRealPaths()
	l := sessionstore.Listed{Asked: time.Now(), StateKeys: make(map[string]bool)}
	complete := true
	if cwd.IsZero() {
		complete = r.collect(asking, nil, reals, l.StateKeys)
	} else {
		l.Cwds = slices.Compact([]workspace.Dir{cwd, reals.of(asking, cwd)})
	}
	for i := range l.Cwds {
		complete = r.collect(asking, &l.Cwds[i], reals, l.StateKeys) && complete
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.storeNewestLocked(ctx, len(r.waiting))
	if r.complete = complete && r.err == nil; !r.complete || ctx.Err() != nil {
		return
	}
	n, err := r.Store.Retain(ctx, r.Owner(), l)
	switch {
	case err != nil:
		r.Log.Warn("cannot remove sessions that the agent no longer has", "error", err)
	case n > 0:
		r.Log.Debug("removed sessions that the agent no longer has", "sessions", n)
	}
}

// collect collects the sessions that the backend yields, up to the limit, and their names. It skips
// those that cannot be stored. It reports whether the backend has no others.
func (r *importRun) collect(
	ctx context.Context, cwd *workspace.Dir, reals *realPaths, names map[string]bool,
) (complete bool) {
	seen := 0
	for s, err := range r.Foreign.Sessions(ctx, cwd) {
		if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, backend.ErrPartial) {
			return false
		}
		if err != nil {
			if r.Base.Err() == nil { // the connection has not ended
				r.Log.Warn("cannot list the agent's sessions", "error", err)
			}
			return false
		}
		seen++
		if seen > r.Times.Max {
			r.Log.Warn("the agent has too many sessions: the rest is not listed",
				"limit", r.Times.Max)
			return false
		}
		names[r.Foreign.Key(s.State)] = true
		n, err := r.convert(ctx, s, reals)
		if err != nil {
			r.Log.Warn("cannot import a session of the agent", "error", err)
			continue
		}
		r.mu.Lock()
		r.waiting = append(r.waiting, n)
		r.mu.Unlock()
	}
	return true
}

// storeNewestLocked stores up to n of the collected sessions, most recently active first, because a
// list may be read at the same time.
func (r *importRun) storeNewestLocked(ctx context.Context, n int) {
	n = min(n, len(r.waiting))
	if n == 0 || r.err != nil {
		return
	}
	slices.SortStableFunc(r.waiting, func(x, y sessionstore.Session) int {
		return y.Updated.Compare(x.Updated)
	})
	var added int
	added, r.err = r.Store.Import(ctx, r.Owner(), r.waiting[:n], r.OnlyKnown)
	r.waiting = r.waiting[n:]
	if r.err != nil && r.Base.Err() == nil {
		r.Log.Warn("cannot import the agent's sessions", "error", r.err)
	}
	if added > 0 {
		r.Log.Debug("imported sessions of the agent", "sessions", added)
	}
}
