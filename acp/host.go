package acp

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/commands"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// maxBuffered and maxBufferedBytes limit the updates that are buffered before a lifecycle response.
const maxBuffered, maxBufferedBytes = 1000, 4 << 20

// host implements [backend.Host] for one activation. It has no session until the activation is
// stored, and buffers updates until the lifecycle response has been sent.
type host struct {
	agent     *agent
	id        sessionstore.ID // for the client
	stored    sessionstore.ID // in the store; another one if the client's is the backend's own
	workspace *workspace.Workspace
	servers   *sessionServers
	viewers   *viewers
	stop      func(context.Context) error // ends the running turn; set for a load or resume
	rate      *replayRate                 // of a load
	loading   *connection                 // of the client that loads, if one does
	foreign   bool                        // it comes from the backend, and is not stored yet
	isNew     bool                        // it was made by session/new: the store has no states of it

	replays     sync.Mutex // held while an update is replayed; locked before mu
	replayed    *replayed  // nil unless the backend replays a history
	showsReplay bool       // it is shown as it comes

	outside chan struct{} // holds one value while a file outside the roots is asked about or read
	permits *permission.Permits

	agentHas atomic.Pointer[[]string] // the adapter's names that the backend's commands have

	saving sync.Mutex // states are stored in the order of the calls; locked before mu

	scanning chan struct{} // holds one value while the roots are scanned

	mu            sync.Mutex
	phase         hostPhase
	session       *session // nil until attach
	catalog       *discovery.Catalog
	buffered      []backend.Update
	bufferedBytes int
	settled       chan struct{} // closed when the phase becomes hostLive or hostClosed
	state         []byte        // to be stored with the activation, or nil
}

type hostPhase int

const (
	hostOpening   hostPhase = iota // the session is being opened and stored
	hostBuffering                  // it is active, but its response was not sent
	hostReleasing                  // the buffered updates are being sent
	hostLive
	hostClosed
)

func newHost(
	a *agent, id, stored sessionstore.ID, w *workspace.Workspace, v *viewers,
) *host {
	return &host{agent: a, id: id, stored: stored, workspace: w, viewers: v,
		scanning: make(chan struct{}, 1),
		outside:  make(chan struct{}, 1),
		settled:  make(chan struct{})}
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

// scan scans the roots for the first time.
func (h *host) scan(ctx context.Context) (err error) {
	h.catalog, err = discovery.Scan(ctx, h.workspace, discovery.Options{})
	return err
}

// refresh scans the roots again and replaces the catalog. If that takes longer than RescanWait, or
// ctx ends, refresh returns and the catalog stays as it is until the scan is complete. At most one
// scan of a session runs at a time.
func (h *host) refresh(ctx context.Context) {
	h.permits.ForgetAsked()
	wait := h.agent.options.tuning.RescanWait
	ctx, cancel := context.WithTimeoutCause(ctx, wait,
		fmt.Errorf("the scan takes longer than %v", wait))
	defer cancel()
	select {
	case h.scanning <- struct{}{}:
	case <-ctx.Done():
		h.notRefreshed(context.Cause(ctx))
		return
	}
	err := h.agent.tasks.OnDisk(ctx, func() error {
		defer func() { <-h.scanning }()
		catalog, err := discovery.Scan(h.agent.base, h.workspace, discovery.Options{})
		if err != nil {
			return err
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.catalog = catalog
		return nil
	})
	if err != nil {
		h.notRefreshed(err)
	}
}

// notRefreshed logs that the catalog could not be brought up to date, unless the turn was
// cancelled.
func (h *host) notRefreshed(why error) {
	if errors.Is(why, backend.ErrCancelled) {
		return
	}
	h.agent.log.Warn(
		"cannot scan the roots: the prompt uses the instructions, skills and commands found before",
		"session", h.id, "error", why)
}

// history returns the stored history of the session. Before the session is stored, it returns
// given, which may be nil.
func (h *host) history(given iter.Seq2[backend.Update, error]) iter.Seq2[backend.Update, error] {
	return func(yield func(backend.Update, error) bool) {
		h.mu.Lock()
		stored := h.session != nil
		h.mu.Unlock()
		switch {
		case stored:
			sessionstore.WithoutEnds(h.agent.options.Store.History(h.agent.base, h.stored))(yield)
		case given != nil:
			given(yield)
		}
	}
}

// attach gives the host its session, and stores the state that the backend saved while the session
// was being stored.
func (h *host) attach(s *session) {
	h.saving.Lock()
	defer h.saving.Unlock()
	h.mu.Lock()
	h.session = s
	if h.phase == hostOpening {
		h.phase = hostBuffering
	}
	late := h.state
	h.state = nil
	h.mu.Unlock()
	if late == nil {
		return
	}
	ctx, cancel := commitContext(h.agent.base)
	defer cancel()
	if err := s.saveState(ctx, late); err != nil {
		h.agent.log.Warn("cannot save the agent's state", "session", h.id, "error", err)
	}
}

// release sends the buffered updates. The lifecycle response is on the wire.
func (h *host) release(ctx context.Context) {
	buffered, s := h.advance(hostReleasing)
	for _, u := range buffered {
		if err := s.update(ctx, u); err != nil {
			h.agent.log.Debug("update not sent", "session", h.id, "error", err)
		}
	}
	h.advance(hostLive)
}

// close makes all further calls fail.
func (h *host) close() { h.advance(hostClosed) }

// advance begins a phase in which nothing is buffered, unless it is already past, and returns what
// was buffered.
func (h *host) advance(phase hostPhase) (buffered []backend.Update, s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase >= phase {
		return nil, nil
	}
	if h.phase < hostLive && phase >= hostLive {
		close(h.settled)
	}
	buffered = h.buffered
	h.phase, h.buffered = phase, nil
	return buffered, h.session
}

// Update implements [backend.Updates].
func (h *host) Update(ctx context.Context, u backend.Update) error {
	return h.sendUpdate(ctx, u, (*session).update)
}

// Commit implements [backend.Updates].
func (h *host) Commit(ctx context.Context, u backend.Update) error {
	return h.sendUpdate(ctx, u, (*session).commit)
}

// sendUpdate buffers an update, or sends it once those that were buffered are sent.
func (h *host) sendUpdate(ctx context.Context, u backend.Update, send sender) error {
	u = h.announce(u)
	if buffered, err := h.buffer(u); buffered || err != nil {
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
	return send(s, ctx, u)
}

// buffer buffers an update that comes before the response. Updates that come while the buffer is
// being sent wait instead.
func (h *host) buffer(u backend.Update) (buffered bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase >= hostReleasing {
		return false, nil
	}
	if len(h.buffered) == maxBuffered || h.bufferedBytes+len(u.Raw) > maxBufferedBytes {
		return false, backend.ErrTooManyUpdates
	}
	h.buffered = append(h.buffered, u)
	h.bufferedBytes += len(u.Raw)
	return true, nil
}

// bufferedKinds returns the kinds of the updates that the backend sent while it opened the session.
func (h *host) bufferedKinds() map[sessionstore.Kind]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	kinds := make(map[sessionstore.Kind]bool)
	for _, u := range h.buffered {
		kinds[u.Kind] = true
	}
	return kinds
}

// takeState returns the state to be stored with the activation, nil if the backend saved none.
func (h *host) takeState() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	state := h.state
	h.state = nil
	return state
}

// SaveState implements [backend.Host].
func (h *host) SaveState(ctx context.Context, state []byte) error {
	if len(state) > backend.MaxState {
		return jsonrpc.Errorf(jsonrpc.CodeInternal,
			"the agent's session state is over the limit of 64 KiB")
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
	s := h.live()
	if err := h.check(method, params); err != nil {
		return func() (backend.Raw, error) {
			_, isOutside := errors.AsType[*workspace.OutsideError](err)
			if isOutside && s != nil && method == protocol.ReadTextFile {
				return h.readOutside(ctx, params, err)
			}
			return nil, err
		}
	}
	action, err := h.checkRules(ctx, method, params)
	send := func() backend.Work { return h.send(ctx, method, putSessionID(params, h.id), action) }
	if err != nil {
		return h.ruled(ctx, method, params, err, send)
	}
	if s != nil && method == protocol.RequestPermission {
		return s.requestPermission(ctx, s.asker(), params)
	}
	return send()
}

// send sends the client a request for an action that was checked, or answers it in its place.
func (h *host) send(
	ctx context.Context, method string, params backend.Raw, action permission.Action,
) backend.Work {
	if h.servesFiles(method) {
		return func() (backend.Raw, error) { return h.serveFile(ctx, method, params, action) }
	}
	return h.viewers.call(ctx, method, params)
}

// notify sends the client a notification that was checked.
func (h *host) notify(ctx context.Context, method string, params backend.Raw) error {
	if h.servesFiles(method) {
		return errNoFileMethod(method)
	}
	return h.viewers.notify(ctx, method, params)
}

// live returns the session once the updates that were buffered for it are sent, nil before.
func (h *host) live() *session {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase != hostLive {
		return nil
	}
	return h.session
}

// decided sends requests of the session about which no rule need decide.
type decided struct{ *host }

// Decided implements [backend.Host].
func (h *host) Decided() backend.Client { return decided{h} }

// Call implements [backend.Client].
func (d decided) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	if err := d.check(method, params); err != nil {
		return jsonrpc.Fail(err)
	}
	return d.send(ctx, method, putSessionID(params, d.id), permission.Action{})
}

// Notify implements [backend.Client].
func (h *host) Notify(ctx context.Context, method string, params backend.Raw) error {
	if err := h.check(method, params); err != nil {
		return err
	}
	if _, err := h.checkRules(ctx, method, params); err != nil {
		return err
	}
	if method == protocol.ElicitationComplete { // it names no session
		return h.viewers.notify(ctx, method, params)
	}
	return h.notify(ctx, method, putSessionID(params, h.id))
}

// check returns an error if the backend may not send the client this message.
func (h *host) check(method string, params backend.Raw) error {
	h.mu.Lock()
	closed := h.phase == hostClosed
	h.mu.Unlock()
	if closed {
		return backend.ErrClosed
	}
	if err := h.viewers.offers(method, params); err != nil {
		return err
	}
	return checkPaths(h.workspace, method, params)
}

// sessionless implements [backend.Client] outside of sessions.
type sessionless struct{ agent *agent }

// Call implements [backend.Client].
func (c sessionless) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	if err := c.check(method, params); err != nil {
		return jsonrpc.Fail(err)
	}
	return c.agent.connection.Call(ctx, method, params)
}

// Notify implements [backend.Client].
func (c sessionless) Notify(ctx context.Context, method string, params backend.Raw) error {
	if err := c.check(method, params); err != nil {
		return err
	}
	return c.agent.connection.Notify(ctx, method, params)
}

func (c sessionless) check(method string, params backend.Raw) error {
	if needsSession(method) {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s needs the id of an open session",
			method)
	}
	if !c.agent.grants.allowsBack(method) {
		return errNotGranted(method)
	}
	return c.agent.connection.checkMethod(method, params)
}

// announceCommands announces the adapter's commands for a backend that has not announced any
// commands.
func (h *host) announceCommands() {
	if h.bufferedKinds()[sessionstore.AvailableCommandsUpdate] || h.hasStoredCommands() {
		return
	}
	_, _ = h.buffer(
		h.announce(backend.NewUpdate(
			sdk.SessionUpdate{AvailableCommandsUpdate: &sdk.SessionAvailableCommandsUpdate{
				AvailableCommands: []sdk.AvailableCommand{},
			}})))
}

// hasStoredCommands reports whether commands of the backend are stored, or cannot be read.
func (h *host) hasStoredCommands() bool {
	if h.isNew {
		return false
	}
	states, err := h.agent.options.Store.States(h.agent.base, h.stored)
	if err != nil {
		h.agent.log.Debug("cannot read the announced commands", "session", h.id, "error", err)
	}
	return err != nil || slices.ContainsFunc(states, func(u sessionstore.Update) bool {
		stored := u.Kind == sessionstore.AvailableCommandsUpdate
		if stored {
			h.announce(u) // it is in effect
		}
		return stored
	})
}

// announce adds the adapter's commands to an announcement of the backend, and notes which of their
// names commands of the backend have. It returns other updates as they are.
func (h *host) announce(u backend.Update) backend.Update {
	if u.Kind != sessionstore.AvailableCommandsUpdate {
		return u
	}
	var names, theirs []string
	for _, command := range []string{backend.RootsCommand, backend.MCPCommand,
		backend.WorktreeCommand, backend.PermissionsCommand} {
		name := command
		if command != backend.MCPCommand || !h.agent.info().AnswersMCPCommand {
			name = commands.Name(u, command)
		}
		if name != command {
			theirs = append(theirs, command)
		}
		if command != backend.WorktreeCommand || h.agent.offersWorktrees() {
			names = append(names, name)
		}
	}
	h.agentHas.Store(&theirs)
	return commands.Announce(u, names...)
}
