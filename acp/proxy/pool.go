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
	shared  map[poolKey]*sharedProxy
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
	return &Pool{limits: l, shared: make(map[poolKey]*sharedProxy), running: make(map[string]int)}
}

// New returns a backend for one connection of a user, like the function [New]. Connections of the
// same user and name whose clients send the same initialize share the agent's processes, so the
// name stands for the command and the options. The processes end a minute after the last of these
// connections, or earlier if there is no room for those of another one.
func (p *Pool) New(user, name string, command Command, o Options) backend.Backend {
	own := newProxy(command, o, func(ctx context.Context) (func(), error) {
		return p.admit(ctx, user)
	})
	return &member{proxy: own, shared: &sharedProxy{proxy: own, pool: p}, user: user, name: name}
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

// unusedLocked returns a proxy without a client, perhaps only of a user, or nil.
func (p *Pool) unusedLocked(user string, onlyOfUser bool) *sharedProxy {
	for key, sp := range p.shared {
		if len(sp.clients) == 0 && (!onlyOfUser || key.user == user) {
			return sp
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
	for _, sp := range all {
		errs = append(errs, sp.proxy.Close(ctx))
	}
	p.closing.Wait()
	return errors.Join(errs...)
}

// join adds a client to the proxy with a key, or to own if there is none.
func (p *Pool) join(key poolKey, own *sharedProxy, c backend.Client) *sharedProxy {
	p.mu.Lock()
	defer p.mu.Unlock()
	sp := cmp.Or(p.shared[key], own)
	if sp.lingering != nil {
		sp.lingering.Stop()
	}
	sp.clients = append(sp.clients, c)
	return sp
}

// offer lets others join a proxy, unless there is one with its key already.
func (p *Pool) offer(key poolKey, sp *sharedProxy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed && p.shared[key] == nil && len(sp.clients) > 0 {
		p.shared[key], sp.key = sp, key
	}
}

// leave removes a client from a proxy. After the last client the processes end; if other clients
// may join them, they end after a while.
func (p *Pool) leave(ctx context.Context, sp *sharedProxy, c backend.Client) error {
	p.mu.Lock()
	sp.clients = slices.DeleteFunc(sp.clients,
		func(other backend.Client) bool { return other == c })
	last := len(sp.clients) == 0
	if last && p.shared[sp.key] == sp {
		sp.lingering = time.AfterFunc(sp.proxy.options.limits.Linger, func() {
			p.end(context.Background(), sp)
		})
		last = false
	}
	p.mu.Unlock()
	if !last {
		return nil
	}
	return sp.proxy.Close(ctx)
}

// end ends the processes of a proxy, unless it has clients again.
func (p *Pool) end(ctx context.Context, sp *sharedProxy) {
	p.mu.Lock()
	unused := p.shared[sp.key] == sp && len(sp.clients) == 0
	if unused {
		delete(p.shared, sp.key)
		p.closing.Add(1)
	}
	p.mu.Unlock()
	if !unused {
		return
	}
	defer p.closing.Done()
	if err := sp.proxy.Close(ctx); err != nil {
		sp.proxy.log.Error("cannot end the agent", "error", err)
	}
}

// sharedProxy is a proxy with the connections that share it. It is their common client.
type sharedProxy struct {
	proxy *proxy
	pool  *Pool
	// Guarded by the pool's mu:
	key       poolKey          // zero if nobody else may join
	lingering *time.Timer      // ends the processes if no client has joined; nil at first
	clients   []backend.Client // the latest last
}

func (sp *sharedProxy) list() []backend.Client {
	sp.pool.mu.Lock()
	defer sp.pool.mu.Unlock()
	return slices.Clone(sp.clients)
}

// Call implements [backend.Client].
func (sp *sharedProxy) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	all := sp.list()
	if len(all) == 0 {
		return jsonrpc.Fail(backend.ErrClosed)
	}
	return all[len(all)-1].Call(ctx, method, params)
}

// Notify implements [backend.Client].
func (sp *sharedProxy) Notify(ctx context.Context, method string, params backend.Raw) error {
	var errs []error
	for _, client := range sp.list() {
		errs = append(errs, client.Notify(ctx, method, params))
	}
	return errors.Join(errs...)
}

// member is the backend of a connection that may share its proxy. It changes only in Initialize,
// before which there are no other messages. Only Close may come during that.
type member struct {
	*proxy                  // that of shared
	shared     *sharedProxy // its own until it joins another one
	user, name string

	mu     sync.Mutex     // for Initialize and Close
	joined backend.Client // as which it has joined, nil before
}

// Initialize implements [backend.Backend]. The first call decides which proxy the member has.
func (m *member) Initialize(
	ctx context.Context, params backend.Raw, c backend.Client,
) (backend.Info, error) {
	key := poolKey{m.user, m.name, sha256.Sum256(params)}
	m.mu.Lock()
	if m.joined == nil {
		m.shared, m.joined = m.shared.pool.join(key, m.shared, c), c
		m.proxy = m.shared.proxy
	}
	m.mu.Unlock()
	info, err := m.proxy.Initialize(ctx, params, m.shared)
	if err == nil && m.program.Info().Close {
		m.shared.pool.offer(key, m.shared)
	}
	return info, err
}

// Close implements [backend.Backend].
func (m *member) Close(ctx context.Context) error {
	m.mu.Lock()
	shared, joined := m.shared, m.joined
	m.joined = shared // so that it joins no other one
	m.mu.Unlock()
	return shared.pool.leave(ctx, shared, joined)
}
