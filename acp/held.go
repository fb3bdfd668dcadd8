package acp

import (
	"context"

	"github.com/acp-agent/acp-agent/acp/backend"
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
func (h *host) heldKinds() map[string]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	kinds := make(map[string]bool)
	for _, u := range h.held {
		kinds[updateKind(u)] = true
	}
	return kinds
}

// close makes everything fail from now on.
func (h *host) close() { h.enter(hostClosed) }
