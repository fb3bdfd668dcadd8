package mcprelay

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/internal/mcproots"
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
