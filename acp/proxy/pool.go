package proxy

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// Pool lets connections share the processes of an agent that can close sessions. Its methods are
// safe for concurrent use.
//
// Each session stays with the connection that opened it. A request of the agent that names no
// session goes to the newest connection; a notification that names none goes to all. A login or
// logout holds for all connections. While one client does not read, nothing is read from the agent.
type Pool struct {
	limits PoolLimits

	mu      sync.Mutex
	shared  map[poolKey]*connections
	running map[string]int // processes, by user
	total   int            // processes of all users
	closed  bool
	closing sync.WaitGroup // of processes that no connection uses
}

// PoolLimits are how many processes the agents of a pool may have at once, for each user and in
// all. 0 means no limit.
type PoolLimits struct{ PerUser, Total int }

// poolKey says which connections share processes: those of a user with the same name whose clients
// sent the same initialize. It holds a hash of that.
type poolKey struct {
	user, name string
	initialize [sha256.Size]byte
}

// NewPool returns a pool without processes.
func NewPool(l PoolLimits) *Pool {
	return &Pool{limits: l, shared: make(map[poolKey]*connections), running: make(map[string]int)}
}

// New returns a backend for one connection of a user, like the function [New]. Connections of the
// same user and name whose clients send the same initialize share the agent's processes, so the
// name stands for the command and the options. The processes end a minute after the last of these
// connections, or earlier if there is no room for those of another one.
func (p *Pool) New(user, name string, command Command, o Options) backend.Backend {
	own := newProxy(command, o)
	own.admit = func(ctx context.Context) (func(), error) { return p.admit(ctx, user) }
	return &member{proxy: own, pool: p, user: user, name: name,
		in: &connections{proxy: own, pool: p}}
}

// admit counts a process of a user that is about to start, until release is called. If there are
// too many, it first ends processes that no connection uses.
func (p *Pool) admit(ctx context.Context, user string) (release func(), err error) {
	for {
		p.mu.Lock()
		perUser := p.limits.PerUser > 0 && p.running[user] >= p.limits.PerUser
		if !perUser && (p.limits.Total == 0 || p.total < p.limits.Total) {
			p.total++
			p.running[user]++
			p.mu.Unlock()
			return sync.OnceFunc(func() { p.release(user) }), nil
		}
		unused := p.unusedLocked(user, perUser)
		p.mu.Unlock()
		switch {
		case unused != nil:
			p.end(ctx, unused)
		case perUser:
			return nil, errTooManyProcesses("too many processes of the agent: the limit is %d; "+
				"close an editor window or a session with additional folders first",
				p.limits.PerUser)
		default:
			return nil, errTooManyProcesses("the server has too many processes of agents of all "+
				"users: the limit is %d; try again later", p.limits.Total)
		}
	}
}

// errTooManyProcesses is the error for a process that may not start.
func errTooManyProcesses(format string, limit int) error {
	err := jsonrpc.Errorf(jsonrpc.CodeInternal, format, limit)
	err.Data = backend.Encode(map[string]string{"reason": "too_many_processes"})
	return err
}

func (p *Pool) release(user string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total--
	if p.running[user]--; p.running[user] == 0 {
		delete(p.running, user)
	}
}

// unusedLocked returns connections without a client, perhaps only of a user, or nil.
func (p *Pool) unusedLocked(user string, onlyOfUser bool) *connections {
	for key, cs := range p.shared {
		if cs.lingering != nil && len(cs.clients) == 0 && (!onlyOfUser || key.user == user) {
			return cs
		}
	}
	return nil
}

// Close ends all processes, until ctx ends. It is called when the connections have ended.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	all := p.shared
	p.shared = nil
	p.mu.Unlock()
	var errs []error
	for _, cs := range all {
		errs = append(errs, cs.proxy.Close(ctx))
	}
	p.closing.Wait()
	return errors.Join(errs...)
}

// join adds a client to the connections with a key, or to own if there are none.
func (p *Pool) join(key poolKey, own *connections, c backend.Client) *connections {
	p.mu.Lock()
	defer p.mu.Unlock()
	cs := cmp.Or(p.shared[key], own)
	if cs.lingering != nil {
		cs.lingering.Stop()
	}
	cs.clients = append(cs.clients, c)
	return cs
}

// offer lets others join cs, unless there are such connections already.
func (p *Pool) offer(key poolKey, cs *connections) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed && p.shared[key] == nil {
		p.shared[key], cs.key = cs, key
	}
}

// leave removes a client from cs. After the last client the processes end; if other clients may
// join them, they end after a while.
func (p *Pool) leave(ctx context.Context, cs *connections, c backend.Client) error {
	p.mu.Lock()
	cs.clients = slices.DeleteFunc(cs.clients,
		func(other backend.Client) bool { return other == c })
	last := len(cs.clients) == 0
	if last && p.shared[cs.key] == cs {
		cs.lingering = time.AfterFunc(cs.proxy.options.limits.Linger, func() {
			p.end(context.Background(), cs)
		})
		last = false
	}
	p.mu.Unlock()
	if !last {
		return nil
	}
	return cs.proxy.Close(ctx)
}

// end ends the processes of cs, unless it has clients again.
func (p *Pool) end(ctx context.Context, cs *connections) {
	p.mu.Lock()
	unused := p.shared[cs.key] == cs && len(cs.clients) == 0
	if unused {
		delete(p.shared, cs.key)
		p.closing.Add(1)
	}
	p.mu.Unlock()
	if !unused {
		return
	}
	defer p.closing.Done()
	if err := cs.proxy.Close(ctx); err != nil {
		cs.proxy.log.Error("cannot end the agent", "error", err)
	}
}

// connections are the connections that share a proxy. Together they are its client.
type connections struct {
	proxy *proxy
	pool  *Pool
	// Guarded by the pool's mu:
	key       poolKey          // zero if nobody else may join
	lingering *time.Timer      // ends the processes if no client has joined; nil at first
	clients   []backend.Client // the latest last
}

func (cs *connections) list() []backend.Client {
	cs.pool.mu.Lock()
	defer cs.pool.mu.Unlock()
	return slices.Clone(cs.clients)
}

// Call implements [backend.Client].
func (cs *connections) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	all := cs.list()
	if len(all) == 0 {
		return jsonrpc.Fail(backend.ErrClosed)
	}
	return all[len(all)-1].Call(ctx, method, params)
}

// Notify implements [backend.Client].
func (cs *connections) Notify(ctx context.Context, method string, params backend.Raw) error {
	var errs []error
	for _, c := range cs.list() {
		errs = append(errs, c.Notify(ctx, method, params))
	}
	return errors.Join(errs...)
}

// member is the backend of a connection that may share its proxy. The first initialize, before
// which there are no other messages, decides which proxy that is.
type member struct {
	*proxy
	pool       *Pool
	user, name string
	in         *connections // alone in it before initialize

	mu     sync.Mutex
	client backend.Client // nil before initialize
}

// Initialize implements [backend.Backend].
func (m *member) Initialize(
	ctx context.Context, params backend.Raw, c backend.Client,
) (backend.Info, error) {
	key := poolKey{m.user, m.name, sha256.Sum256(params)}
	m.mu.Lock()
	first := m.client == nil
	m.client = c
	if first {
		m.in = m.pool.join(key, m.in, c)
		m.proxy = m.in.proxy
	}
	m.mu.Unlock()
	info, err := m.proxy.Initialize(ctx, params, m.in)
	if err == nil && m.agentInfo().Close {
		m.pool.offer(key, m.in)
	}
	return info, err
}

// Close implements [backend.Backend].
func (m *member) Close(ctx context.Context) error {
	m.mu.Lock()
	in, c := m.in, m.client
	m.mu.Unlock()
	return m.pool.leave(ctx, in, c)
}
