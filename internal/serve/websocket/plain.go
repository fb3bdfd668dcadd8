package websocket

import (
	"context"
	"io"

	"github.com/coder/websocket"
)

// plain is a connection to a program that is not acp-agent. It ends with its socket.
type plain struct {
	receiver
	socket *websocket.Conn
}

func newPlain(of side, socket *websocket.Conn) *plain {
	socket.SetReadLimit(int64(of.max))
	c := &plain{newReceiver(of), socket}
	c.tasks.Go(func() {
		c.watch(c.ctx, c.answersPing)
		c.finish(ErrLost)
	})
	c.tasks.Go(func() { c.finish(c.pump()) })
	return c
}

func (c *plain) finish(err error) {
	c.end(err) // first: pump may be waiting for room
	_ = c.socket.CloseNow()
}

// pump keeps the messages that arrive for Read. Its error is io.EOF when the other side has closed
// the connection.
func (c *plain) pump() error {
	for {
		kind, message, err := c.receive(c.ctx, c.socket)
		switch status := websocket.CloseStatus(err); {
		case status == websocket.StatusNormalClosure, status == websocket.StatusGoingAway:
			return io.EOF
		case err != nil:
			return whyLost(err)
		case kind != websocket.MessageText:
			return refuse(c.socket)
		}
		if err := c.store(c.ctx, message); err != nil {
			return err
		}
	}
}

// answersPing reports whether the other side answers in an interval.
func (c *plain) answersPing() bool {
	ctx, cancel := context.WithTimeout(c.ctx, c.times.Ping)
	defer cancel()
	return c.socket.Ping(ctx) == nil
}

func (c *plain) Write(ctx context.Context, message []byte) error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	return c.socket.Write(ctx, websocket.MessageText, message)
}

func (c *plain) CloseWrite(context.Context) error { return c.Close() }
func (*plain) Unread() [][]byte                   { return nil } // the other side does not say it

func (c *plain) Close() error {
	var err error
	if c.ctx.Err() == nil {
		// Close the socket before ending the connection. Ending the connection first would
		// interrupt the pending read, which drops the socket without a close frame.
		err = c.socket.Close(websocket.StatusNormalClosure, "")
	}
	c.finish(io.EOF)
	c.tasks.Wait()
	c.in.drop()
	return err
}
