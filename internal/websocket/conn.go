package websocket

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"
)

const (
	// maxUnconfirmed is how many bytes may be sent without being confirmed. Beyond it Write waits.
	maxUnconfirmed = 4 << 20
	// confirmMessages and confirmBytes are after how much each side confirms what it received.
	confirmMessages, confirmBytes = 64, 256 << 10
)

// Conn is a connection to the other side. It implements acp.Conn.
type Conn struct {
	id        string
	resumable bool // both sides are acp-agent
	max       int
	times     Times
	// redial connects again, on the client's side. It is nil on the server's.
	redial func(ctx context.Context, received uint64) (s *websocket.Conn, theirs uint64, err error)
	onEnd  func() // may be nil

	incoming chan []byte
	over     bool            // the other side sends nothing more; used by Read only
	ctx      context.Context // ends with the connection
	end      context.CancelCauseFunc
	tasks    sync.WaitGroup // grows only before the connection has ended

	writing sync.Mutex // held while messages are written, which keeps their order

	mu          sync.Mutex
	socket      *websocket.Conn // nil while there is none
	pumped      chan struct{}   // closed when nothing more is read from the last socket
	expiry      *time.Timer     // ends a connection that is not resumed
	sent        uint64          // messages that were passed to Write
	unconfirmed [][]byte        // the last of them
	size        int             // of unconfirmed, in bytes
	room        chan struct{}   // closed when size shrinks; nil if nothing waits
	received    uint64
	confirm     chan struct{} // tells that there is something to confirm
}

var (
	// errLost ends a connection that cannot be resumed.
	errLost = errors.New("the connection was lost")
	// errTooLarge ends a connection over which a message was sent that is larger than the other
	// side accepts.
	errTooLarge = errors.New("a message is larger than the limit of the side that received it; " +
		"--max-line raises it")
)

func newConn(id string, resumable bool, max int, times Times) *Conn {
	c := &Conn{id: id, resumable: resumable, max: max, times: times.withDefaults(),
		incoming: make(chan []byte), confirm: make(chan struct{}, 1)}
	c.ctx, c.end = context.WithCancelCause(context.Background())
	c.tasks.Go(c.watch)
	return c
}

// Read returns the next message. Its error is io.EOF when the other side has closed the connection.
// It does not use its context, whose end must not keep what is written from being sent.
func (c *Conn) Read(context.Context) ([]byte, error) {
	if c.over {
		return nil, io.EOF
	}
	select {
	case message := <-c.incoming:
		if len(message) == 0 && c.resumable {
			c.over = true
			return nil, io.EOF
		}
		return message, nil
	case <-c.ctx.Done():
		return nil, context.Cause(c.ctx)
	}
}

// Write sends a message. While a lost connection can be resumed, it keeps it.
func (c *Conn) Write(ctx context.Context, message []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if !c.resumable {
		socket := c.current()
		if socket == nil {
			return context.Cause(c.ctx)
		}
		return socket.Write(ctx, websocket.MessageText, message)
	}
	socket, err := c.keep(ctx, slices.Clone(message))
	if err == nil && socket != nil && socket.Write(c.ctx, websocket.MessageText, message) != nil {
		_ = socket.CloseNow() // it is sent when the connection is resumed
	}
	return err
}

// CloseWrite says that nothing more will be written. If the other side is not acp-agent, it closes
// the connection.
func (c *Conn) CloseWrite(ctx context.Context) error {
	if c.resumable {
		return c.Write(ctx, nil)
	}
	return c.Close()
}

// Close ends the connection: it tells the other side and waits for up to 5 seconds until that has
// answered.
func (c *Conn) Close() error {
	var err error
	if socket := c.current(); socket != nil {
		// While the connection goes on, because its end would interrupt reading from the socket,
		// and that closes it without telling.
		err = socket.Close(websocket.StatusNormalClosure, "")
	}
	c.finish(io.EOF)
	c.tasks.Wait()
	return err
}

// current returns the socket, nil if there is none.
func (c *Conn) current() *websocket.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.socket
}

// keep adds a message to those that are not confirmed, once there is room, and returns the socket
// for it, nil if there is none.
func (c *Conn) keep(ctx context.Context, message []byte) (*websocket.Conn, error) {
	for {
		c.mu.Lock()
		if c.size < maxUnconfirmed {
			c.unconfirmed, c.size = append(c.unconfirmed, message), c.size+len(message)
			c.sent++
			socket := c.socket
			c.mu.Unlock()
			return socket, context.Cause(c.ctx)
		}
		if c.room == nil {
			c.room = make(chan struct{})
		}
		room := c.room
		c.mu.Unlock()
		select {
		case <-room:
		case <-c.ctx.Done():
			return nil, context.Cause(c.ctx)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// confirmed forgets the messages that the other side has received, n in all. It reports whether n
// can be true.
func (c *Conn) confirmed(n uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.sent - uint64(len(c.unconfirmed))
	if n < first || n > c.sent {
		return false
	}
	for _, message := range c.unconfirmed[:n-first] {
		c.size -= len(message)
	}
	c.unconfirmed = slices.Delete(c.unconfirmed, 0, int(n-first))
	if c.room != nil {
		close(c.room)
		c.room = nil
	}
	return true
}

// attach makes the connection use a socket. theirs is the number of messages that the other side
// has received so far.
func (c *Conn) attach(socket *websocket.Conn, theirs uint64) {
	socket.SetReadLimit(int64(c.max))
	c.writing.Lock() // new messages follow those that are sent again
	defer c.writing.Unlock()
	if !c.confirmed(theirs) {
		_ = socket.CloseNow()
		c.finish(errors.New("the other side received messages that were not sent"))
		return
	}
	c.mu.Lock()
	if c.ctx.Err() != nil || c.socket != nil {
		c.mu.Unlock()
		_ = socket.CloseNow()
		return
	}
	if c.expiry != nil {
		c.expiry.Stop()
	}
	pumped := make(chan struct{})
	c.socket, c.pumped = socket, pumped
	again := slices.Clone(c.unconfirmed)
	c.tasks.Go(func() {
		err := c.pump(socket)
		close(pumped)
		c.lost(socket, err)
	})
	c.mu.Unlock()
	for _, message := range again {
		if socket.Write(c.ctx, websocket.MessageText, message) != nil {
			_ = socket.CloseNow()
			return
		}
	}
}

// detach takes the socket away, if there is one, and returns the number of received messages.
func (c *Conn) detach() uint64 {
	c.mu.Lock()
	socket, pumped := c.socket, c.pumped
	c.mu.Unlock()
	if socket != nil {
		_ = socket.CloseNow()
	}
	<-pumped
	c.lost(socket, errLost)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.received
}

// lost notes that nothing more can be read from a socket.
func (c *Conn) lost(socket *websocket.Conn, err error) {
	c.mu.Lock()
	if socket == nil || c.socket != socket {
		c.mu.Unlock()
		return
	}
	c.socket = nil
	resume := c.resumable && err != io.EOF && c.ctx.Err() == nil
	if resume && c.redial == nil {
		c.expiry = time.AfterFunc(c.times.Lost, func() { c.expire() })
	}
	if resume && c.redial != nil {
		c.tasks.Go(c.reconnect)
	}
	c.mu.Unlock()
	_ = socket.CloseNow()
	if !resume {
		c.finish(err)
	}
}

// expire ends the connection unless it was resumed.
func (c *Conn) expire() {
	if c.current() == nil {
		c.finish(errLost)
	}
}

// reconnect connects again, until the server refuses or it takes too long.
func (c *Conn) reconnect() {
	c.mu.Lock()
	received := c.received
	c.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(c.ctx, c.times.Lost, errLost)
	defer cancel()
	const first, longest = 50 * time.Millisecond, 5 * time.Second
	for pause := first; ; pause = min(2*pause, longest) {
		socket, theirs, err := c.redial(ctx, received)
		if err == nil {
			c.attach(socket, theirs)
			return
		}
		if refused, ok := errors.AsType[*refusedError](err); ok && refused.Status < 500 {
			c.finish(fmt.Errorf("%w: %w", errLost, err))
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			c.finish(fmt.Errorf("%w: %w", errLost, err))
			return
		}
	}
}

// finish ends the connection.
func (c *Conn) finish(err error) {
	c.mu.Lock()
	first := c.ctx.Err() == nil
	c.end(err)
	if c.expiry != nil {
		c.expiry.Stop()
	}
	c.mu.Unlock()
	if first && c.onEnd != nil {
		c.onEnd()
	}
}

// pump passes messages from a socket to Read. It never waits for writing, so that two sides that
// write much do not wait for each other. Its error is io.EOF when the other side has closed the
// connection.
func (c *Conn) pump(socket *websocket.Conn) error {
	var messages, bytes int // not confirmed
	for {
		kind, message, err := socket.Read(c.ctx)
		switch status := websocket.CloseStatus(err); {
		case status == websocket.StatusNormalClosure, status == websocket.StatusGoingAway:
			return io.EOF
		case status == websocket.StatusMessageTooBig, errors.Is(err, websocket.ErrMessageTooBig):
			c.finish(errTooLarge) // it would be sent again
			return err
		case err != nil:
			return err
		case kind == websocket.MessageBinary:
			if !c.resumable || len(message) != 8 || !c.confirmed(binary.BigEndian.Uint64(message)) {
				c.finish(errors.New("received a message that is not text"))
			}
			continue
		}
		select {
		case c.incoming <- message:
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		}
		c.mu.Lock()
		c.received++
		c.mu.Unlock()
		messages, bytes = messages+1, bytes+len(message)
		if messages >= confirmMessages || bytes >= confirmBytes {
			messages, bytes = 0, 0
			select {
			case c.confirm <- struct{}{}:
			default: // it will confirm this message too
			}
		}
	}
}

// watch confirms received messages, and closes a socket on which the other side does not answer.
func (c *Conn) watch() {
	ticker := time.NewTicker(c.times.Ping)
	defer ticker.Stop()
	for {
		alive := false
		select {
		case <-c.ctx.Done():
			return
		case <-c.confirm:
		case <-ticker.C:
			alive = true
		}
		c.mu.Lock()
		socket, received := c.socket, c.received
		c.mu.Unlock()
		if socket == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(c.ctx, c.times.Ping)
		var err error
		if c.resumable {
			err = socket.Write(ctx, websocket.MessageBinary, binary.BigEndian.AppendUint64(nil, received))
		}
		if alive && err == nil {
			err = socket.Ping(ctx)
		}
		cancel()
		if err != nil {
			_ = socket.CloseNow()
		}
	}
}
