package serve

import (
	"encoding/json"

	"golang.org/x/time/rate"

	"github.com/acp-agent/acp-agent/internal/serve/websocket"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// A user may send a burst of requests, and then so many a second. A large one counts as several, and
// so does one that reads a history.
const (
	requestBurst, requestRate = 500, 50
	requestUnit               = 64 << 10
	historyRequests           = 10
)

// paced is a connection of a user. Its requests wait while the user sends too many over all
// connections, so that others have their share of the processors. Answers do not wait: there are no
// more of them than questions.
type paced struct {
	*websocket.Conn
	requests *rate.Limiter // of the user
}

// Read implements acp.Conn.
func (c *paced) Read() ([]byte, error) {
	message, err := c.Conn.Read()
	if err != nil {
		return nil, err
	}
	raw := strictjson.Find(message, "method")
	if raw == nil {
		return message, nil
	}
	count := 1 + len(message)/requestUnit
	var method string
	_ = json.Unmarshal(raw, &method) // what is not a name is not a method either
	if method == protocol.SessionLoad || method == protocol.SessionFork {
		count += historyRequests
	}
	return message, c.requests.WaitN(c.Context(), min(count, requestBurst))
}
