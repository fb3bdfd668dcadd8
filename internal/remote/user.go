package remote

import (
	"fmt"
	"log/slog"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/budget"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// maxConnections is how many connections a user may have.
const maxConnections = 100

// limits are what a user may use at once. Messages have limits of their own.
var limits = acp.Limits{Connections: maxConnections, Sessions: 200, Turns: 50}

// messageBudget returns the limits for messages of up to maxLine bytes. A user can send two of them
// at once.
func messageBudget(memory, maxLine int) *budget.Budget {
	perUser := max(memory/4, 2*maxLine)
	return budget.New(budget.Limits{
		PerUser: perUser, Total: max(memory, perUser), Message: maxLine,
	})
}

// User is what the server serves a connection of a user with.
type User struct {
	// Token is the user's token. The next connection's may be another one.
	Token Token
	// Connection names the connection.
	Connection string
	// Workspace allows only roots in the directories of the token.
	Workspace workspace.Options
	// Store has the sessions of the user only.
	Store sessionstore.Store
	// Log names the user in each message.
	Log *slog.Logger
}

// user returns what a connection of the user with this name is served with.
func (s *Server) user(name string) (User, error) {
	t, err := s.options.Tokens.get(name)
	if err != nil {
		return User{}, err
	}
	roots := s.options.Workspace
	roots.Policy.Allow = nil
	for _, within := range t.Within.All() {
		roots.Policy.Allow = append(roots.Policy.Allow, within)
	}
	return User{
		Token:      t,
		Connection: fmt.Sprintf("%d %s", s.connected.Add(1), name),
		Workspace:  roots,
		Store:      timedStore{s.options.Store.For(name), s.metrics.stored},
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
	log := s.options.Audit.With("user", user.Token.Name)
	o.Observe = func(e acp.Event) {
		s.metrics.observe(e)
		audit(log, e)
	}
	return o, nil
}
