package serve

import (
	"cmp"
	"fmt"
	"log/slog"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// User is everything needed to serve one of a user's connections.
type User struct {
	// Account is the user's account. It may be another one for the next connection.
	Account Account
	// Connection names the connection.
	Connection string
	// Workspace allows only roots in the directories of the account.
	Workspace workspace.Options
	// Store has the sessions of the user only.
	Store sessionstore.Store
	// Log names the user in each message.
	Log *slog.Logger
}

// user returns what a connection of the user with this name is served with.
func (s *Server) user(name string) (User, error) {
	a, err := s.account(name)
	if err != nil {
		return User{}, err
	}
	roots := s.options.Workspace
	roots.Policy.Allow = nil
	for _, within := range a.Within.All() {
		roots.Policy.Allow = append(roots.Policy.Allow, within)
	}
	s.options.Store.Limit(name, cmp.Or(a.Limits.StoredBytes, s.options.StoredBytes))
	return User{
		Account:    a,
		Connection: fmt.Sprintf("%d %s", s.connected.Add(1), name),
		Workspace:  roots,
		Store:      s.options.Store.For(name),
		Log:        s.options.Log.With("user", name),
	}, nil
}

// serving returns the options of a user's connection.
func (s *Server) serving(p acp.Peer) (acp.Options, error) {
	user, err := s.user(p.Principal)
	if err != nil {
		return acp.Options{}, err
	}
	o, err := s.options.Serving(user)
	if err != nil {
		return acp.Options{}, err
	}
	o.Workspace, o.Store, o.Logger = user.Workspace, user.Store, user.Log
	log := s.options.Audit.With(visitor{user.Account, Token{ID: p.Via}}.named()...)
	o.Observe = func(e acp.Event) {
		s.metrics.observe(e)
		if request, ok := e.(acp.RequestEvent); ok {
			s.health.note(request.Err)
		}
		audit(log, e)
		s.notifier.observe(p.Principal, e)
	}
	return o, nil
}
