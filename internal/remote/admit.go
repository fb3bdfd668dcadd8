package remote

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/websocket"
)

// connect serves a connection.
func (s *Server) connect(w http.ResponseWriter, r *http.Request) {
	from := s.origin(r)
	user, ok := s.identify(w, r, from)
	if !ok {
		return
	}
	from = append([]any{"user", user.Name}, from...)
	log, audit := s.options.Log.With(from...), s.options.Audit.With(from...)
	s.admit(user)
	if s.passOn(w, r, user.Name) {
		log.Info("passed a connection on to the server that has it")
		return
	}
	if !websocket.Resumes(r) {
		s.makeRoom(r.Context(), user.Name)
	}
	conn, err := s.acceptor.Accept(w, r, user.Name)
	switch {
	case err != nil:
		s.metrics.reject()
		log.Warn("rejected a connection", "error", err)
		return
	case conn == nil:
		log.Info("resumed a connection")
		return
	}
	log.Info("connected")
	audit.Info("connected")
	defer audit.Info("disconnected")
	peer := acp.Peer{Principal: user.Name, Remote: true}
	if err := s.peers.Serve(context.WithoutCancel(r.Context()), conn, peer); err != nil {
		log = log.With("error", err)
	}
	log.Info("disconnected")
}

// origin returns where a request comes from, for the logs.
func (s *Server) origin(r *http.Request) []any {
	from := []any{"from", r.RemoteAddr}
	if s.options.BehindProxy {
		const most = 200
		forwarded := strings.Join(r.Header.Values("X-Forwarded-For"), ", ")
		from = append(from, "forwardedFor", text.Truncate(forwarded, most))
	}
	return from
}

// identify returns the user who sent a request for a connection. If it returns false, it has
// answered the request.
func (s *Server) identify(w http.ResponseWriter, r *http.Request, from []any) (Token, bool) {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	user, err := s.options.Tokens.find(secret)
	switch {
	case err != nil && !errors.Is(err, errInvalid):
		s.metrics.reject()
		s.options.Log.With(from...).Error("cannot read a token", "error", err)
		http.Error(w, "the server cannot read the token of this user; its log says why",
			http.StatusServiceUnavailable)
	case err != nil || !strings.EqualFold(scheme, "Bearer"):
		const rejected = "rejected a connection without a valid token"
		s.metrics.reject()
		s.options.Log.Warn(rejected, from...)
		s.options.Audit.Info(rejected, from...)
		w.Header().Set("WWW-Authenticate", `Bearer realm="acp-agent"`)
		http.Error(w, "a valid token is required; acp-agent tokens add, on the server, prints one",
			http.StatusUnauthorized)
	case s.draining.Load() && !websocket.Resumes(r):
		http.Error(w, shuttingDown, http.StatusServiceUnavailable)
	default:
		return user, true
	}
	return Token{}, false
}

// makeRoom ends connections that a user has lost, the oldest first, if there is no room for a new
// one. The user cannot close them, and they would stay until nobody may resume them.
func (s *Server) makeRoom(ctx context.Context, user string) {
	for s.peers.UsedBy(user).Connections >= maxConnections && s.acceptor.EndLost(ctx, user) {
	}
}

// admit notes with which token a user connects, and ends what goes on by virtue of an older one.
func (s *Server) admit(user Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.users[user.Name]; ok && !old.same(user) {
		s.peers.End(user.Name)
	}
	s.users[user.Name] = user
}

// watchTokens calls endRevoked once a second until ctx ends.
func (s *Server) watchTokens(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.endRevoked()
		}
	}
}

// endRevoked ends what goes on for users whose tokens are no longer valid. A token that cannot be
// read stays valid: it may be readable again soon.
func (s *Server) endRevoked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, user := range s.users {
		now, err := s.options.Tokens.get(name)
		revoked := errors.Is(err, fs.ErrNotExist) || err == nil && !now.same(user)
		if revoked && s.peers.End(name) {
			s.options.Log.Info("the token was revoked", "user", name)
		}
	}
}
