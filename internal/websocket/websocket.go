// Package websocket carries the messages of an ACP connection over WebSocket: one message of the
// protocol in each text message.
package websocket

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// Path is where an ACP server accepts connections.
const Path = "/acp"

// pingEvery is how often each side asks whether the other one is still there, and how long it waits
// for the answer. Between them there may be a firewall that forgets silent connections.
const pingEvery = 30 * time.Second

// Protocol is the subprotocol of two acp-agents. In it an empty message is the end of what a side
// sends: WebSocket itself has no half-closed connections.
const Protocol = "acp-agent"

// Conn is a connection to the other side. It implements acp.Conn.
type Conn struct {
	socket  *websocket.Conn
	pinging sync.WaitGroup
	end     context.CancelFunc
}

// Accept accepts a connection from a client, whose messages may have up to max bytes. It has
// answered the request if it fails. It rejects web pages of other origins.
func Accept(w http.ResponseWriter, r *http.Request, max int) (*Conn, error) {
	w.Header().Set("Acp-Connection-Id", rand.Text())
	socket, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{Protocol}})
	if err != nil {
		return nil, err
	}
	return newConn(socket, max), nil
}

// Dial connects to the server at url, and authenticates with token.
func Dial(ctx context.Context, url, token string, max int) (*Conn, error) {
	socket, response, err := websocket.Dial(ctx, url, &websocket.DialOptions{
		HTTPHeader:   http.Header{"Authorization": {"Bearer " + token}},
		Subprotocols: []string{Protocol},
	})
	if err == nil {
		return newConn(socket, max), nil
	}
	if response == nil || response.StatusCode == http.StatusSwitchingProtocols {
		return nil, err
	}
	const most = 1 << 10
	said, _ := io.ReadAll(io.LimitReader(response.Body, most))
	return nil, &RefusedError{Status: response.StatusCode, Message: strings.TrimSpace(string(said))}
}

// RefusedError is returned by [Dial] if the server answers but accepts no connection.
type RefusedError struct {
	Status  int
	Message string // what the server said
}

func (e *RefusedError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the server answered %d %s: %s", e.Status,
		http.StatusText(e.Status), e.Message))
}

func newConn(socket *websocket.Conn, max int) *Conn {
	socket.SetReadLimit(int64(max))
	ctx, end := context.WithCancel(context.Background())
	c := &Conn{socket: socket, end: end}
	c.pinging.Go(func() { c.ping(ctx) })
	return c
}

// ping ends the connection when the other side no longer answers.
func (c *Conn) ping(ctx context.Context) {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		wait, cancel := context.WithTimeout(ctx, pingEvery)
		err := c.socket.Ping(wait)
		cancel()
		if err != nil {
			_ = c.socket.CloseNow()
			return
		}
	}
}

// Read returns the next message. Its error is io.EOF when the other side has closed the connection.
// It does not use its context, whose end would close the connection before everything is written.
func (c *Conn) Read(context.Context) ([]byte, error) {
	kind, message, err := c.socket.Read(context.Background())
	switch websocket.CloseStatus(err) {
	case websocket.StatusNormalClosure, websocket.StatusGoingAway:
		return nil, io.EOF
	}
	switch {
	case err != nil:
		return nil, err
	case kind != websocket.MessageText:
		return nil, errors.New("received a message that is not text")
	case len(message) == 0 && c.socket.Subprotocol() == Protocol:
		return nil, io.EOF
	}
	return message, nil
}

// CloseWrite says that nothing more will be written. If the other side is not acp-agent, it closes
// the connection.
func (c *Conn) CloseWrite(ctx context.Context) error {
	if c.socket.Subprotocol() == Protocol {
		return c.socket.Write(ctx, websocket.MessageText, nil)
	}
	return c.Close()
}

// Write sends a message.
func (c *Conn) Write(ctx context.Context, message []byte) error {
	return c.socket.Write(ctx, websocket.MessageText, message)
}

// Close ends the connection: it tells the other side and waits for up to 5 seconds until that has
// answered.
func (c *Conn) Close() error {
	c.end()
	err := c.socket.Close(websocket.StatusNormalClosure, "")
	c.pinging.Wait()
	return err
}
