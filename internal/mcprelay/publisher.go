package mcprelay

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/internal/mcproots"
	"github.com/acp-agent/acp-agent/internal/privatefile"
	"github.com/acp-agent/acp-agent/internal/process"
)

// SecretVariable is the environment variable by which a relay is given its publisher's secret.
const SecretVariable = "ACP_AGENT_RELAY_SECRET"

// PublisherOptions configure a [Publisher]. The zero value is usable.
type PublisherOptions struct {
	// Logger takes what goes wrong with relays. Default: discarded.
	Logger *slog.Logger
	// MaxRelays is how many relays may be connected at once. Default 256.
	MaxRelays int
	// Timeout is how long a relay may take to say the secret, and to take a list. Default 5 s.
	Timeout time.Duration
	// CheckEvery is how often the roots are looked at, for those that vanished or came back. Default 5 s.
	CheckEvery time.Duration
}

func (o PublisherOptions) withDefaults() PublisherOptions {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.MaxRelays = cmp.Or(o.MaxRelays, 256)
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	o.CheckEvery = cmp.Or(o.CheckEvery, 5*time.Second)
	return o
}

// Publisher tells the relays of one session the session's roots. Its methods are safe for concurrent use. Close it.
type Publisher struct {
	options  PublisherOptions
	listener net.Listener
	secret   string
	serving  sync.WaitGroup
	done     chan struct{} // closed by Close

	mu      sync.Mutex
	granted mcproots.Snapshot
	list    json.RawMessage // what relays are told, nil before the first Set
	changed chan struct{}   // closed when list is replaced
	relays  map[net.Conn]struct{}
	closed  bool
}

// Listen makes a publisher, with a socket in dir. It makes dir if it is not there, and closes it to everybody but this user:
// it must hold nothing else. Relays that connect before the first Set wait for it. The error is a [*SocketError].
func Listen(dir string, o PublisherOptions) (*Publisher, error) {
	listener, err := listen(dir)
	if err != nil {
		return nil, err
	}
	p := &Publisher{
		options: o.withDefaults(), listener: listener, secret: random(32), done: make(chan struct{}),
		changed: make(chan struct{}), relays: map[net.Conn]struct{}{},
	}
	p.serving.Go(p.accept)
	p.serving.Go(p.watch)
	return p, nil
}

// random is n random bytes in hexadecimal.
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// Address is the socket that relays connect to.
func (p *Publisher) Address() string { return p.listener.Addr().String() }

// Secret is what a relay must say. Give it to relays alone, by the environment: others can see a command line.
func (p *Publisher) Secret() string { return p.secret }

// Wrap is the command of a relay in front of server. relay is the command that [Run] runs in, without what is
// server's: acp-agent mcp-relay. Directory, environment and name are server's, with relay's and the secret added.
func (p *Publisher) Wrap(relay, server process.Command) process.Command {
	wrapped := server
	wrapped.Path = relay.Path
	wrapped.Args = slices.Concat(relay.Args, []string{"--roots-from", p.Address(), "--", server.Path}, server.Args)
	wrapped.Env = slices.Concat(server.Env, relay.Env, []string{SecretVariable + "=" + p.secret})
	return wrapped
}

// Set replaces the roots, and has the relays told if that changes what they know (M3). It does not wait for them: one that
// is slow is told only the newest list. After Close it does nothing.
func (p *Publisher) Set(s mcproots.Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.granted = s
	p.publish()
}

// publish has the relays told of what is there of the granted roots (M6). The caller holds mu.
func (p *Publisher) publish() {
	list := listed(p.granted.Existing())
	if p.list != nil && string(list) == string(p.list) {
		return
	}
	p.list = list
	close(p.changed)
	p.changed = make(chan struct{})
}

// listed is a result of roots/list.
func listed(s mcproots.Snapshot) json.RawMessage {
	type root struct {
		URI  string `json:"uri"`
		Name string `json:"name,omitempty"`
	}
	roots := make([]root, 0, s.Len())
	for _, r := range s.All() {
		roots = append(roots, root{r.URI, r.Name})
	}
	raw, err := json.Marshal(map[string]any{"roots": roots})
	if err != nil {
		panic(err) // strings can be encoded
	}
	return raw
}

// watch looks at the roots from time to time.
func (p *Publisher) watch() {
	ticker := time.NewTicker(p.options.CheckEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-p.done:
			return
		}
		p.mu.Lock()
		if p.list != nil {
			p.publish()
		}
		p.mu.Unlock()
	}
}

// Close ends the connections, which tells the relays that the session has ended, removes the socket, and
// waits. It may be called more than once.
func (p *Publisher) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		p.serving.Wait()
		return nil
	}
	p.closed = true
	close(p.done)
	err := p.listener.Close()
	for c := range p.relays {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.serving.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// acceptPause is the rest after a connection that could not be accepted.
const acceptPause = 100 * time.Millisecond

// accept serves each relay that connects.
func (p *Publisher) accept() {
	for {
		conn, err := p.listener.Accept()
		if err == nil {
			p.admit(conn)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		p.options.Logger.Warn("an MCP relay could not connect", "error", err)
		select {
		case <-time.After(acceptPause):
		case <-p.done:
			return
		}
	}
}

// admit serves a connection, if it is not one too many.
func (p *Publisher) admit(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.relays) >= p.options.MaxRelays {
		p.options.Logger.Warn("an MCP relay is turned away", "limit", p.options.MaxRelays)
		_ = conn.Close()
		return
	}
	p.relays[conn] = struct{}{}
	p.serving.Go(func() {
		defer p.dismiss(conn)
		if err := p.serve(conn); err != nil {
			p.options.Logger.Warn("an MCP relay does not hear of the roots any more", "error", err)
		}
	})
}

func (p *Publisher) dismiss(conn net.Conn) {
	_ = conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.relays, conn)
}

var errSecret = errors.New("it did not say the secret of this session")

// serve tells a relay each list, until it leaves or the publisher is closed.
func (p *Publisher) serve(conn net.Conn) error {
	if err := conn.SetReadDeadline(time.Now().Add(p.options.Timeout)); err != nil {
		return p.unlessClosed(err)
	}
	if !p.knows(conn) {
		return p.unlessClosed(errSecret)
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return p.unlessClosed(err)
	}
	left := make(chan struct{})
	p.serving.Go(func() {
		defer close(left)
		_, _ = conn.Read(make([]byte, 1)) // it has nothing to say (A24)
	})
	var told json.RawMessage
	for {
		list, changed := p.current()
		if list != nil && string(list) != string(told) {
			if err := p.tell(conn, list); err != nil {
				return p.unlessClosed(err)
			}
			told = list
		}
		select {
		case <-changed:
		case <-left:
			return nil
		}
	}
}

// knows reports whether the other side says the secret, as its first line. No more than that is read.
func (p *Publisher) knows(conn net.Conn) bool {
	in := bufio.NewReaderSize(io.LimitReader(conn, int64(len(p.secret)+1)), len(p.secret)+1)
	line, _ := in.ReadSlice('\n')
	return subtle.ConstantTimeCompare(line, []byte(p.secret+"\n")) == 1
}

func (p *Publisher) current() (json.RawMessage, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list, p.changed
}

func (p *Publisher) tell(conn net.Conn, list json.RawMessage) error {
	if err := conn.SetWriteDeadline(time.Now().Add(p.options.Timeout)); err != nil {
		return err
	}
	_, err := conn.Write(append(list[:len(list):len(list)], '\n'))
	return err
}

// unlessClosed is err, or nil if it comes from Close.
func (p *Publisher) unlessClosed(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	return err
}

// maxSocketPath is the longest path of a socket on any of our systems, which is that of macOS.
const maxSocketPath = 103

// SocketError: no socket could be made, or none answered.
type SocketError struct {
	// Path is the socket's, or its directory's.
	Path string
	// Hint says what to do, "" if there is nothing to say.
	Hint string
	// Err is the cause.
	Err error
}

func (e *SocketError) Error() string {
	text := fmt.Sprintf("the socket %s for MCP relays cannot be used: %v", e.Path, e.Err)
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

// Unwrap returns the cause.
func (e *SocketError) Unwrap() error { return e.Err }

// listen makes a socket with a random name in a directory that is closed to others.
func listen(dir string) (net.Listener, error) {
	if err := privatefile.MakeDir(dir); err != nil {
		return nil, &SocketError{Path: dir, Err: err}
	}
	sweep(dir)
	path := filepath.Join(dir, random(8))
	if len(path) > maxSocketPath {
		return nil, &SocketError{Path: path, Hint: "choose a shorter state directory with --state-dir",
			Err: fmt.Errorf("its path has %d bytes, and %d are the most", len(path), maxSocketPath)}
	}
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, &SocketError{Path: path, Err: err}
	}
	return listener, nil
}

// leftFor is how long a socket that nobody listens to is left alone: one that is just being made is such, too.
const leftFor = time.Hour

// sweep removes the sockets of processes that were killed.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || info.Mode().Type()&fs.ModeSocket == 0 || time.Since(info.ModTime()) < leftFor {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
			_ = conn.Close()
			continue
		}
		_ = os.Remove(path)
	}
}
