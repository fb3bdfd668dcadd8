package acp

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// maxHeld and maxHeldBytes bound the updates that are held until a lifecycle response.
const maxHeld, maxHeldBytes = 1000, 4 << 20

// Update implements [backend.Updates].
func (h *host) Update(ctx context.Context, u backend.Update) error {
	if held, err := h.hold(u); held || err != nil {
		return err
	}
	select {
	case <-h.settled:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	h.mu.Lock()
	phase, s := h.phase, h.session
	h.mu.Unlock()
	if phase == hostClosed {
		return backend.ErrClosed
	}
	return s.update(ctx, u)
}

// hold holds an update if it is too early for it. What comes while the others are being sent is not held but waits.
func (h *host) hold(u backend.Update) (held bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase >= hostReleasing {
		return false, nil
	}
	if len(h.held) == maxHeld || h.heldBytes+len(u) > maxHeldBytes {
		return false, backend.ErrTooManyUpdates
	}
	h.held = append(h.held, u)
	h.heldBytes += len(u)
	return true, nil
}

// release sends what was held; the lifecycle response is on the wire.
func (h *host) release(ctx context.Context) {
	held, s := h.enter(hostReleasing)
	for _, u := range held {
		if err := s.update(ctx, u); err != nil {
			h.agent.log.Debug("update not sent", "session", h.id, "error", err)
		}
	}
	h.enter(hostLive)
}

// enter begins a phase that does not hold, unless it is too late for it, and returns what was held.
func (h *host) enter(phase hostPhase) (held []backend.Update, s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase >= phase {
		return nil, nil
	}
	if h.phase < hostLive && phase >= hostLive {
		close(h.settled)
	}
	held = h.held
	h.phase, h.held = phase, nil
	return held, h.session
}

// heldKinds are the kinds of update that the runtime said while it opened.
func (h *host) heldKinds() map[sessionstore.Kind]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	kinds := make(map[sessionstore.Kind]bool)
	for _, u := range h.held {
		if parsed, err := sessionstore.ParseUpdate(u); err == nil {
			kinds[parsed.Kind] = true
		}
	}
	return kinds
}

// close makes everything fail from now on.
func (h *host) close() { h.enter(hostClosed) }

// maxState bounds a runtime's own value.
const maxState = 64 << 10

// host is what one activation offers its runtime. Until the activation is committed it has
// no session; until its response was sent it holds what the runtime says.
type host struct {
	agent     *agent
	id        sessionstore.ID
	workspace *workspace.Workspace
	servers   *serving
	stop      func(context.Context) error // of a load or resume

	pace *pace // of a load

	replays  sync.Mutex // guards replayed, and orders what is replayed; taken before mu
	replayed *replaying // nil unless the runtime replays

	saving sync.Mutex // states are stored in the order of the calls; taken before mu

	conventions []discovery.Convention // what to scan for, nil for the default; set by the first scan
	scanning    chan struct{}          // holds one value while the roots are scanned

	mu        sync.Mutex
	phase     hostPhase
	session   *session // from the commit on
	catalog   *discovery.Catalog
	held      []backend.Update
	heldBytes int
	settled   chan struct{} // closed with the first of hostLive and hostClosed
	state     []byte        // what to commit, nil if the runtime saved nothing since it was taken
}

type hostPhase int

const (
	hostOpening   hostPhase = iota // the runtime's Open runs, or its commit
	hostHolding                    // committed, the response not yet sent
	hostReleasing                  // what was held is being sent
	hostLive
	hostClosed
)

func newHost(a *agent, id sessionstore.ID, w *workspace.Workspace) *host {
	return &host{agent: a, id: id, workspace: w, scanning: make(chan struct{}, 1), settled: make(chan struct{})}
}

// Workspace implements [backend.Host].
func (h *host) Workspace() *workspace.Workspace { return h.workspace }

// Tools implements [backend.Host].
func (h *host) Tools() backend.Tools { return h.servers.tools() }

// Catalog implements [backend.Host].
func (h *host) Catalog() *discovery.Catalog {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.catalog
}

// scan scans the roots for the first time. If the configured conventions are invalid, the session opens without any; the error is
// the context's.
func (h *host) scan(ctx context.Context) (err error) {
	options := h.agent.options.tuning.Discovery
	h.conventions = options.Conventions
	if h.catalog, err = discovery.Scan(ctx, h.workspace, options); err == nil || ctx.Err() != nil {
		return err
	}
	h.agent.log.Error("cannot scan the roots: the session has none of their instructions, skills or commands",
		"session", h.id, "error", err)
	options.Conventions = []discovery.Convention{}
	h.conventions = options.Conventions
	h.catalog, err = discovery.Scan(ctx, h.workspace, options)
	return err
}

// refresh scans the roots again and replaces the catalog. If that takes longer than RescanWait, or ctx ends, refresh returns and
// the catalog stays as it is until the scan is complete. At most one scan of a session runs at a time.
func (h *host) refresh(ctx context.Context) {
	wait := h.agent.options.tuning.RescanWait
	ctx, cancel := context.WithTimeoutCause(ctx, wait, fmt.Errorf("the scan takes longer than %v", wait))
	defer cancel()
	select {
	case h.scanning <- struct{}{}:
	case <-ctx.Done():
		h.notRefreshed(context.Cause(ctx))
		return
	}
	_, err := onDisk(ctx, h.agent, func() (*discovery.Catalog, error) {
		defer func() { <-h.scanning }()
		options := h.agent.options.tuning.Discovery
		options.Conventions = h.conventions
		catalog, err := discovery.Scan(h.agent.base, h.workspace, options)
		if err != nil {
			return nil, err
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.catalog = catalog
		return catalog, nil
	}, nil)
	if err != nil {
		h.notRefreshed(err)
	}
}

// notRefreshed logs that the catalog could not be brought up to date, unless the turn was cancelled.
func (h *host) notRefreshed(why error) {
	if errors.Is(why, backend.ErrCancelled) {
		return
	}
	h.agent.log.Warn("cannot scan the roots: the prompt uses the instructions, skills and commands found before",
		"session", h.id, "error", why)
}

// history is what is stored of the session: once there is a commit what it has, before that what was given, nil for nothing.
func (h *host) history(given iter.Seq2[backend.Update, error]) iter.Seq2[backend.Update, error] {
	return func(yield func(backend.Update, error) bool) {
		h.mu.Lock()
		committed := h.session != nil
		h.mu.Unlock()
		switch {
		case committed:
			rawHistory(h.agent.options.Store.History(h.agent.base, h.id))(yield)
		case given != nil:
			given(yield)
		}
	}
}

// rawHistory yields the JSON of a stored history.
func rawHistory(stored iter.Seq2[sessionstore.Update, error]) iter.Seq2[backend.Update, error] {
	return func(yield func(backend.Update, error) bool) {
		for u, err := range stored {
			if !yield(u.Raw, err) {
				return
			}
		}
	}
}

// commit gives the host its session. What the runtime saved while the store committed is stored now.
func (h *host) commit(s *session) {
	h.saving.Lock()
	defer h.saving.Unlock()
	h.mu.Lock()
	if h.session = s; h.phase == hostOpening {
		h.phase = hostHolding
	}
	late := h.state
	h.state = nil
	h.mu.Unlock()
	if late == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.agent.base), commitTimeout)
	defer cancel()
	if err := s.saveState(ctx, late); err != nil {
		h.agent.log.Warn("saving the agent's state", "session", h.id, "error", err)
	}
}

// takeState returns what the commit has to store, nil if the runtime saved nothing.
func (h *host) takeState() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	state := h.state
	h.state = nil
	return state
}

// SaveState implements [backend.Host].
func (h *host) SaveState(ctx context.Context, state []byte) error {
	if len(state) > maxState {
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "the agent's session state is over the limit of 64 KiB")
	}
	h.saving.Lock()
	defer h.saving.Unlock()
	h.mu.Lock()
	switch h.phase {
	case hostClosed:
		h.mu.Unlock()
		return backend.ErrClosed
	case hostOpening:
		h.state = append([]byte{}, state...)
		h.mu.Unlock()
		return nil
	}
	s := h.session
	h.mu.Unlock()
	return s.saveState(ctx, state)
}

// Call implements [backend.Client].
func (h *host) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	if err := h.allow(method, params); err != nil {
		return func() (backend.Raw, error) { return nil, err }
	}
	return backend.Work(h.agent.conn.Call(ctx, method, putSession(params, h.id)))
}

// Notify implements [backend.Client].
func (h *host) Notify(ctx context.Context, method string, params backend.Raw) error {
	if err := h.allow(method, params); err != nil {
		return err
	}
	return h.agent.conn.Notify(ctx, method, putSession(params, h.id))
}

// allow checks what the runtime asks of the client.
func (h *host) allow(method string, params backend.Raw) error {
	h.mu.Lock()
	closed := h.phase == hostClosed
	h.mu.Unlock()
	if closed {
		return backend.ErrClosed
	}
	if err := h.agent.gate.allow(method); err != nil {
		return err
	}
	return checkPaths(h.workspace, method, params)
}

// anonymous is the client as a runtime reaches it outside of sessions.
type anonymous struct{ agent *agent }

// Call implements [backend.Client].
func (c anonymous) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	if err := c.allow(method); err != nil {
		return func() (backend.Raw, error) { return nil, err }
	}
	return backend.Work(c.agent.conn.Call(ctx, method, params))
}

// Notify implements [backend.Client].
func (c anonymous) Notify(ctx context.Context, method string, params backend.Raw) error {
	if err := c.allow(method); err != nil {
		return err
	}
	return c.agent.conn.Notify(ctx, method, params)
}

func (c anonymous) allow(method string) error {
	if needsSession(method) {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s needs the id of an open session", method)
	}
	return c.agent.gate.allow(method)
}
