package serve

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// health knows whether the session store can be used, and says so once when that changes. Its
// methods are safe for concurrent use.
type health struct {
	store sessionstore.Shared
	log   *slog.Logger

	mu     sync.Mutex
	down   error     // why the store cannot be used, nil if it can
	since  time.Time // when it became so
	failed int       // requests since then
	fresh  time.Time // until when the store is not asked again
}

// note notes that a request of a client was answered with err.
func (h *health) note(err error) {
	if !isOutage(err) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.setLocked(err)
	h.failed++
}

// isOutage reports whether a request failed because the session store cannot be used.
func isOutage(err error) bool {
	if _, ok := errors.AsType[*sessionstore.UnavailableError](err); ok {
		return true
	}
	answer, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && string(strictjson.Find(answer.Data, "reason")) == `"store_unavailable"`
}

// setLocked notes why the store cannot be used, or with nil that it can.
func (h *health) setLocked(err error) {
	switch {
	case err != nil && h.down == nil:
		h.log.Error("the session store cannot be used", "error", err)
		h.since, h.failed = time.Now(), 0
	case err == nil && h.down != nil:
		h.log.Warn("the session store can be used again",
			"after", time.Since(h.since).Round(time.Millisecond), "failedRequests", h.failed)
	}
	h.down = err
}

// check asks the store, unless it was asked in the last second or somebody is asking it, and returns
// why the store cannot be used.
func (h *health) check(ctx context.Context) error {
	const patience, fresh = 2 * time.Second, time.Second
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Now().Before(h.fresh) {
		return h.down
	}
	h.fresh = time.Now().Add(patience + fresh)
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := h.store.Ping(ctx)
	h.mu.Lock()
	h.fresh = time.Now().Add(fresh)
	h.setLocked(err)
	return err
}
