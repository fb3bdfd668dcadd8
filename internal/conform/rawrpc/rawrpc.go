// Package rawrpc exchanges lines of JSON-RPC with an agent, without checking them as a client
// would. It sends lines exactly as given, several in one write if requested, and records the lines
// of both sides in order.
//
//	c := rawrpc.New(p.Stdout(), p.Stdin(), 0)
//	m, err := c.Call(ctx, "initialize", map[string]any{"protocolVersion": 1})
//
// It does not use the agent's own code, so that it cannot share its mistakes.
package rawrpc

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Line is a line that one side sent, without its newline.
type Line struct {
	// FromAgent reports whether the agent sent the line.
	FromAgent bool
	// Unfinished reports whether the agent's output ended before the newline.
	Unfinished bool
	Text       string
}

// Conn is a connection to an agent. Its methods are safe for concurrent use.
type Conn struct {
	out io.Writer

	mu      sync.Mutex
	lines   []Line    // both sides
	got     []Message // the agent's
	next    int
	ended   error
	changed chan struct{} // closed and replaced when got or ended changes

	done chan struct{}
}

var (
	// ErrEnded is returned if the agent's output ends before the expected message.
	ErrEnded = errors.New("the agent's output has ended")
	// ErrFlood is returned if the agent has written more than the limit.
	ErrFlood = errors.New("the agent has written too much")
)

// perLine is the memory of a line besides its text.
const perLine = 256

// New returns a connection to the agent that writes to in and reads from out. It reads until in
// ends or what it keeps needs more than limit bytes; 0 means no limit.
func New(in io.Reader, out io.Writer, limit int64) *Conn {
	c := &Conn{out: out, changed: make(chan struct{}), done: make(chan struct{})}
	go c.read(&io.LimitedReader{R: in, N: cmp.Or(limit, math.MaxInt64)})
	return c
}

// Done returns a channel that is closed when nothing more is read.
func (c *Conn) Done() <-chan struct{} { return c.done }

func (c *Conn) read(in *io.LimitedReader) {
	defer close(c.done)
	reader := bufio.NewReaderSize(in, 1<<16)
	for {
		text, err := reader.ReadBytes('\n')
		in.N -= perLine
		switch {
		case err == nil:
			c.record(text[:len(text)-1], false)
		case in.N <= 0:
			c.end(ErrFlood)
			return
		default:
			if len(text) > 0 {
				c.record(text, true)
			}
			c.end(ErrEnded)
			return
		}
	}
}

// record adds a line of the agent.
func (c *Conn) record(line []byte, unfinished bool) {
	m := parse(line)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, Line{FromAgent: true, Unfinished: unfinished, Text: m.Raw})
	c.got = append(c.got, m)
	c.announce()
}

func (c *Conn) end(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = reason
	c.announce()
}

func (c *Conn) announce() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Send sends lines in one write.
func (c *Conn) Send(lines ...string) error {
	c.mu.Lock()
	for _, line := range lines {
		c.lines = append(c.lines, Line{Text: line})
	}
	c.mu.Unlock()
	_, err := io.WriteString(c.out, strings.Join(lines, "\n")+"\n")
	return err
}

// NextID returns a new id for [Request].
func (c *Conn) NextID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	return c.next
}

// Call sends a request and waits for its response, which may be an error response.
func (c *Conn) Call(ctx context.Context, method string, params any) (Message, error) {
	id := c.NextID()
	from := c.Count()
	if err := c.Send(Request(id, method, params)); err != nil {
		return Message{}, err
	}
	return c.Response(ctx, from, id)
}

// Response waits for the response to a request. from is the number of lines that the agent had sent
// before the request.
func (c *Conn) Response(ctx context.Context, from, id int) (Message, error) {
	text := strconv.Itoa(id)
	m, _, err := c.Await(ctx, from, func(m Message) bool { return m.IsResponse(text) })
	if err != nil {
		return m, fmt.Errorf("waiting for the response to request %d: %w", id, err)
	}
	return m, nil
}

// Count returns the number of lines that the agent has sent so far.
func (c *Conn) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.got)
}

// Await waits for the first message, starting at index from, that match accepts, and returns it
// with its index.
func (c *Conn) Await(
	ctx context.Context, from int, match func(Message) bool,
) (Message, int, error) {
	for {
		c.mu.Lock()
		got, ended, changed := c.got, c.ended, c.changed
		c.mu.Unlock()
		for ; from < len(got); from++ {
			if match(got[from]) {
				return got[from], from, nil
			}
		}
		if ended != nil {
			return Message{}, 0, ended
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Message{}, 0, context.Cause(ctx)
		}
	}
}

// Each calls do with each message of the agent until do, or the connection, ends with an error.
func (c *Conn) Each(ctx context.Context, do func(Message) error) error {
	for from := 0; ; from++ {
		m, _, err := c.Await(ctx, from, func(Message) bool { return true })
		if err == nil {
			err = do(m)
		}
		if err != nil {
			return err
		}
	}
}

// Messages returns the messages of the agent so far.
func (c *Conn) Messages() []Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.got)
}

// Lines returns the lines of both sides so far, in the order in which they were sent and read.
func (c *Conn) Lines() []Line {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.lines)
}

// Message is a line decoded as JSON-RPC. Of a line that is not a JSON object, only Raw is set.
type Message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *Error          `json:"error"`
	// Raw is the line, without its newline.
	Raw string `json:"-"`
}

// Error is a JSON-RPC error object.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// Error returns the message with its code and data.
func (e *Error) Error() string { return fmt.Sprintf("%s (%d) %s", e.Message, e.Code, e.Data) }

// IsResponse reports whether m is the response to the request with this id, given as JSON.
func (m Message) IsResponse(id string) bool { return m.Method == "" && string(m.ID) == id }

// Decode decodes the result into v. An error response is returned as its *Error.
func (m Message) Decode(v any) error {
	if m.Error != nil {
		return m.Error
	}
	return json.Unmarshal(m.Result, v)
}

func parse(line []byte) Message {
	var m Message
	if json.Unmarshal(line, &m) != nil {
		m = Message{}
	}
	m.Raw = string(line)
	return m
}

// Request returns a request as a line. params is encoded as JSON; a json.RawMessage is used as it
// is. It panics if params cannot be encoded.
func Request(id int, method string, params any) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method,
		encode(params))
}

// Notification returns a notification as a line; see [Request].
func Notification(method string, params any) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, encode(params))
}

func encode(params any) []byte {
	if raw, ok := params.(json.RawMessage); ok {
		return raw
	}
	text, err := json.Marshal(params)
	if err != nil {
		panic(err)
	}
	return text
}
