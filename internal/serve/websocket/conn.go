package websocket

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"

	"github.com/acp-agent/acp-agent/internal/serve/budget"
	"github.com/acp-agent/acp-agent/internal/text/pause"
)

const (
	// window is how many bytes may be sent without being confirmed, and received without being
	// read. Beyond it Write, and reading from the network, wait.
	window = 4 << 20
	// idleAtOnce and idlePerSecond are how many confirmations that confirm nothing new may come
	// over a socket.
	idleAtOnce, idlePerSecond = 100, 10
	// maxUnread is how many messages a server keeps that were not read. Beyond it the next ones,
	// and confirmations, wait in the network.
	maxUnread = 100
)

// side says what a connection is to one of its sides. It does not change.
type side struct {
	id        string
	resumable bool // both sides are acp-agent
	max       int
	times     Times  // with the defaults
	onEnd     func() // may be called several times

	// redial connects again, on the client's side. It is nil on the server's.
	redial func(ctx context.Context, received uint64) (s *websocket.Conn, theirs uint64, err error)

	// On the server's side, owner has the connection, and budget limits what is held of messages.
	owner  string
	budget budget.User
}

// Conn is a connection to the other side. It implements acp.Conn.
type Conn struct {
	side

	handling bool            // Read has returned a large message; used by Read only
	allRead  atomic.Bool     // the other side sends nothing more, or StopRead was called
	ctx      context.Context // ends with the connection
	end      context.CancelCauseFunc
	gone     context.Context // ends when it is closed
	leave    context.CancelFunc
	tasks    sync.WaitGroup // grows only before the connection has ended

	writing      sync.Mutex  // held while messages are written, which keeps their order
	heard        atomic.Bool // something arrived since watch looked last
	confirmedAll atomic.Bool // the other side confirmed what it read, and has closed
	in           inbox
	out          outbox

	mu     sync.Mutex
	socket *websocket.Conn // nil while the connection is lost
	unplug func()          // closes the last socket, and waits until nothing more is read from it
	lostAt time.Time       // when the last socket was lost, if the other side may resume
}

var (
	// ErrLost ends a connection that cannot be resumed.
	ErrLost = errors.New("the connection was lost")
	// errReplaced ends a lost connection in whose place the user has another one.
	errReplaced = errors.New("the connection was lost, and another one took its place")
	// errTooLarge ends a connection over which a message was sent that is larger than the other
	// side accepts.
	errTooLarge = errors.New("a message is larger than the limit of the side that received it; " +
		"--max-line raises it")
	// errNotText ends a connection over which a message was sent that is not one of the protocol.
	errNotText = errors.New("a message is not text")
	// errUnasked ends a connection over which another acp-agent sends on while it should wait.
	errUnasked = errors.New("the peer sent more than it may without a confirmation")
)

func newConn(of side) *Conn {
	c := &Conn{side: of, in: newInbox(), out: outbox{budget: of.budget}, unplug: func() {}}
	c.gone, c.leave = context.WithCancel(context.Background())
	c.ctx, c.end = context.WithCancelCause(context.Background())
	c.tasks.Go(c.watch)
	if c.resumable {
		c.tasks.Go(c.confirmRead)
	}
	return c
}

// ID returns what names the connection to both sides.
func (c *Conn) ID() string { return c.id }

// Read returns the next message. Its error is io.EOF when the other side has closed the connection.
func (c *Conn) Read() ([]byte, error) {
	if c.handling { // until now
		c.handling = false
		c.in.hold(nil)
	}
	for !c.allRead.Load() {
		ended := c.ctx.Err() != nil
		message, ok := c.in.take()
		switch {
		case ok && len(message) == 0 && c.resumable:
			c.allRead.Store(true)
		case ok:
			c.handling = len(message) > budget.Small
			return message, nil
		case ended:
			return nil, context.Cause(c.ctx)
		default:
			select {
			case <-c.in.arrived:
			case <-c.ctx.Done():
			}
		}
	}
	return nil, io.EOF
}

// Context returns a context that ends with the connection.
func (c *Conn) Context() context.Context { return c.ctx }

// StopRead makes Read return io.EOF, now and later, also if messages have arrived. After Close the
// other side knows that these were not read.
func (c *Conn) StopRead() {
	c.allRead.Store(true)
	signal(c.in.arrived)
}

// Reserve makes room for n bytes of an unanswered request, until Release. It returns false if the
// user, or all users together, have too many.
func (c *Conn) Reserve(n int) bool { return c.budget.Reserve(n) }

// Release undoes Reserve.
func (c *Conn) Release(n int) { c.budget.Release(n) }

// Write sends a message. While a lost connection can be resumed, it keeps it.
func (c *Conn) Write(ctx context.Context, message []byte) error {
	if !c.resumable {
		c.writing.Lock()
		defer c.writing.Unlock()
		socket := c.current()
		if socket == nil {
			return context.Cause(c.ctx)
		}
		return socket.Write(ctx, websocket.MessageText, message)
	}
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
func (c *Conn) send(message []byte) (room <-chan struct{}, err error) {
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
		// Close the socket before ending the connection. Ending the connection first would
		// interrupt the pending read, which drops the socket without a close frame.
		reason := ""
		if c.resumable {
			c.sendConfirmation(socket)
			reason = confirmedAll
		}
		err = socket.Close(websocket.StatusNormalClosure, reason)
	}
	c.finish(io.EOF)
	c.tasks.Wait()
	c.in.drop()
	c.out.drop()
	c.leave()
	return err
}

// current returns the socket, or nil.
func (c *Conn) current() *websocket.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.socket
}

// lostSince returns when a connection was lost that the other side may resume, otherwise the zero
// time.
func (c *Conn) lostSince() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.socket != nil {
		return time.Time{}
	}
	return c.lostAt
}

// attach makes the connection use a socket. theirs is the number of messages that the other side
// has received so far.
func (c *Conn) attach(socket *websocket.Conn, theirs uint64) {
	socket.SetReadLimit(int64(c.max))
	c.writing.Lock() // new messages follow those that are sent again
	defer c.writing.Unlock()
	if ok, _ := c.out.confirm(theirs); !ok {
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
	pumped := make(chan struct{})
	ctx, stop := context.WithCancel(c.ctx)
	c.socket = socket
	c.unplug = func() {
		_ = socket.CloseNow()
		stop()
		<-pumped
	}
	c.heard.Store(true)
	again := c.out.pending()
	c.tasks.Go(func() {
		defer stop()
		c.lost(socket, c.pump(ctx, socket))
		close(pumped)
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
	unplug := c.unplug
	c.mu.Unlock()
	unplug()
	received, _ := c.in.counts()
	return received
}

// lost notes why nothing more can be read from the socket. After ErrLost two acp-agents resume the
// connection. Otherwise it ends.
func (c *Conn) lost(socket *websocket.Conn, err error) {
	c.mu.Lock()
	c.socket = nil
	resume := c.resumable && errors.Is(err, ErrLost) && c.ctx.Err() == nil
	if resume && c.redial == nil {
		at := time.Now()
		c.lostAt = at
		time.AfterFunc(c.times.Lost, func() {
			if c.lostSince() == at { // it was not resumed
				c.finish(ErrLost)
			}
		})
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

// reconnect connects again, until the server refuses or it takes too long.
func (c *Conn) reconnect() {
	received, _ := c.in.counts()
	ctx, cancel := context.WithTimeoutCause(c.ctx, c.times.Lost, ErrLost)
	defer cancel()
	const first, longest = 50 * time.Millisecond, 5 * time.Second
	why := ErrLost
	for delay := first; ctx.Err() == nil; delay = min(2*delay, longest) {
		socket, theirs, err := c.redial(ctx, received)
		if err == nil {
			c.attach(socket, theirs)
			return
		}
		if ctx.Err() != nil {
			break // this attempt was interrupted, so why the one before it failed says more
		}
		why = fmt.Errorf("%w: %w", ErrLost, err)
		if IsRefused(err) {
			break
		}
		_ = pause.For(ctx, delay)
	}
	c.finish(why)
}

// finish ends the connection.
func (c *Conn) finish(err error) {
	c.mu.Lock()
	c.end(err)
	c.mu.Unlock()
	c.onEnd()
}

// pump keeps the messages that come from a socket for Read. Another acp-agent stops writing before
// they are too large, so confirmations arrive even while both sides write more than they read. Its
// error is io.EOF when the other side has closed the connection.
func (c *Conn) pump(ctx context.Context, socket *websocket.Conn) error {
	idle := rate.NewLimiter(idlePerSecond, idleAtOnce)
	for {
		kind, message, err := c.receive(ctx, socket)
		switch status := websocket.CloseStatus(err); {
		case c.isEnd(status):
			end, _ := errors.AsType[websocket.CloseError](err)
			c.confirmedAll.Store(end.Reason == confirmedAll)
			return io.EOF
		case status == websocket.StatusMessageTooBig, errors.Is(err, websocket.ErrMessageTooBig):
			return errTooLarge // it would be sent again
		case err != nil:
			return fmt.Errorf("%w: %w", ErrLost, err)
		case kind == websocket.MessageText:
			if err := c.store(ctx, message); err != nil {
				return err
			}
		case !c.confirmedBy(ctx, message, idle):
			_ = socket.Close(websocket.StatusUnsupportedData, errNotText.Error())
			return errNotText
		}
	}
}

// confirmedBy notes what a message confirms, and reports whether it can be true. If it confirms
// nothing new, idle says when the next one may come.
func (c *Conn) confirmedBy(ctx context.Context, message []byte, idle *rate.Limiter) bool {
	if !c.resumable || len(message) != 8 {
		return false
	}
	ok, isNew := c.out.confirm(binary.BigEndian.Uint64(message))
	if ok && !isNew {
		_ = idle.Wait(ctx) // if it fails, so does the next read
	}
	return ok
}

// confirmedAll is the reason with which a connection is closed after everything that was read was
// confirmed: the other side has not read what it has not confirmed.
const confirmedAll = "everything that was read is confirmed"

// Unread returns the messages that the other side has certainly not read, in order. It is for use
// after the end of the connection and before Close.
func (c *Conn) Unread() [][]byte {
	if !c.confirmedAll.Load() {
		return nil
	}
	return c.out.pending()
}

// isEnd reports whether the other side closes a connection with this status. Between two acp-agents
// StatusGoingAway comes from a proxy that is being configured or ended, so the connection is lost.
func (c *Conn) isEnd(status websocket.StatusCode) bool {
	return status == websocket.StatusNormalClosure ||
		status == websocket.StatusGoingAway && !c.resumable
}

// receive returns the next message from a socket.
func (c *Conn) receive(
	ctx context.Context, socket *websocket.Conn,
) (websocket.MessageType, []byte, error) {
	kind, r, err := socket.Reader(c.ctx)
	if err != nil {
		return 0, nil, err
	}
	message, err := c.readAll(ctx, socket, r)
	// There is room for 512 bytes at least, and many small messages may be waiting.
	if cap(message) > 2*len(message) {
		message = bytes.Clone(message)
	}
	return kind, message, err
}

// readAll reads a message, and notes that some of it arrives. A large one waits until there is room
// for it.
func (c *Conn) readAll(ctx context.Context, socket *websocket.Conn, r io.Reader) ([]byte, error) {
	// A little at once, because the reader fills what it is given before it returns.
	const first, little = 512, 4 << 10
	message := make([]byte, 0, first)
	var large *budget.Large
	for {
		if len(message) == budget.Small && large == nil {
			var err error
			large, err = c.budget.Begin(ctx, func() { _ = socket.CloseNow() },
				func() { c.heard.Store(true) })
			if err != nil {
				return nil, err
			}
		}
		if len(message) == cap(message) {
			size := max(min(2*cap(message), c.max+first), cap(message)+first)
			message = append(make([]byte, 0, size), message...)
		}
		n, err := r.Read(message[len(message):min(cap(message), len(message)+little)])
		message = message[:len(message)+n]
		c.heard.Store(true)
		large.Arrived(n)
		switch {
		case err == io.EOF && len(message) > budget.Small:
			large.Complete(len(message))
			c.in.hold(large)
			return message, nil
		case err == io.EOF:
			large.Done()
			return message, nil
		case err != nil:
			large.Done()
			return nil, err
		}
	}
}

// store keeps a message for Read, once there is room. Another acp-agent leaves room for its bytes,
// but may send more than maxUnread messages.
func (c *Conn) store(ctx context.Context, message []byte) error {
	most := maxUnread
	if c.redial != nil {
		most = math.MaxInt
	}
	for {
		ok, isFull := c.in.add(message, most)
		switch {
		case ok:
			return nil
		case isFull && c.resumable:
			return errUnasked
		}
		select {
		case <-c.in.taken:
		case <-ctx.Done(): // the other side sends the message again when it resumes
			return cmp.Or(context.Cause(c.ctx), ErrLost)
		}
	}
}

// confirmRead tells the other side how many messages were read: after some of them, and regularly,
// from which it also knows that this side is there.
func (c *Conn) confirmRead() {
	ticker := time.NewTicker(c.times.Ping)
	defer ticker.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-c.in.confirm:
		case <-ticker.C:
		}
		if socket := c.current(); socket != nil {
			c.sendConfirmation(socket)
		}
	}
}

// sendConfirmation tells the other side how many messages were read. A large message in front of it
// can take long.
func (c *Conn) sendConfirmation(socket *websocket.Conn) {
	_, read := c.in.counts()
	err := socket.Write(c.ctx, websocket.MessageBinary, binary.BigEndian.AppendUint64(nil, read))
	if err != nil {
		_ = socket.CloseNow()
	}
}

// watch closes a socket from which nothing arrives for two to three intervals.
func (c *Conn) watch() {
	quiet := 0
	for range pause.Every(c.ctx, c.times.Ping) {
		socket := c.current()
		if c.heard.Swap(false) || socket == nil || !c.resumable && c.ping(socket) {
			quiet = 0
			continue
		}
		if quiet++; quiet == 2 {
			if !c.resumable {
				c.finish(ErrLost) // pump may be waiting for room
			}
			_ = socket.CloseNow()
		}
	}
}

// ping reports whether the other side answers in an interval.
func (c *Conn) ping(socket *websocket.Conn) bool {
	ctx, cancel := context.WithTimeout(c.ctx, c.times.Ping)
	defer cancel()
	return socket.Ping(ctx) == nil
}
