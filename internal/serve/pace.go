package serve

import (
	"encoding/json"
	"net/http"

	"golang.org/x/time/rate"

	"github.com/acp-agent/acp-agent/internal/serve/websocket"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

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

// paced is a connection of a user. Its messages wait while the user sends too many over all
// connections, so that others have their share of the processors.
type paced struct {
	*websocket.Conn
	pace *rate.Limiter // of the user
}

// Read implements acp.Conn.
func (c *paced) Read() ([]byte, error) {
	message, err := c.Conn.Read()
	if err != nil {
		return nil, err
	}
	return message, c.pace.WaitN(c.Context(), min(units(message), c.pace.Burst()))
}

// units returns as how much a message counts. An agent that reads many files of an editor gets an
// answer for each.
func units(message []byte) int {
	size := len(message) / bytesPerUnit
	raw := strictjson.Find(message, "method")
	if raw == nil && (strictjson.Find(message, "result") != nil || strictjson.Find(message, "error") != nil) {
		return 1 + size
	}
	var method string
	_ = json.Unmarshal(raw, &method) // what is not a name is not a method either
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
