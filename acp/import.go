package acp

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// importBatch is how many sessions are imported in one write.
const importBatch = 100

// imports imports the sessions that a backend knows by itself (see [backend.Foreign]) into the store, so that lists have one
// source. One import runs at a time; a session/list waits for it for a limited time.
type imports struct {
	mu    sync.Mutex
	begun time.Time     // the start of the latest import
	ended chan struct{} // closed at its end; nil before the first import
}

// foreign returns the backend as one that knows sessions by itself, nil if it does not.
func (a *agent) foreign() backend.Foreign {
	f, _ := a.backend.(backend.Foreign)
	return f
}

// stateKey returns the backend's own name for the session that saved state, "" if it has none.
func (a *agent) stateKey(state []byte) string {
	if f := a.foreign(); f != nil && len(state) > 0 {
		return f.Key(state)
	}
	return ""
}

// refreshImports imports the backend's sessions, unless that was done just now. It returns when that is done or takes too long;
// then the import continues in the background.
func (a *agent) refreshImports(ctx context.Context) {
	f := a.foreign()
	if f == nil {
		return
	}
	ended, begun := a.imports.begin(a, f)
	late := time.NewTimer(time.Until(begun.Add(a.options.tuning.ImportWait)))
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
	case <-ctx.Done():
	}
}

// begin starts an import if one is due, and returns the end and the start of the latest one.
func (i *imports) begin(a *agent, f backend.Foreign) (ended <-chan struct{}, begun time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ended != nil {
		select {
		case <-i.ended:
		default:
			return i.ended, i.begun
		}
		if time.Since(i.begun) < a.options.tuning.ImportEvery {
			return i.ended, i.begun
		}
	}
	end := make(chan struct{})
	i.begun, i.ended = time.Now(), end
	a.running.Go(func() {
		defer close(end)
		_ = a.guard("listing sessions", func() error {
			a.importAll(a.base, f)
			return nil
		})
	})
	return end, i.begun
}

// wait waits for a running import, or until ctx ends.
func (i *imports) wait(ctx context.Context) {
	i.mu.Lock()
	ended := i.ended
	i.mu.Unlock()
	if ended == nil {
		return
	}
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// importAll imports the backend's sessions in batches, up to the limit. It skips sessions that cannot be stored.
func (a *agent) importAll(ctx context.Context, f backend.Foreign) {
	reals := make(realPaths)
	batch := make([]sessionstore.Imported, 0, importBatch)
	seen := 0
	for s, err := range f.Sessions(ctx, nil) {
		if err != nil {
			a.log.Warn("listing the agent's sessions", "error", err)
			break
		}
		if seen++; seen > a.options.tuning.ImportMax {
			a.log.Info("the agent has more sessions than are listed", "limit", a.options.tuning.ImportMax)
			break
		}
		n, err := imported(f, s, reals)
		if err != nil {
			a.log.Warn("skipping a session of the agent", "error", err)
			continue
		}
		if batch = append(batch, n); len(batch) == importBatch {
			if !a.importSome(ctx, batch) {
				return
			}
			batch = batch[:0]
		}
	}
	a.importSome(ctx, batch)
}

// importSome imports a batch, and reports whether that succeeded.
func (a *agent) importSome(ctx context.Context, batch []sessionstore.Imported) bool {
	if len(batch) == 0 {
		return true
	}
	added, err := a.options.Store.Import(ctx, a.init.owner(), batch)
	if err != nil {
		a.log.Warn("importing the agent's sessions", "error", err)
		return false
	}
	if added > 0 {
		a.log.Debug("imported sessions of the agent", "sessions", added)
	}
	return true
}

// imported converts a backend's session for the store.
func imported(f backend.Foreign, s backend.ForeignSession, reals realPaths) (sessionstore.Imported, error) {
	n := sessionstore.Imported{ID: sessionstore.NewID(), State: s.State, Title: titleLine(s.Title), Updated: s.Updated}
	switch {
	case len(s.State) > maxState:
		return n, fmt.Errorf("its state is over the limit of 64 KiB")
	case s.Cwd.IsZero():
		return n, fmt.Errorf("it has no working directory")
	}
	n.StateKey = f.Key(s.State)
	n.Keys = sessionstore.Keys{Roots: workspace.RootsFrom(s.Cwd, workspace.Dirs{}), Real: []workspace.Dir{reals.of(s.Cwd)}}
	// A session may have such a working directory, but not because the agent says so: clients load a listed session with the
	// directory that is listed.
	if broadDir(reals.of(s.Cwd)) != "" {
		return n, fmt.Errorf("its working directory %s contains your home directory; start a new session to work there", text.Printable(s.Cwd.String()))
	}
	return n, n.Validate()
}

// realPaths caches real paths: an agent's sessions share few roots.
type realPaths map[workspace.Dir]workspace.Dir

func (r realPaths) of(dir workspace.Dir) workspace.Dir {
	real, known := r[dir]
	if !known {
		real = workspace.Real(dir)
		r[dir] = real
	}
	return real
}
