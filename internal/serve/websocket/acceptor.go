package websocket

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coder/websocket"

	"github.com/acp-agent/acp-agent/internal/serve/budget"
)

// Acceptor accepts connections, and resumes those that were lost.
type Acceptor struct {
	times  Times
	budget *budget.Budget

	mu    sync.Mutex
	conns map[string]*resumable // by id
}

// maxUnread is how many messages a server keeps that were not read. Beyond it the next ones, and
// confirmations, wait in the network.
const maxUnread = 100

// NewAcceptor returns an Acceptor. b, which may be nil, limits what is held of unanswered messages.
func NewAcceptor(times Times, b *budget.Budget) *Acceptor {
	return &Acceptor{times: times.withDefaults(), budget: b, conns: make(map[string]*resumable)}
}

// ResumedID returns the id of the connection that r is to resume, or "".
func ResumedID(r *http.Request) string { return r.Header.Get(idHeader) }

// Waiting returns how many connections are lost and can be resumed, and how many bytes other
// acp-agents have not confirmed.
func (a *Acceptor) Waiting() (lost, bytes int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.conns {
		if !c.lostSince().IsZero() {
			lost++
		}
		bytes += c.out.size()
	}
	return lost, bytes
}

// EndLost ends the connection of owner that has been lost for longest, and waits until it is closed
// or ctx ends. It returns false if no connection is lost.
func (a *Acceptor) EndLost(ctx context.Context, owner string) bool {
	a.mu.Lock()
	lost := slices.DeleteFunc(slices.Collect(maps.Values(a.conns)), func(c *resumable) bool {
		return c.owner != owner || c.lostSince().IsZero()
	})
	a.mu.Unlock()
	if len(lost) == 0 {
		return false
	}
	oldest := slices.MinFunc(lost, func(c, other *resumable) int {
		return c.lostSince().Compare(other.lostSince())
	})
	if oldest.current() != nil {
		return true // it has just been resumed
	}
	oldest.finish(errReplaced)
	select {
	case <-oldest.gone.Done():
	case <-ctx.Done():
	}
	return true
}

// Accept accepts a new connection of owner for messages of up to max bytes. The caller has checked
// the origin of web pages. If it fails it has answered the request.
func (a *Acceptor) Accept(
	w http.ResponseWriter, r *http.Request, owner string, max int,
) (Conn, error) {
	id := rand.Text()
	w.Header().Set(idHeader, id)
	socket, err := accept(w, r)
	if err != nil {
		return nil, err
	}
	of := side{id: id, max: max, maxUnread: maxUnread, times: a.times, owner: owner,
		budget: a.budget.Of(owner)}
	if socket.Subprotocol() != protocol {
		return newPlain(of, socket), nil
	}
	c := newResumable(of, (*resumable).await)
	a.mu.Lock()
	a.conns[id] = c
	a.mu.Unlock()
	context.AfterFunc(c.ctx, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.conns, id)
	})
	c.attach(socket, 0, 0)
	return c, nil
}

// errGone refuses to resume a connection that the server, or the user, does not have.
var errGone = errors.New("the server no longer has this connection")

// Resume gives the connection with [ResumedID] a new socket, if owner has it. If it fails it has
// answered the request.
func (a *Acceptor) Resume(w http.ResponseWriter, r *http.Request, owner string) error {
	a.mu.Lock()
	c := a.conns[ResumedID(r)]
	a.mu.Unlock()
	received, err := strconv.ParseUint(r.Header.Get(receivedHeader), 10, 64)
	if c == nil || c.owner != owner || err != nil {
		http.Error(w, errGone.Error(), http.StatusGone)
		return errGone
	}
	ours := c.detach()
	w.Header().Set(receivedHeader, strconv.FormatUint(ours, 10))
	socket, err := accept(w, r)
	if err == nil {
		c.attach(socket, received, ours)
	}
	return err
}

const (
	// bearer begins the subprotocol with a token.
	bearer = "bearer."
	// webProtocol is the subprotocol of web pages that speak ACP.
	webProtocol = "acp.v1"
)

// Token returns the token of a request for a connection, or "". Web pages cannot set
// the header Authorization. They offer the token as a subprotocol.
func Token(r *http.Request) string {
	if given := r.Header.Get("Authorization"); given != "" {
		scheme, token, _ := strings.Cut(given, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return ""
		}
		return token
	}
	return Offered(r, bearer)
}

// Offered returns what follows a prefix in the subprotocols that a request offers, or "".
func Offered(r *http.Request, prefix string) string {
	for _, header := range r.Header.Values("Sec-WebSocket-Protocol") {
		for offered := range strings.SplitSeq(header, ",") {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(offered), prefix); ok {
				return rest
			}
		}
	}
	return ""
}

func accept(w http.ResponseWriter, r *http.Request) (*websocket.Conn, error) {
	subprotocols := []string{protocol, webProtocol}
	if token := Offered(r, bearer); token != "" {
		subprotocols = append(subprotocols, bearer+token) // browsers want one that they offer
	}
	return websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols: subprotocols, InsecureSkipVerify: true, // of the origin
	})
}
