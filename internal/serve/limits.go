package serve

import (
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/serve/budget"
	"github.com/acp-agent/acp-agent/internal/serve/websocket"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// What a user may use of a server, over all connections, and what happens beyond that:
//
//	what                          limit                      beyond it
//	messages and requests         requestsPerSecond          they wait
//	large messages at a time      one, see package budget    they wait
//	bytes of messages in memory   messageBudget              a request is refused, output waits
//	connections                   Options.Limits             the longest lost one ends, or the new one
//	sessions, turns               Options.Limits             they are refused
//	bytes in the store            Options.StoredBytes        sessions, turns, replays are refused
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

// pace returns how fast a user may send requests, over all connections.
func (s *Server) pace(name string) *rate.Limiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paces[name] == nil {
		s.paces[name] = newPace()
	}
	return s.paces[name]
}
