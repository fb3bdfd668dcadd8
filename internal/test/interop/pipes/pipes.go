// Package pipes starts an agent as a process and exchanges lines with it, without checking them as
// a client would. It sends lines exactly as given, several in one write if requested, and records
// the lines of both sides in order.
//
//	p, err := pipes.Start(pipes.Options{Command: []string{"acp-agent", "--state-dir", dir}})
//	m, err := p.Call(ctx, "initialize", map[string]any{"protocolVersion": 1})
//	…
//	p.CloseInput()
//	code, err := p.Wait(ctx)
//
// It does not use the agent's own code, so that it cannot share its mistakes.
package pipes

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Options say what to start.
type Options struct {
	// Command is the program and its arguments.
	Command []string
	// Env is added to the environment of the caller, as "NAME=value".
	Env []string
	// Dir is the working directory; "" means that of the caller.
	Dir string
	// Stderr receives the standard error. If it is nil, it is discarded.
	Stderr io.Writer
}

// Line is a line that one side sent, without its newline.
type Line struct {
	// FromAgent reports whether the agent sent the line.
	FromAgent bool
	Text      string
}

// Process is a running agent. Its methods are safe for concurrent use.
type Process struct {
	cmd *exec.Cmd
	in  io.WriteCloser

	mu      sync.Mutex
	lines   []Line    // both sides
	got     []Message // the agent's
	next    int
	ended   bool
	changed chan struct{} // closed and replaced when got or ended changes

	exited chan struct{}
	exit   error // set before exited is closed
}

// ErrEnded is returned if the agent's output ends before the expected message.
var ErrEnded = errors.New("the agent's output has ended")

// Start starts an agent. The caller must wait for it or kill it.
func Start(o Options) (*Process, error) {
	cmd := exec.Command(o.Command[0], o.Command[1:]...)
	cmd.Env = append(os.Environ(), o.Env...)
	cmd.Dir = o.Dir
	cmd.Stderr = o.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, in: in, changed: make(chan struct{}), exited: make(chan struct{})}
	go p.run(out)
	return p, nil
}

// run reads the output of the agent, then waits for the process.
func (p *Process) run(out io.Reader) {
	reader := bufio.NewReaderSize(out, 1<<16)
	for {
		text, err := reader.ReadBytes('\n')
		if n := len(text); n > 0 && text[n-1] == '\n' {
			text = text[:n-1]
		} else if n == 0 {
			break
		}
		m := parse(text)
		p.mu.Lock()
		p.lines = append(p.lines, Line{FromAgent: true, Text: m.Raw})
		p.got = append(p.got, m)
		p.announce()
		p.mu.Unlock()
		if err != nil {
			break
		}
	}
	p.mu.Lock()
	p.ended = true
	p.announce()
	p.mu.Unlock()
	p.exit = p.cmd.Wait()
	close(p.exited)
}

func (p *Process) announce() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// Send sends lines in one write.
func (p *Process) Send(lines ...string) error {
	p.mu.Lock()
	for _, line := range lines {
		p.lines = append(p.lines, Line{Text: line})
	}
	p.mu.Unlock()
	_, err := io.WriteString(p.in, strings.Join(lines, "\n")+"\n")
	return err
}

// NextID returns a new id for [Request].
func (p *Process) NextID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	return p.next
}

// Call sends a request and waits for its response, which may be an error response.
func (p *Process) Call(ctx context.Context, method string, params any) (Message, error) {
	id := p.NextID()
	from := p.Count()
	if err := p.Send(Request(id, method, params)); err != nil {
		return Message{}, err
	}
	return p.Response(ctx, from, id)
}

// Response waits for the response to a request. from is the number of lines that the agent had sent
// before the request.
func (p *Process) Response(ctx context.Context, from, id int) (Message, error) {
	text := strconv.Itoa(id)
	m, _, err := p.Await(ctx, from, func(m Message) bool { return m.IsResponse(text) })
	if err != nil {
		return m, fmt.Errorf("waiting for the response to request %d: %w", id, err)
	}
	return m, nil
}

// Count returns the number of lines that the agent has sent so far.
func (p *Process) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.got)
}

// Await waits for the first message, starting at index from, that match accepts, and returns it
// with its index.
func (p *Process) Await(ctx context.Context, from int, match func(Message) bool) (Message, int, error) {
	for {
		p.mu.Lock()
		got, ended, changed := p.got, p.ended, p.changed
		p.mu.Unlock()
		for ; from < len(got); from++ {
			if match(got[from]) {
				return got[from], from, nil
			}
		}
		if ended {
			return Message{}, 0, ErrEnded
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Message{}, 0, context.Cause(ctx)
		}
	}
}

// Messages returns the messages of the agent so far.
func (p *Process) Messages() []Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

// Lines returns the lines of both sides so far, in the order in which they were sent and read.
func (p *Process) Lines() []Line {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lines)
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// CloseInput closes the agent's input, as a client does to end the agent.
func (p *Process) CloseInput() error { return p.in.Close() }

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Kill kills the process.
func (p *Process) Kill() error { return p.cmd.Process.Kill() }

// Wait waits for the end of the agent's output and of the process, and returns the exit code, -1 if
// a signal ended it.
func (p *Process) Wait(ctx context.Context) (code int, err error) {
	select {
	case <-p.exited:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	var exit *exec.ExitError
	if p.exit != nil && !errors.As(p.exit, &exit) {
		return 0, p.exit
	}
	return p.cmd.ProcessState.ExitCode(), nil
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
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, encode(params))
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

// Build compiles a main package into dir and returns the path of the program. pkg is an import
// path, and args are flags of go build.
func Build(ctx context.Context, dir, pkg string, args ...string) (string, error) {
	name := filepath.Base(pkg)
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	program := filepath.Join(dir, name)
	args = append(append([]string{"build", "-o", program}, args...), pkg)
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	return program, nil
}
