package websocket

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/coder/websocket"

	"github.com/acp-agent/acp-agent/internal/serve/budget"
	"github.com/acp-agent/acp-agent/internal/text/pause"
)

// Conn is a connection to the other side. It implements acp.Conn.
type Conn interface {
	// ID returns what names the connection to both sides.
	ID() string
	// Context returns a context that ends with the connection.
	Context() context.Context
	// Read returns the next message, or io.EOF when the other side has closed the connection.
	Read() ([]byte, error)
	// StopRead makes Read return io.EOF, now and later, also if messages have arrived. After Close
	// another acp-agent knows that these were not read.
	StopRead()
	// Write sends a message. While a lost connection can be resumed, it keeps it.
	Write(ctx context.Context, message []byte) error
	// CloseWrite says that nothing more will be written. If the other side is not acp-agent, it
	// closes the connection.
	CloseWrite(ctx context.Context) error
	// Close tells the other side, and waits for up to 5 seconds until that has answered.
	Close() error
	// Unread returns the messages that the other side has certainly not read, in order. It is for
	// use after the end of the connection and before Close.
	Unread() [][]byte
}

// side says what a connection is to one of its sides. It does not change.
type side struct {
	id        string
	max       int   // bytes of a message that arrives
	maxUnread int   // messages that have arrived and were not read
	times     Times // with the defaults

	// On the server's side, owner has the connection, and budget limits what is held of messages.
	owner  string
	budget budget.User
}

// receiver is what all connections have: the messages that arrive, and an end.
type receiver struct {
	side
	ctx   context.Context // ends with the connection
	end   context.CancelCauseFunc
	tasks sync.WaitGroup // grows only before the connection has ended

	in       inbox
	handling bool        // Read has returned a large message; used by Read only
	allRead  atomic.Bool // the other side sends nothing more, or StopRead was called
	heard    atomic.Bool // something arrived since watch looked last
}

func newReceiver(of side) receiver {
	ctx, end := context.WithCancelCause(context.Background())
	return receiver{side: of, ctx: ctx, end: end, in: newInbox(of.maxUnread)}
}

var (
	// ErrLost ends a connection that cannot be resumed.
	ErrLost = errors.New("the connection was lost")
	// errReplaced ends a lost connection in whose place the user has another one.
	errReplaced = errors.New("the connection was lost, and another one took its place")
	// errTooLarge ends a connection over which a message was sent that the other side refuses.
	errTooLarge = errors.New("a message is larger than the limit of the side that received it; " +
		"--max-line raises it")
	// errNotText ends a connection over which a message was sent that is not one of the protocol.
	errNotText = errors.New("a message is not text")
	// errUnasked ends a connection over which another acp-agent sends on while it should wait.
	errUnasked = errors.New("the peer sent more than it may without a confirmation")
)

func (r *receiver) ID() string               { return r.id }
func (r *receiver) Context() context.Context { return r.ctx }

func (r *receiver) Read() ([]byte, error) {
	if r.handling { // until now
		r.handling = false
		r.in.hold(nil)
	}
	for !r.allRead.Load() {
		ended := r.ctx.Err() != nil
		message, ok := r.in.take()
		switch {
		case ok:
			r.handling = len(message) > budget.Small
			return message, nil
		case ended:
			return nil, context.Cause(r.ctx)
		}
		select {
		case <-r.in.arrived:
		case <-r.ctx.Done():
		}
	}
	return nil, io.EOF
}

func (r *receiver) StopRead() {
	r.allRead.Store(true)
	signal(r.in.arrived)
}

// receive returns the next message from a socket, and notes that some of it arrives. A large one
// waits until there is room for it.
func (r *receiver) receive(
	ctx context.Context, socket *websocket.Conn,
) (websocket.MessageType, []byte, error) {
	kind, from, err := socket.Reader(ctx)
	if err != nil {
		return 0, nil, err
	}
	// A little at once, because the reader fills what it is given before it returns.
	const first, little = 512, 4 << 10
	message := make([]byte, 0, first)
	var large *budget.Large
	for {
		if len(message) == budget.Small && large == nil {
			large, err = r.budget.Begin(ctx, func() { _ = socket.CloseNow() },
				func() { r.heard.Store(true) })
			if err != nil {
				return 0, nil, err
			}
		}
		if len(message) == cap(message) {
			size := max(min(2*cap(message), r.max+first), cap(message)+first)
			message = append(make([]byte, 0, size), message...)
		}
		n, err := from.Read(message[len(message):min(cap(message), len(message)+little)])
		message = message[:len(message)+n]
		r.heard.Store(true)
		large.Arrived(n)
		switch {
		case err == io.EOF && len(message) > budget.Small:
			large.Complete(len(message))
			r.in.hold(large)
			return kind, message, nil
		case err == io.EOF:
			large.Done()
			return kind, message, nil
		case err != nil:
			large.Done()
			return 0, nil, err
		}
	}
}

// store keeps a message for Read, once there is room. It fails if ctx ends.
func (r *receiver) store(ctx context.Context, message []byte) error {
	// It has room for 512 bytes at least, and many small messages may be waiting.
	if cap(message) > 2*len(message) {
		message = bytes.Clone(message)
	}
	for !r.in.add(message) {
		select {
		case <-r.in.taken:
		case <-ctx.Done(): // another acp-agent sends the message again when it resumes
			if len(message) > budget.Small {
				r.in.hold(nil)
			}
			return cmp.Or(context.Cause(r.ctx), ErrLost)
		}
	}
	return nil
}

// watch returns when nothing has arrived for two to three intervals, unless isThere has said in one
// of them that the other side is there, or when ctx ends.
func (r *receiver) watch(ctx context.Context, isThere func() bool) {
	quiet := 0
	for range pause.Every(ctx, r.times.Ping) {
		if r.heard.Swap(false) || isThere() {
			quiet = 0
			continue
		}
		if quiet++; quiet == 2 {
			return
		}
	}
}

// whyLost returns why nothing more can be read from a socket, of which a read has failed.
func whyLost(err error) error {
	if websocket.CloseStatus(err) == websocket.StatusMessageTooBig ||
		errors.Is(err, websocket.ErrMessageTooBig) {
		return errTooLarge // it would be sent again
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}

// refuse closes a socket over which a message came that is not one of the protocol.
func refuse(socket *websocket.Conn) error {
	_ = socket.Close(websocket.StatusUnsupportedData, errNotText.Error())
	return errNotText
}
