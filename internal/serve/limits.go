package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/serve/budget"
	"github.com/acp-agent/acp-agent/internal/serve/websocket"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// What a user may use of a server, over all connections, and what happens beyond that:
//
//	what                          limit                      beyond it
//	messages and requests         requestsPerSecond          they wait
//	large messages at a time      one, see package budget    they wait
//	bytes of messages in memory   messageBudget              a request is refused, output waits
//	connections                   Options.Limits             the longest lost one ends, or the new one
//	sessions, turns               Options.Limits             they are refused
//	bytes in the store            Options.StoredBytes        sessions and turns are refused
//	records in the logs           package loglimit           they are counted, or the user waits
//	agent processes               proxy.PoolLimits           sessions are refused

// DefaultLimits returns what a user may use at once. Messages have limits of their own.
func DefaultLimits() acp.Limits { return acp.Limits{Connections: 100, Sessions: 200, Turns: 50} }

// messageBudget returns the limits for messages of up to maxLine bytes. A user can send two of them
// at once.
func messageBudget(memory, maxLine int) *budget.Budget {
	perUser := max(memory/4, 2*maxLine)
	return budget.New(budget.Limits{
		PerUser: perUser, Total: max(memory, perUser), Message: maxLine,
	})
}

// A user may send messages that count as so many requests at once, and then so many a second. They
// are counted in units, because an answer counts less.
const (
	requestUnits                      = 20
	requestsAtOnce, requestsPerSecond = 500, 50
	bytesPerUnit                      = 64 << 10 / requestUnits
	historyUnits                      = 10 * requestUnits // of a request that reads a history
)

func newPace() *rate.Limiter {
	return rate.NewLimiter(requestsPerSecond*requestUnits, requestsAtOnce*requestUnits)
}

// paced is a connection of a user, with what limits the user. Its messages wait while the user
// sends too many over all connections, so that others have their share of the processors.
type paced struct {
	websocket.Conn
	budget.User // makes room for requests, as acp.Conn says
	pace        *rate.Limiter
}

// Read implements acp.Conn.
func (c *paced) Read() ([]byte, error) {
	message, err := c.Conn.Read()
	if err != nil {
		return nil, err
	}
	n := min(units(message), c.pace.Burst())
	if c.pace.AllowN(time.Now(), n) { // also what was sent right before the end
		return message, nil
	}
	return message, c.pace.WaitN(c.Context(), n)
}

// units returns as how much a message counts. An agent that reads many files of an editor gets an
// answer for each.
func units(message []byte) int {
	size := len(message) / bytesPerUnit
	has := func(name string) bool { return strictjson.Find(message, name) != nil }
	if !has("method") && (has("result") || has("error")) {
		return 1 + size
	}
	method := strictjson.FindText(message, "method")
	if method == protocol.SessionLoad || method == protocol.SessionFork {
		return requestUnits + historyUnits + size
	}
	return requestUnits + size
}

// pageUnits returns as how much a request of the page counts.
func pageUnits(r *http.Request) int {
	if r.PathValue("name") == "changes" {
		return requestUnits + historyUnits
	}
	return requestUnits
}

const (
	// quotaFresh is how long the store's own figure is used; other servers may store more
	// meanwhile. A user who has reached the limit may have deleted sessions, so then it is
	// quotaRecheck.
	quotaFresh   = 10 * time.Minute
	quotaRecheck = 5 * time.Second
)

// share counts what a user takes: messages, and bytes of sessions in the store. Its methods are
// safe for concurrent use.
type share struct {
	pace *rate.Limiter

	mu    sync.Mutex
	used  int
	asked time.Time // when the store was asked last
}

// take counts n more bytes. It returns a [*jsonrpc.Error] if they exceed the limit, but no error of
// the store, which the caller meets anyway.
func (u *share) take(ctx context.Context, s sessionstore.Store, n, limit int) error {
	if limit == 0 {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	age := time.Since(u.asked)
	if age > quotaFresh || u.used+n > limit && age > quotaRecheck {
		used, err := s.Size(ctx)
		if err != nil {
			return nil
		}
		u.used, u.asked = used, time.Now()
	}
	if u.used+n > limit {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
			Message: fmt.Sprintf("your sessions take up all of the %s that the server allows "+
				"you: delete some of them first", text.Size(limit)),
			Data: json.RawMessage(`{"reason":"quota_exceeded"}`)}
	}
	u.used += n
	return nil
}

// add counts n more bytes of what was begun.
func (u *share) add(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.used += n
}

// share returns what a user takes, over all connections.
func (s *Server) share(name string) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.shares[name]
	if u == nil {
		u = &share{pace: newPace()}
		s.shares[name] = u
	}
	return u
}

// limitedStore is a user's session store that refuses new sessions and turns once the user's
// sessions take too much. Turns that have begun are stored to their end.
type limitedStore struct {
	sessionstore.Store
	share *share
	limit int // bytes, 0 for none
}

func (s limitedStore) Create(
	ctx context.Context, n sessionstore.Session,
) (sessionstore.Lease, error) {
	if err := s.share.take(ctx, s.Store, sessionstore.SessionBytes, s.limit); err != nil {
		return sessionstore.Lease{}, err
	}
	return s.Store.Create(ctx, n)
}

func (s limitedStore) Fork(
	ctx context.Context, source sessionstore.ID, n sessionstore.Session,
) (sessionstore.Lease, error) {
	if err := s.share.take(ctx, s.Store, sessionstore.SessionBytes, s.limit); err != nil {
		return sessionstore.Lease{}, err
	}
	return s.Store.Fork(ctx, source, n)
}

func (s limitedStore) BeginTurn(
	ctx context.Context, l sessionstore.Lease, t sessionstore.Turn,
) (int64, error) {
	if err := s.share.take(ctx, s.Store, sizeOf(t.Prompt), s.limit); err != nil {
		return 0, err
	}
	return s.Store.BeginTurn(ctx, l, t)
}

func (s limitedStore) Append(
	ctx context.Context, l sessionstore.Lease, segment []sessionstore.Update,
) error {
	s.share.add(sizeOf(segment))
	return s.Store.Append(ctx, l, segment)
}

func sizeOf(updates []sessionstore.Update) (n int) {
	for _, u := range updates {
		n += len(u.Raw)
	}
	return n
}
