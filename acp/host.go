package acp

import (
	"context"
	"iter"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/access"
	"github.com/acp-agent/acp-agent/acp/internal/session/catalog"
	"github.com/acp-agent/acp-agent/acp/internal/session/gate"
	"github.com/acp-agent/acp-agent/acp/internal/session/replay"
	"github.com/acp-agent/acp-agent/acp/internal/session/transcript"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// common has what a session shares with its host: who runs it, who views it, and its folders. It
// does not change once the host is open.
type common struct {
	adapter      *adapter        // runs the session
	id           sessionstore.ID // the client's
	storeID      sessionstore.ID // another one if the client's is the backend's own
	queue        *queue
	conversation *conversation
	viewers      *viewers
	gate         *gate.Gate[*session] // holds back what is shown until the response was sent

	params    sessionParams        // in effect
	unguarded *workspace.Workspace // without the rules about files; backends get Workspace
	access    *access.Access
	catalog   *catalog.Catalog
}

// host represents a session to its backend. It implements [backend.Host]. The backend gets it to
// open its part; gate leads to the session once that is active. opening.openHost makes it.
type host struct {
	*common
	replay     *replay.Replay
	keepsTurns bool              // those of the session that this one replaces go on in it
	change     *mcpclient.Change // of the servers, once this session is the active one
	freed      sync.Once
}

// For implements [backend.Host].
func (h *host) For(from backend.Sender) backend.Client { return asker{h, from} }

// Call implements [backend.Client].
func (h *host) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	return asker{host: h}.Call(ctx, method, params)
}

// Notify implements [backend.Client].
func (h *host) Notify(ctx context.Context, method string, params backend.Raw) error {
	return asker{host: h}.Notify(ctx, method, params)
}

// Restrictions implements [backend.Host].
func (h *host) Restrictions() (ask, deny []string) {
	if p := h.access.Permits.Configured; p != nil {
		return p.Ask, p.Deny
	}
	return nil, nil
}

// Ran implements [backend.Host].
func (h *host) Ran(before, after backend.Action) {
	was, _ := before.(permission.Action)
	is, _ := after.(permission.Action)
	h.access.Permits.Renew(was, is.Command.State)
}

// Workspace implements [backend.Host].
func (h *host) Workspace() *workspace.Workspace { return h.access.Guarded }

// Tools implements [backend.Host].
func (h *host) Tools() backend.Tools { return h.conversation.servers }

// Catalog implements [backend.Host].
func (h *host) Catalog() *discovery.Catalog { return h.catalog.Found() }

// history returns the stored history of the session. Before the session is stored, it returns
// before, if that is not nil.
func (h *host) history(before iter.Seq2[backend.Update, error]) iter.Seq2[backend.Update, error] {
	return func(yield func(backend.Update, error) bool) {
		switch {
		case h.gate.Phase() > gate.Opening:
			stored := h.adapter.options.Store.History(h.adapter.base, h.storeID)
			sessionstore.WithoutEnds(stored)(yield)
		case before != nil:
			sessionstore.WithoutEnds(before)(yield)
		}
	}
}

// Update implements [backend.Updates].
func (h *host) Update(ctx context.Context, u backend.Update) error {
	return h.sendOutside(ctx, u, transcript.ShowFirst)
}

// Commit implements [backend.Updates].
func (h *host) Commit(ctx context.Context, u backend.Update) error {
	return h.sendOutside(ctx, u, transcript.StoreFirst)
}

// Replay implements [backend.Host].
func (h *host) Replay(ctx context.Context, u backend.Update) error {
	if err := transcript.Check(u); err != nil {
		return err
	}
	if err := h.stopPrevious(ctx); err != nil {
		return err
	}
	return h.replay.Add(ctx, u)
}

// stopPrevious is endPrevious for the backend, while that opens its part.
func (h *host) stopPrevious(ctx context.Context) error {
	if h.gate.Phase() != gate.Opening { // otherwise it would end turns of the session itself
		return backend.ErrClosed
	}
	return h.endPrevious(ctx)
}

// endPrevious ends the turns of the session that this one replaces, unless they go on in it.
func (h *host) endPrevious(ctx context.Context) error {
	if h.keepsTurns {
		return nil
	}
	return h.queue.EndTurns(ctx, backend.ErrCancelled)
}

// sendOutside buffers an update that belongs to no turn, or sends it once those that were buffered
// are sent.
func (h *host) sendOutside(ctx context.Context, u backend.Update, in transcript.Order) error {
	if buffered, err := h.gate.Buffer(u); buffered || err != nil {
		return err
	}
	s, err := h.gate.Wait(ctx)
	if err != nil {
		return err
	}
	return s.transcript.Send(ctx, u, in)
}

// SaveState implements [backend.Host].
func (h *host) SaveState(ctx context.Context, state []byte) error {
	if len(state) > backend.MaxState {
		return jsonrpc.Errorf(jsonrpc.CodeInternal,
			"the agent's session state is over the limit of 64 KiB")
	}
	return h.gate.SaveState(ctx, state)
}

// isActive reports whether the active session is that of h.
func (h *host) isActive() bool {
	s := h.queue.Active()
	return s != nil && s.host == h
}

// inTurn reports whether the session is live, and in a turn; see session.inTurn.
func (h *host) inTurn() bool {
	s, live := h.gate.Live()
	return live && s.inTurn()
}

// free frees what h holds, once, after the given steps, which free what was opened for h.
func (h *host) free(ctx context.Context, steps ...func(context.Context) error) {
	h.freed.Do(func() {
		h.gate.Advance(gate.Closed)
		closeRoots := func(context.Context) error { return h.unguarded.Close() }
		h.adapter.closeAll(ctx, h.id, append(steps, closeRoots)...)
	})
}
