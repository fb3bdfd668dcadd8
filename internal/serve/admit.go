package serve

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/serve/budget"
	"github.com/acp-agent/acp-agent/internal/serve/websocket"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/pause"
)

func (s *Server) connect(w http.ResponseWriter, r *http.Request) {
	from := s.source(r)
	if !s.options.Origins.Admit(r) {
		s.refuseOrigin(w, r, from)
		return
	}
	v, ok := s.identify(w, r, from)
	if !ok {
		return
	}
	resumes := websocket.ResumedID(r) != ""
	if resumes && v.Kind == Device {
		// The connection may be that of a program, which may do more.
		http.Error(w, "a browser cannot resume connections", http.StatusForbidden)
		return
	}
	s.admit(v.Account)
	if s.pace(v.Name).WaitN(r.Context(), requestUnits) != nil {
		return // the client has left
	}
	from = append(v.named(), from...)
	log, audit := s.options.Log.With(from...), s.options.Audit.With(from...)
	serve := s.serveNew
	if resumes {
		serve = s.resume
	}
	if err := serve(w, r, v, log, audit); err != nil {
		s.metrics.reject()
		log.Warn("rejected a connection", "error", err)
	}
}

// resume gives a lost connection the socket of a request. If it fails it has answered the request.
func (s *Server) resume(
	w http.ResponseWriter, r *http.Request, v visitor, log, audit *slog.Logger,
) error {
	if err := s.acceptor.Resume(w, r, v.Name); err != nil {
		return err
	}
	s.readmit(websocket.ResumedID(r), v.Token)
	log.Info("resumed a connection")
	audit.Info("resumed a connection")
	return nil
}

// serveNew serves a new connection until it ends. If it fails it has answered the request.
func (s *Server) serveNew(
	w http.ResponseWriter, r *http.Request, v visitor, log, audit *slog.Logger,
) error {
	s.makeRoom(r.Context(), v.Account)
	peer := acp.Peer{Principal: v.Name, Via: v.ID, Remote: true, Limits: v.Limits.Limits}
	max := s.options.MaxLine
	if v.Kind == Device && v.Role != acp.RoleFull {
		peer.Role = v.Role
		max = budget.Small // it sends nothing larger, and must not be in the way of what does
	}
	conn, err := s.acceptor.Accept(w, r, v.Name, max)
	if err != nil {
		return err
	}
	log.Info("connected")
	audit.Info("connected")
	defer audit.Info("disconnected")
	ctx, end := context.WithCancel(context.WithoutCancel(r.Context()))
	defer s.note(conn.ID(), admitted{user: v.Name, token: v.Token, end: end})()
	limited := &paced{conn, s.messages.Of(v.Name), s.pace(v.Name)}
	if err := s.acp.Serve(ctx, limited, peer); err != nil {
		log = log.With("error", err)
	}
	log.Info("disconnected")
	return nil
}

// visitor is the user who has sent a request, and the token that came with it, unless a proxy has
// named the user.
type visitor struct {
	Account
	Token
}

// named returns who that is, for the logs.
func (v visitor) named() []any {
	if v.ID == "" {
		return []any{"user", v.Name, "namedBy", "proxy"}
	}
	return []any{"user", v.Name, "token", v.ID}
}

// refuseOrigin answers the request of a web page that may not connect.
func (s *Server) refuseOrigin(w http.ResponseWriter, r *http.Request, from []any) {
	const most = 200
	origin := text.Truncate(text.Printable(r.Header.Get("Origin")), most)
	s.metrics.reject()
	s.options.Log.With(from...).Warn("rejected a connection of a web page", "origin", origin)
	http.Error(w, "web pages of "+origin+" may not connect; acp-agent serve --origin allows them",
		http.StatusForbidden)
}

// source returns where a request comes from, for the logs.
func (s *Server) source(r *http.Request) []any {
	from := []any{"from", r.RemoteAddr}
	if s.options.BehindProxy {
		const most = 200
		forwarded := strings.Join(r.Header.Values("X-Forwarded-For"), ", ")
		from = append(from, "forwardedFor", text.Truncate(forwarded, most))
	}
	return from
}

// refusing is how long it takes at least to refuse a token. It hides whether there is a user with
// the name, which takes some microseconds to find out.
const refusing = 5 * time.Millisecond

// identify returns who sent a request for a connection. If it returns false, it has answered it.
func (s *Server) identify(
	w http.ResponseWriter, r *http.Request, from []any,
) (visitor, bool) {
	begun := time.Now()
	v, err := s.who(r)
	switch {
	case errors.Is(err, errNobody):
		s.reject("rejected a connection: the proxy names no user of this server", append(from,
			"named",
			text.Truncate(strings.Join(r.Header[s.options.UserHeader.header], ", "), maxAudited)))
		http.Error(w, "the proxy names no user of this server; acp-agent tokens add, on the "+
			"server, makes one", http.StatusForbidden)
	case err != nil && !errors.Is(err, errInvalid):
		s.metrics.reject()
		s.options.Log.With(from...).Error("cannot read a token", "error", err)
		http.Error(w, "the server cannot read the token of this user; its log says why",
			http.StatusServiceUnavailable)
	case err != nil:
		s.reject("rejected a connection without a valid token", from)
		_ = pause.For(r.Context(), refusing-time.Since(begun))
		w.Header().Set("WWW-Authenticate", `Bearer realm="acp-agent"`)
		http.Error(w, "a valid token is required; acp-agent tokens add, on the server, prints one",
			http.StatusUnauthorized)
	case s.options.AuditErr() != nil:
		s.metrics.reject()
		http.Error(w, auditFails, http.StatusServiceUnavailable)
	case s.draining.Load() && websocket.ResumedID(r) == "":
		http.Error(w, shuttingDown, http.StatusServiceUnavailable)
	default:
		return v, true
	}
	return visitor{}, false
}

// reject counts a request of somebody unknown, and says in both logs what was rejected.
func (s *Server) reject(what string, from []any) {
	s.metrics.reject()
	s.options.Log.Warn(what, from...)
	s.options.Audit.Info(what, from...)
}

// makeRoom ends connections that a user has lost, the oldest first, until the limit permits a new
// one. The user cannot close them, and they would stay until nobody may resume them.
func (s *Server) makeRoom(ctx context.Context, a Account) {
	limit := cmp.Or(a.Limits.Connections, s.options.Limits.Connections)
	for limit > 0 && s.acp.UsedBy(a.Name).Connections >= limit && s.acceptor.EndLost(ctx, a.Name) {
	}
}

// admit notes which rights a user has, and ends what goes on by virtue of others. That goes
// together, so that no connection with the new rights ends.
func (s *Server) admit(a Account) {
	s.mu.Lock()
	old, known := s.users[a.Name]
	s.users[a.Name] = a
	var wait func()
	if known && !old.same(a) {
		wait = s.acp.End(a.Name)
	}
	s.mu.Unlock()
	if wait != nil {
		wait()
	}
}

// admitted is a connection of a user, and the token that it came with last, unless a proxy named
// the user.
type admitted struct {
	user  string
	token Token
	end   func() // ends the connection and its turns
	gone  bool   // the connection has ended, but its turns may go on
}

// note notes a connection, which has ended when the caller calls left.
func (s *Server) note(id string, c admitted) (left func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[id] = &c
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.gone = true
		s.forgetLocked(id, &c)
	}
}

// forgetLocked forgets a connection that has ended, if no turns of it can go on.
func (s *Server) forgetLocked(id string, c *admitted) (forgotten bool) {
	if !c.gone || s.acp.UsedBy(c.user).Turns > 0 {
		return false
	}
	c.end()
	delete(s.conns, id)
	return true
}

// readmit notes that a connection was resumed with a token, perhaps another one than before.
func (s *Server) readmit(id string, t Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.conns[id]; c != nil {
		c.token = t
	}
}

// endRevoked ends what goes on for users who are gone or have other rights, and connections whose
// tokens are no longer valid, with the turns that they have started. Unreadable users and
// tokens count as valid: they may be readable again soon.
func (s *Server) endRevoked() {
	s.mu.Lock()
	ended := s.endUsersLocked(func(a Account) bool {
		now, err := s.account(a.Name)
		revoked := errors.Is(err, fs.ErrNotExist) || err == nil && !now.same(a)
		if revoked {
			delete(s.users, a.Name)
		}
		return revoked
	})
	s.endTokensLocked()
	s.mu.Unlock()
	for name, wait := range ended {
		wait()
		s.options.Log.Info("the user was revoked or changed", "user", name)
		s.options.Audit.Info("ended the connections of a user who was revoked or changed",
			"user", name)
	}
}

// endUsersLocked ends what goes on for the users whom a function selects. It returns those for whom
// there was something, each with a function that waits until that reads no more requests.
func (s *Server) endUsersLocked(selects func(Account) bool) map[string]func() {
	ended := make(map[string]func())
	for name, account := range s.users {
		if !selects(account) {
			continue
		}
		if wait := s.acp.End(name); wait != nil {
			ended[name] = wait
		}
	}
	return ended
}

// endTokensLocked ends the connections whose tokens are no longer valid.
func (s *Server) endTokensLocked() {
	for id, c := range s.conns {
		_, goesOn := s.users[c.user]
		if s.forgetLocked(id, c) || c.token.ID == "" || !goesOn {
			continue
		}
		t, err := s.options.Accounts.token(c.user, c.token.ID)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !t.validAt(time.Now()) {
			c.end()
			delete(s.conns, id)
			s.options.Log.Info("the token was revoked or has expired", "user", c.user,
				"token", t.ID)
			s.options.Audit.Info("ended a connection whose token was revoked or has expired",
				"user", c.user, "token", t.ID)
		}
	}
}

// endUnaudited ends everything that goes on if the audit log cannot be written, and tries whether
// it can be.
func (s *Server) endUnaudited() {
	why := s.options.AuditErr()
	if why == nil {
		return
	}
	s.options.Audit.Info("refused service because the audit log could not be written")
	s.mu.Lock()
	ended := s.endUsersLocked(func(Account) bool { return true })
	s.mu.Unlock()
	for name, wait := range ended {
		wait()
		s.options.Log.Error("ended what a user did: the audit log cannot be written",
			"user", name, "error", why)
	}
}
