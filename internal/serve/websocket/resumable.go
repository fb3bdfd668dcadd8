package websocket

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"

	"github.com/acp-agent/acp-agent/internal/text/pause"
)

// idleAtOnce and idlePerSecond limit the confirmations over a socket that confirm nothing new.
const idleAtOnce, idlePerSecond = 100, 10

// resumable is a connection between two acp-agents, which outlives its sockets.
type resumable struct {
	receiver

	// regain is called with mu when a socket was lost. It provides for another one, or for the end
	// of the connection.
	regain func(*resumable)
	gone   context.Context // ends when the connection is closed
	leave  context.CancelFunc

	writing      sync.Mutex // held while messages are written, which keeps their order
	out          outbox
	confirmedAll atomic.Bool // the other side confirmed what it read, and has closed

	mu     sync.Mutex
	socket *websocket.Conn // nil while the connection is lost
	unplug func()          // closes the last socket, and waits until nothing more is read from it
	lostAt time.Time       // when the last socket was lost that is to be replaced
}

func newResumable(of side, regain func(*resumable)) *resumable {
	gone, leave := context.WithCancel(context.Background())
	return &resumable{receiver: newReceiver(of), regain: regain, gone: gone, leave: leave,
		out: outbox{budget: of.budget}, unplug: func() {}}
}

// Read takes an empty message for the end of what the other side sends.
func (c *resumable) Read() ([]byte, error) {
	message, err := c.receiver.Read()
	if err == nil && len(message) == 0 {
		c.StopRead()
		return nil, io.EOF
	}
	return message, err
}

func (c *resumable) Write(ctx context.Context, message []byte) error {
	message = slices.Clone(message)
	for {
		room, err := c.send(message)
		if room == nil {
			return err
		}
		select { // while attach may write
		case <-room:
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// send keeps a message until it is confirmed, and sends it unless the connection is lost. Without
// room to keep it, send returns a channel that is closed when there may be some.
func (c *resumable) send(message []byte) (room <-chan struct{}, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.ctx.Err() != nil {
		return nil, context.Cause(c.ctx)
	}
	if room := c.out.add(message); room != nil {
		return room, nil
	}
	socket := c.current()
	if socket != nil && socket.Write(c.ctx, websocket.MessageText, message) != nil {
		_ = socket.CloseNow() // it is sent when the connection is resumed
	}
	return nil, nil
}

func (c *resumable) CloseWrite(ctx context.Context) error { return c.Write(ctx, nil) }

func (c *resumable) Close() error {
	var err error
	if socket := c.current(); socket != nil {
		c.sendConfirmation(socket)
		err = socket.Close(websocket.StatusNormalClosure, confirmedAll) // before the end: see plain
	}
	c.finish(io.EOF)
	c.tasks.Wait()
	c.in.drop()
	c.out.drop()
	c.leave()
	return err
}

// confirmedAll is the reason with which a connection is closed after everything that was read was
// confirmed: the other side has not read what it has not confirmed.
const confirmedAll = "everything that was read is confirmed"

func (c *resumable) Unread() [][]byte {
	if !c.confirmedAll.Load() {
		return nil
	}
	return c.out.pending()
}

// current returns the socket, or nil.
func (c *resumable) current() *websocket.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.socket
}

// lostSince returns when a connection was lost that the other side may resume, otherwise the zero
// time.
func (c *resumable) lostSince() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.socket != nil || c.ctx.Err() != nil {
		return time.Time{}
	}
	return c.lostAt
}

// attach makes the connection use a socket. theirs is the number of messages that the other side
// has received so far, and ours how many this side has told it: if more have arrived meanwhile over
// another socket, this one is closed, and the other side tries again.
func (c *resumable) attach(socket *websocket.Conn, theirs, ours uint64) {
	socket.SetReadLimit(int64(c.max))
	c.writing.Lock() // new messages follow those that are sent again
	defer c.writing.Unlock()
	if ok, _ := c.out.confirm(theirs); !ok {
		_ = socket.CloseNow()
		c.finish(errors.New("the other side received messages that were not sent"))
		return
	}
	c.mu.Lock()
	if received, _ := c.in.counts(); c.ctx.Err() != nil || c.socket != nil || received != ours {
		c.mu.Unlock()
		_ = socket.CloseNow()
		return
	}
	pumped := make(chan struct{})
	ctx, stop := context.WithCancel(c.ctx)
	unplug := func() {
		_ = socket.CloseNow()
		stop()
		<-pumped
	}
	c.socket, c.unplug = socket, unplug
	again := c.out.pending()
	c.tasks.Go(func() {
		defer stop()
		c.lost(socket, c.pump(ctx, socket))
		close(pumped)
	})
	c.tasks.Go(func() { c.confirmRead(ctx, socket) })
	c.tasks.Go(func() {
		c.watch(ctx, func() bool { return false })
		unplug()
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
func (c *resumable) detach() uint64 {
	c.mu.Lock()
	unplug := c.unplug
	c.mu.Unlock()
	unplug()
	received, _ := c.in.counts()
	return received
}

// lost notes why nothing more can be read from the socket. After ErrLost the connection can be
// resumed. Otherwise it ends.
func (c *resumable) lost(socket *websocket.Conn, err error) {
	_ = socket.CloseNow()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.socket = nil
	if c.ctx.Err() != nil || !errors.Is(err, ErrLost) {
		c.end(err)
		return
	}
	c.lostAt = time.Now()
	c.regain(c)
}

// await ends a connection that the client does not resume in time.
func (c *resumable) await() {
	lostAt := c.lostAt
	time.AfterFunc(c.times.Lost, func() {
		if c.lostSince() == lostAt {
			c.finish(ErrLost)
		}
	})
}

// reconnect connects again, until the server refuses or it takes too long.
func (c *resumable) reconnect(
	redial func(ctx context.Context, received uint64) (s *websocket.Conn, theirs uint64, err error),
) {
	received, _ := c.in.counts()
	ctx, cancel := context.WithTimeoutCause(c.ctx, c.times.Lost, ErrLost)
	defer cancel()
	why := ErrLost
	for range pause.Attempts(ctx) {
		socket, theirs, err := redial(ctx, received)
		if err == nil {
			c.attach(socket, theirs, received)
			return
		}
		if ctx.Err() == nil { // an interrupted attempt says less than the one before
			why = fmt.Errorf("%w: %w", ErrLost, err)
		}
		if IsRefused(err) {
			break
		}
	}
	c.finish(why)
}

func (c *resumable) finish(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(err)
}

// pump keeps the messages that come from a socket for Read. The other side stops writing before
// they are too large, so confirmations arrive even while both sides write more than they read. Its
// error is io.EOF when the other side has closed the connection. StatusGoingAway comes from a proxy
// that is being configured or ended, so then the connection is lost.
func (c *resumable) pump(ctx context.Context, socket *websocket.Conn) error {
	idle := rate.NewLimiter(idlePerSecond, idleAtOnce)
	for {
		kind, message, err := c.receive(ctx, socket)
		switch {
		case websocket.CloseStatus(err) == websocket.StatusNormalClosure:
			end, _ := errors.AsType[websocket.CloseError](err)
			c.confirmedAll.Store(end.Reason == confirmedAll)
			return io.EOF
		case err != nil:
			return whyLost(err)
		case kind == websocket.MessageText && c.in.isFull():
			return errUnasked
		case kind == websocket.MessageText:
			if err := c.store(ctx, message); err != nil {
				return err
			}
		case !c.confirmedBy(ctx, message, idle):
			return refuse(socket)
		}
	}
}

// confirmedBy notes what a message confirms, and reports whether it can be true. If it confirms
// nothing new, idle says when the next one may come.
func (c *resumable) confirmedBy(ctx context.Context, message []byte, idle *rate.Limiter) bool {
	if len(message) != 8 {
		return false
	}
	ok, isNew := c.out.confirm(binary.BigEndian.Uint64(message))
	if ok && !isNew {
		_ = idle.Wait(ctx) // if it fails, so does the next read
	}
	return ok
}

// confirmRead tells the other side how many messages were read: after some of them, and regularly,
// from which it also knows that this side is there.
func (c *resumable) confirmRead(ctx context.Context, socket *websocket.Conn) {
	ticker := time.NewTicker(c.times.Ping)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.in.confirm:
		case <-ticker.C:
		}
		c.sendConfirmation(socket)
	}
}

// sendConfirmation tells the other side how many messages were read. A large message in front of it
// can take long.
func (c *resumable) sendConfirmation(socket *websocket.Conn) {
	_, read := c.in.counts()
	err := socket.Write(c.ctx, websocket.MessageBinary, binary.BigEndian.AppendUint64(nil, read))
	if err != nil {
		_ = socket.CloseNow()
	}
}
