// Package websocket carries the messages of an ACP connection over WebSocket: one message of the
// protocol in each text message.
//
// Between two acp-agents a connection outlives the network: when it is lost, the client connects
// again, and both sides send what the other one has not received. They count messages for that, and
// a binary message says how many were received. With other programs there is one text message for
// each message of the protocol and nothing else, and a lost connection has ended.
package websocket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// protocol is the subprotocol of two acp-agents. In it an empty message is the end of what a side
// sends: WebSocket itself has no half-closed connections.
const protocol = "acp-agent"

const (
	// idHeader names a connection: in the response to a new one, and in a request to resume it.
	idHeader = "Acp-Connection-Id"
	// receivedHeader says how many messages a side has received, when a connection is resumed.
	receivedHeader = "Acp-Agent-Received"
)

// Times are how long a connection waits. The zero value means the defaults.
type Times struct {
	// Lost is how long a lost connection can be resumed. Default 2 minutes.
	Lost time.Duration
	// Ping is how often each side says that it is there. A connection is lost when nothing has come
	// for two to three times as long. Default 10 s.
	Ping time.Duration
	// Dial is how long the server may take to accept a connection, each time. Default 15 s.
	Dial time.Duration
}

func (t Times) withDefaults() Times {
	return Times{Lost: cmp.Or(t.Lost, 2*time.Minute), Ping: cmp.Or(t.Ping, 10*time.Second),
		Dial: cmp.Or(t.Dial, 15*time.Second)}
}

// refusedError is the error of [Dial] if the server answers but accepts no connection.
type refusedError struct {
	Status  int
	Message string // what the server said
}

func (e *refusedError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the server answered %d %s: %s", e.Status,
		http.StatusText(e.Status), e.Message))
}

// IsRefused reports whether err says that the server does not accept the client, now or later.
func IsRefused(err error) bool {
	refused, ok := errors.AsType[*refusedError](err)
	return ok && refused.Status < http.StatusInternalServerError
}

// Dial connects to the server with the URL to, and authenticates with token. Messages that the
// server sends may have at most max bytes.
func Dial(ctx context.Context, to, token string, max int, times Times) (Conn, error) {
	times = times.withDefaults()
	socket, response, err := dial(ctx, to, token, nil, times.Dial)
	if err != nil {
		return nil, err
	}
	id := response.Header.Get(idHeader)
	of := side{id: id, max: max, maxUnread: math.MaxInt, times: times}
	if socket.Subprotocol() != protocol {
		return newPlain(of, socket), nil
	}
	redial := func(ctx context.Context, received uint64) (*websocket.Conn, uint64, error) {
		socket, response, err := dial(ctx, to, token, http.Header{
			idHeader: {id}, receivedHeader: {strconv.FormatUint(received, 10)},
		}, times.Dial)
		if err != nil {
			return nil, 0, err
		}
		n, err := strconv.ParseUint(response.Header.Get(receivedHeader), 10, 64)
		if err != nil {
			_ = socket.CloseNow()
			return nil, 0, &refusedError{response.StatusCode,
				"the server did not resume the connection"}
		}
		return socket, n, nil
	}
	c := newResumable(of, func(c *resumable) {
		c.tasks.Go(func() { c.reconnect(redial) })
	})
	c.attach(socket, 0, 0)
	return c, nil
}

// client follows no redirects: they could lead the token to another server, or past TLS.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
	return http.ErrUseLastResponse
}}

// dial opens a WebSocket with additional headers, within a time.
func dial(
	ctx context.Context, to, token string, additional http.Header, within time.Duration,
) (*websocket.Conn, *http.Response, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("no answer within %v", within))
	defer cancel()
	header := http.Header{"Authorization": {"Bearer " + token}}
	maps.Copy(header, additional)
	socket, response, err := websocket.Dial(ctx, to, &websocket.DialOptions{
		HTTPClient: client, HTTPHeader: header, Subprotocols: []string{protocol},
	})
	if err != nil && ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return nil, nil, failed.Err // why, without how
	}
	if err == nil || response == nil || response.StatusCode == http.StatusSwitchingProtocols {
		return socket, response, err
	}
	const most = 1 << 10
	said, _ := io.ReadAll(io.LimitReader(response.Body, most))
	if elsewhere, err := response.Location(); err == nil && response.StatusCode < 400 {
		said = fmt.Appendf(nil, "connect to %s instead", elsewhere)
	}
	return nil, nil, &refusedError{Status: response.StatusCode,
		Message: strings.TrimSpace(string(said))}
}
