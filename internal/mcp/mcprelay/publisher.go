package mcprelay

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
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

	"github.com/acp-agent/acp-agent/internal/files/privatefile"
	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// SecretVariable is the environment variable that holds the secret a relay sends to its publisher.
const SecretVariable = "ACP_AGENT_RELAY_SECRET"

// Publisher sends a session's roots to its relays, and to processes that ask for them with
// [SessionRoots]. It is safe for concurrent use and must be closed.
type Publisher struct {
	log      *slog.Logger
	timeout  time.Duration // for a relay to send the secret and to read a list
	check    time.Duration // between checks for roots that vanished or came back
	listener net.Listener
	secret   string
	serving  sync.WaitGroup
	ctx      context.Context // ends with the publisher
	close    func() error

	mu      sync.Mutex
	roots   *mcproots.Snapshot   // nil before the first Set
	tell    func() string        // nil before SetAnswers
	rules   func() (Rules, bool) // nil before SetAnswers
	changed chan struct{}        // closed and replaced by Set
}

// Listen returns a publisher with a socket in dir. It creates dir if necessary and makes it
// accessible to this user only; dir should hold nothing else. If the path of dir is too long for a
// socket, a private temporary directory takes its place. Relays that connect before the first Set
// wait for it.
func Listen(dir string, log *slog.Logger) (*Publisher, error) {
	return listen(dir, log, 5*time.Second, 5*time.Second)
}

// maxSocketPath is the longest path of a socket, in bytes, on the system with the lowest limit:
// macOS.
const maxSocketPath = 103

func listen(dir string, log *slog.Logger, timeout, check time.Duration) (*Publisher, error) {
	if err := privatefile.MakeDir(dir); err != nil {
		return nil, fmt.Errorf("cannot create the directory for MCP relays: %w", err)
	}
	removeStale(dir)
	path, tempDir := filepath.Join(dir, randomHex(8)), ""
	if len(path) > maxSocketPath {
		var err error
		if tempDir, err = os.MkdirTemp("", "acp-agent-"); err != nil {
			return nil, fmt.Errorf("cannot create the directory for MCP relays: %w", err)
		}
		path = filepath.Join(tempDir, filepath.Base(path))
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot listen for MCP relays on %s: %w", path, err),
			os.RemoveAll(tempDir))
	}
	ctx, end := context.WithCancel(context.Background())
	p := &Publisher{
		log: log, timeout: timeout, check: check, listener: listener, secret: randomHex(32),
		ctx: ctx, changed: make(chan struct{}),
		close: sync.OnceValue(func() error {
			end()
			return errors.Join(listener.Close(), os.RemoveAll(tempDir))
		}),
	}
	p.serving.Go(p.accept)
	return p, nil
}

// removeStale removes sockets that killed processes left behind. It does not remove recent ones,
// because another process may be about to listen.
func removeStale(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || info.Mode().Type()&fs.ModeSocket == 0 ||
			time.Since(info.ModTime()) < time.Hour {
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

// randomHex returns n random bytes in hexadecimal.
func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// Address returns the path of the socket.
func (p *Publisher) Address() string { return p.listener.Addr().String() }

// Secret returns the secret that a relay must send. Pass it in the environment, because other users
// can see command lines.
func (p *Publisher) Secret() string { return p.secret }

// Wrap returns the command of a relay in front of server. relay is the command that [Run] runs in:
// acp-agent mcp-relay. The directory, environment and name are the server's, plus the relay's
// environment and the secret. A relay of a nil Publisher has no session.
func (p *Publisher) Wrap(relay, server process.Command) process.Command {
	wrapped := server
	wrapped.Path, wrapped.Env = relay.Path, slices.Concat(server.Env, relay.Env)
	args := relay.Args
	if p != nil {
		args = slices.Concat(args, []string{"--roots-from", p.Address(), "--server", server.Name})
		wrapped.Env = append(wrapped.Env, SecretVariable+"="+p.secret)
	}
	wrapped.Args = slices.Concat(args, []string{"--", server.Path}, server.Args)
	return wrapped
}

// Set replaces the roots and sends them to the relays if they have changed. It does not wait; a
// slow relay receives only the newest list.
func (p *Publisher) Set(s mcproots.Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roots = &s
	close(p.changed)
	p.changed = make(chan struct{})
}

// SetAnswers sets the functions that return the text for [SessionContext], and the rules for
// [SessionRules] if they are known. They are called for each request, concurrently.
func (p *Publisher) SetAnswers(tell func() string, rules func() (_ Rules, known bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tell, p.rules = tell, rules
}

// Close disconnects the relays, removes the socket, and waits for its goroutines. It may be called
// more than once.
func (p *Publisher) Close() error {
	defer p.serving.Wait()
	return p.close()
}

// accept serves each relay that connects.
func (p *Publisher) accept() {
	for {
		conn, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			p.log.Warn("cannot accept an MCP relay", "error", err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		p.serving.Go(func() { p.serve(conn) })
	}
}

// serve sends a relay each list until it disconnects or the publisher is closed.
func (p *Publisher) serve(conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(p.ctx, func() { _ = conn.Close() })()
	_ = conn.SetReadDeadline(time.Now().Add(p.timeout))
	wants, ok := p.readSecret(conn)
	switch {
	case !ok:
		p.log.Warn("cannot serve an MCP relay: it did not send the secret of this session")
		return
	case wants != allLists:
		p.answer(conn, wants)
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	gone := make(chan struct{})
	p.serving.Go(func() {
		defer close(gone)
		_, _ = conn.Read(make([]byte, 1)) // relays send nothing else
	})
	ticker := time.NewTicker(p.check)
	defer ticker.Stop()
	var sent []byte
	for {
		p.mu.Lock()
		roots, changed := p.roots, p.changed
		p.mu.Unlock()
		if roots != nil {
			line := append(strictjson.Encode(roots.Existing().List()), '\n') // a result of roots/list
			if !bytes.Equal(line, sent) {
				_ = conn.SetWriteDeadline(time.Now().Add(p.timeout))
				if _, err := conn.Write(line); err != nil {
					p.log.Debug("an MCP relay no longer receives the roots", "error", err)
					return
				}
				sent = line
			}
		}
		select {
		case <-changed:
		case <-ticker.C:
		case <-gone:
			return
		}
	}
}

// What the byte after the secret asks for.
const (
	allLists  = '\n' // the roots as results of roots/list, now and when they change
	rootsOnce = '?'  // the session's roots with their real paths, once

	contextOnce = '!' // the session's text for its model, once
	rulesOnce   = '=' // the session's rules, once
)

// readSecret reports whether the relay sends the secret, and returns the byte after it. It reads no
// more than that.
func (p *Publisher) readSecret(conn net.Conn) (wants byte, ok bool) {
	sent := make([]byte, len(p.secret)+1)
	n, _ := io.ReadFull(conn, sent)
	if n < len(sent) || subtle.ConstantTimeCompare(sent[:len(p.secret)], []byte(p.secret)) != 1 {
		return 0, false
	}
	wants = sent[len(p.secret)]
	return wants, slices.Contains([]byte{allLists, rootsOnce, contextOnce, rulesOnce}, wants)
}

// answer answers a process that asks once. It sends nothing if the answer is not known.
func (p *Publisher) answer(conn net.Conn, wants byte) {
	p.mu.Lock()
	roots, tell, rules := p.roots, p.tell, p.rules
	p.mu.Unlock()
	var a any
	switch {
	case wants == rootsOnce && roots != nil:
		a = namedRoots(*roots)
	case wants == contextOnce && tell == nil:
		a = ""
	case wants == contextOnce:
		a = tell()
	case wants == rulesOnce && rules != nil:
		if all, known := rules(); known {
			a = all
		}
	}
	if a == nil {
		return
	}
	_ = conn.SetWriteDeadline(time.Now().Add(p.timeout))
	if _, err := conn.Write(append(strictjson.Encode(a), '\n')); err != nil {
		p.log.Debug("cannot answer an MCP server of ours", "error", err)
	}
}

// namedRoots returns the roots of a session as it names them, or none if it has only one.
func namedRoots(roots mcproots.Snapshot) []workspace.Root {
	all, named := []workspace.Root{}, 0
	for _, r := range roots.All() {
		named += len(r.Dirs)
	}
	if named < 2 {
		return all
	}
	for _, r := range roots.Existing().All() {
		for _, dir := range r.Dirs {
			all = append(all,
				workspace.Root{Index: len(all), Dir: dir, Real: r.Real, Grant: r.Grant})
		}
	}
	return all
}
