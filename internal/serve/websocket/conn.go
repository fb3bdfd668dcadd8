package websocket

import (
	"bytes"
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

	"github.com/acp-agent/acp-agent/internal/serve/budget"
	"github.com/acp-agent/acp-agent/internal/text/pause"
)

const (
	// window is how many bytes may be sent without being confirmed, and received without being
	// read. Beyond it Write, and reading from the network, wait.
	window = 4 << 20
	// confirmMessages and confirmBytes are after how much each side confirms what was read.
	confirmMessages, confirmBytes = 64, 256 << 10
	// idleAtOnce and idlePerSecond are how many confirmations that confirm nothing new may come
	// over a socket.
	idleAtOnce, idlePerSecond = 100, 10
	// maxUnread is how many messages a server keeps that were not read. Beyond it the next ones,
	// and confirmations, wait in the network.
	maxUnread = 100
	// uncounted is how many bytes may be unconfirmed without room in the budget: so many that the
	// other side confirms some of them at once.
	uncounted = 2 * confirmBytes
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
	// budget limits what the server holds of messages of owner. It is nil on the client's side.
	budget *budget.Budget
	owner  string

	over        bool // the other side sends nothing more; used by Read only
	handling    bool // Read has returned a large message; used by Read only
	readStopped atomic.Bool
	ctx         context.Context // ends with the connection
	end         context.CancelCauseFunc
	gone        chan struct{}  // closed by Close
	tasks       sync.WaitGroup // grows only before the connection has ended

	writing sync.Mutex  // held while messages are written, which keeps their order
	heard   atomic.Bool // something arrived since watch looked last

	arrived, taken, confirm chan struct{} // unread has grown, has shrunk, or is to be confirmed

	mu                      sync.Mutex
	socket                  *websocket.Conn // nil while the connection is lost
	stopPump                func()          // interrupts reading from the last socket
	pumped                  chan struct{}   // closed when nothing more is read from the last socket
	expiry                  *time.Timer     // ends a connection that is not resumed
	lostAt                  time.Time       // when the last socket was lost
	sent                    uint64          // messages that were passed to Write
	unconfirmed             queue           // the last of them
	reserved                int             // bytes of them that the budget counts
	room                    chan struct{}   // closed when unconfirmed shrinks; nil if nothing waits
	received                uint64          // messages that came from the other side
	unread                  queue           // the last of them
	large                   *budget.Large   // is one of them, or was read last
	readMessages, readBytes int             // since the last confirmation
	confirmedAll            bool            // the other side confirmed what it read, and has closed
}

// queue holds messages in their order.
type queue struct {
	messages [][]byte
	size     int // in bytes
}

// overhead is the memory of a queued message besides its bytes.
const overhead = 32

func (q *queue) isFull() bool { return q.size >= window }

func (q *queue) add(message []byte) {
	q.messages = append(q.messages, message)
	q.size += len(message) + overhead
}

// remove removes the first n messages.
func (q *queue) remove(n int) {
	for _, message := range q.messages[:n] {
		q.size -= len(message) + overhead
	}
	clear(q.messages[:n])
	q.messages = q.messages[n:]
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

func newConn(id string, resumable bool, max int, times Times) *Conn {
	c := &Conn{id: id, resumable: resumable, max: max, times: times.withDefaults(),
		arrived: make(chan struct{}, 1), taken: make(chan struct{}, 1),
		confirm: make(chan struct{}, 1), pumped: make(chan struct{}), stopPump: func() {},
		gone: make(chan struct{})}
	close(c.pumped) // the first socket comes later
	c.ctx, c.end = context.WithCancelCause(context.Background())
	c.tasks.Go(c.watch)
	if resumable {
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
		c.dropLarge()
	}
	for !c.over {
		ended := c.ctx.Err() != nil
		message, ok := c.take()
		switch {
		case ok && len(message) == 0 && c.resumable:
			c.over = true
		case ok:
			c.handling = len(message) > budget.Small
			return message, nil
		case ended:
			return nil, context.Cause(c.ctx)
		case c.readStopped.Load():
			return nil, io.EOF
		default:
			select {
			case <-c.arrived:
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
	c.readStopped.Store(true)
	signal(c.arrived)
}

// take returns the first message that was not read, if there is one.
func (c *Conn) take() (message []byte, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.unread.messages) == 0 || c.readStopped.Load() {
		return nil, false
	}
	message = c.unread.messages[0]
	c.unread.remove(1)
	signal(c.taken)
	c.readMessages, c.readBytes = c.readMessages+1, c.readBytes+len(message)
	if c.readMessages >= confirmMessages || c.readBytes >= confirmBytes {
		c.readMessages, c.readBytes = 0, 0
		signal(c.confirm)
	}
	return message, true
}

// dropLarge makes room for the next large message of the owner.
func (c *Conn) dropLarge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.large.Done()
	c.large = nil
}

// Reserve makes room for n bytes of an unanswered request, until Release. It returns false if the
// user, or all users together, have too many.
func (c *Conn) Reserve(n int) bool { return c.budget.Reserve(c.owner, n) }

// Release undoes Reserve.
func (c *Conn) Release(n int) { c.budget.Release(c.owner, n) }

// signal makes the next receive from a channel of one element succeed.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
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
	c.dropLarge()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unread, c.unconfirmed = queue{}, queue{}
	c.giveBackLocked()
	select {
	case <-c.gone:
	default:
		close(c.gone)
	}
	return err
}

// current returns the socket, or nil.
func (c *Conn) current() *websocket.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.socket
}

// keep adds a message to those that are not confirmed, once there is room, and returns the socket
// for it, or nil.
func (c *Conn) keep(ctx context.Context, message []byte) (*websocket.Conn, error) {
	for {
		c.mu.Lock()
		if c.hasRoomLocked(len(message) + overhead) {
			c.unconfirmed.add(message)
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

// hasRoomLocked reports whether n more bytes may be unconfirmed. The budget counts what is beyond
// uncounted. A message fits in any case if the other side has confirmed everything else.
func (c *Conn) hasRoomLocked(n int) bool {
	size := c.unconfirmed.size
	if size >= window {
		return false
	}
	more := size + n - uncounted - c.reserved
	switch {
	case more <= 0:
	case c.budget.Reserve(c.owner, more):
		c.reserved += more
	default:
		return size == 0
	}
	return true
}

// giveBackLocked gives back the room of what was confirmed.
func (c *Conn) giveBackLocked() {
	if unused := c.reserved - max(0, c.unconfirmed.size-uncounted); unused > 0 {
		c.reserved -= unused
		c.budget.Release(c.owner, unused)
	}
}

// confirmed forgets the first n messages: the other side has them. It reports whether n can be
// true, and whether it is new.
func (c *Conn) confirmed(n uint64) (ok, isNew bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.sent - uint64(len(c.unconfirmed.messages))
	if n > c.sent {
		return false, false
	}
	c.unconfirmed.remove(int(max(n, first) - first)) // less is read than was received before a loss
	c.giveBackLocked()
	if c.room != nil {
		close(c.room)
		c.room = nil
	}
	return true, n > first
}

// attach makes the connection use a socket. theirs is the number of messages that the other side
// has received so far.
func (c *Conn) attach(socket *websocket.Conn, theirs uint64) {
	socket.SetReadLimit(int64(c.max))
	c.writing.Lock() // new messages follow those that are sent again
	defer c.writing.Unlock()
	if ok, _ := c.confirmed(theirs); !ok {
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
	ctx, stop := context.WithCancel(c.ctx)
	c.socket, c.pumped, c.stopPump = socket, pumped, stop
	c.heard.Store(true)
	again := slices.Clone(c.unconfirmed.messages)
	c.tasks.Go(func() {
		defer stop()
		err := c.pump(ctx, socket)
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
	socket, pumped, stop := c.socket, c.pumped, c.stopPump
	c.mu.Unlock()
	if socket != nil {
		_ = socket.CloseNow()
	}
	stop()
	<-pumped
	c.lost(socket, ErrLost)
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
		c.lostAt = time.Now()
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
		c.finish(ErrLost)
	}
}

// reconnect connects again, until the server refuses or it takes too long.
func (c *Conn) reconnect() {
	c.mu.Lock()
	received := c.received
	c.mu.Unlock()
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

// pump keeps the messages that come from a socket for Read. It waits for nothing but the network,
// so confirmations arrive even while both sides write more than they read: another acp-agent stops
// writing before unread is full. Its error is io.EOF when the other side has closed the connection.
func (c *Conn) pump(ctx context.Context, socket *websocket.Conn) error {
	idle := rate.NewLimiter(idlePerSecond, idleAtOnce)
	for {
		kind, message, err := c.receive(ctx, socket)
		switch status := websocket.CloseStatus(err); {
		case c.isEnd(status):
			c.noteUnread(err)
			return io.EOF
		case status == websocket.StatusMessageTooBig, errors.Is(err, websocket.ErrMessageTooBig):
			c.finish(errTooLarge) // it would be sent again
			return err
		case err != nil:
			return fmt.Errorf("%w: %w", ErrLost, err)
		case kind == websocket.MessageBinary:
			if len(message) > budget.Small {
				c.dropLarge()
			}
			if !c.confirmedBy(ctx, message, idle) {
				_ = socket.Close(websocket.StatusUnsupportedData, errNotText.Error())
				c.finish(errNotText)
			}
			continue
		}
		if !c.store(message) {
			return context.Cause(c.ctx)
		}
	}
}

// confirmedBy notes what a message confirms, and reports whether it can be true. If it confirms
// nothing new, idle says when the next one may come.
func (c *Conn) confirmedBy(ctx context.Context, message []byte, idle *rate.Limiter) bool {
	if !c.resumable || len(message) != 8 {
		return false
	}
	ok, isNew := c.confirmed(binary.BigEndian.Uint64(message))
	if ok && !isNew {
		_ = idle.Wait(ctx) // if it fails, so does the next read
	}
	return ok
}

// confirmedAll is the reason with which a connection is closed after everything that was read was
// confirmed.
const confirmedAll = "everything that was read is confirmed"

// noteUnread notes whether the other side has not read what it has not confirmed: it says so when
// it closes the connection.
func (c *Conn) noteUnread(closed error) {
	end, ok := errors.AsType[websocket.CloseError](closed)
	if !ok || end.Reason != confirmedAll {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.confirmedAll = true
}

// Unread returns the messages that the other side has certainly not read, in order. It is for use
// after the end of the connection and before Close.
func (c *Conn) Unread() [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.confirmedAll {
		return nil
	}
	return slices.Clone(c.unconfirmed.messages)
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
			large, err = c.budget.Begin(ctx, c.owner, func() { _ = socket.CloseNow() },
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
		if err == io.EOF {
			c.keepLarge(large, len(message))
			return message, nil
		}
		if err != nil {
			large.Done()
			return nil, err
		}
	}
}

// keepLarge notes that a message has arrived, with n bytes. If it is large, the next one waits
// until Read is called after it has returned this one.
func (c *Conn) keepLarge(l *budget.Large, n int) {
	if n <= budget.Small {
		l.Done()
		return
	}
	l.Complete(n)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.large = l
}

// store keeps a message for Read, once there is room. It returns false if the connection has ended,
// as it does if another acp-agent has not left room.
func (c *Conn) store(message []byte) bool {
	for {
		c.mu.Lock()
		full := c.unread.isFull()
		crowded := c.redial == nil && len(c.unread.messages) >= maxUnread
		if !full && !crowded {
			c.unread.add(message)
			c.received++
			signal(c.arrived)
		}
		c.mu.Unlock()
		if !full && !crowded {
			return true
		}
		if full && c.resumable {
			c.finish(errUnasked)
		}
		select {
		case <-c.taken:
		case <-c.ctx.Done():
			return false
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
		case <-c.confirm:
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
	c.mu.Lock()
	read := c.received - uint64(len(c.unread.messages))
	c.mu.Unlock()
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
