// Package relays tells the MCP servers of sessions the roots. If the agent does not do that, each
// stdio server is started behind a relay that answers roots/list; HTTP servers cannot have one. Our
// own tool server always gets the roots from here, and with them the rules and what its
// instructions say. Sessions that replace each other share their relays, so that a server that
// keeps running is told about changes, and so may sessions with the same roots.
package relays

import (
	"log/slog"
	"slices"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/briefing"
	"github.com/acp-agent/acp-agent/internal/mcp/mcprelay"
	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/workspace"
)

// Session is a session with its relays, which are off until Start or Join. These are called before
// the session is used concurrently. The other methods are safe for that.
type Session struct {
	host   backend.Host
	log    *slog.Logger
	shared *shared

	// Guarded by shared.mu:
	tells     func() []briefing.Part // what our tool server tells the model
	roots     mcproots.Snapshot
	published bool // the roots are
}

// shared are the relays of sessions.
type shared struct {
	publisher *mcprelay.Publisher // nil if they are off

	mu    sync.Mutex
	users []*Session // the latest last; none once the relays are closed, or if they are off
	// told are the parts that the instructions of our tool server tell the model, if the server was
	// started since the child session was opened.
	told []briefing.Part
}

// New returns a session whose relays are off.
func New(h backend.Host, log *slog.Logger) *Session {
	return &Session{host: h, log: log, shared: &shared{},
		tells: func() []briefing.Part { return nil }}
}

// Start starts relays, which listen in dir. If that is not possible, it logs why and returns false.
func (s *Session) Start(dir string) bool {
	publisher, err := mcprelay.Listen(dir, s.log)
	if err != nil {
		s.log.Warn("cannot tell the agent's MCP servers the session's roots, "+
			"or give it tools for them", "error", err)
		return false
	}
	s.shared = &shared{publisher: publisher, users: []*Session{s}}
	publisher.SetAnswers(s.shared.tell, s.shared.rules)
	s.Publish() // the child may start servers before it responds
	return true
}

// Join lets the session use the relays of another one. It returns false if they are closed or off.
func (s *Session) Join(other *Session) bool {
	r := other.shared
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.users) == 0 {
		return false
	}
	s.shared, r.users = r, append(r.users, s)
	return true
}

// Listens reports whether the relays are not off.
func (s *Session) Listens() bool { return s.shared.publisher != nil }

// Shares reports whether both sessions use the same relays, which are not off.
func (s *Session) Shares(other *Session) bool { return s.Listens() && s.shared == other.shared }

// IsAlone reports whether no other session uses the relays.
func (s *Session) IsAlone() bool {
	r := s.shared
	r.mu.Lock()
	defer r.mu.Unlock()
	return !slices.ContainsFunc(r.users, func(other *Session) bool { return other != s })
}

// Address returns the path of the socket on which relays listen that are not off.
func (s *Session) Address() string { return s.shared.publisher.Address() }

// Secret returns the environment variable that lets a server ask relays that are not off.
func (s *Session) Secret() sdk.EnvVariable {
	return sdk.EnvVariable{Name: mcprelay.SecretVariable, Value: s.shared.publisher.Secret()}
}

// Wrap returns the command of a relay in front of server, as [mcprelay.Publisher.Wrap] does. If the
// relays are off, the agent answers the server's requests for roots.
func (s *Session) Wrap(relay, server process.Command) process.Command {
	return s.shared.publisher.Wrap(relay, server)
}

// Publish tells the servers the roots. It logs errors.
func (s *Session) Publish() {
	if !s.Listens() {
		return
	}
	roots, err := mcproots.Take(s.host.Workspace())
	if err != nil {
		s.log.Warn("cannot tell the agent's MCP servers the new roots", "error", err)
		return
	}
	r := s.shared
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.users, s) {
		s.roots, s.published = roots, true
		r.publisher.Set(roots)
	}
}

// Expect sets what our tool server tells the model.
func (s *Session) Expect(tells func() []briefing.Part) {
	r := s.shared
	r.mu.Lock()
	defer r.mu.Unlock()
	s.tells = tells
}

// Told returns the parts that our tool server was told for the model, nil for none.
func (s *Session) Told() []briefing.Part {
	r := s.shared
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told
}

// Forget drops what Told returns, because the child may not start our tool server again.
func (s *Session) Forget() {
	r := s.shared
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = nil
}

// Leave ends the use of the relays, and publishes the roots of the latest session that is left.
// Without sessions the relays are closed. It may be called more than once.
func (s *Session) Leave() error {
	r := s.shared
	r.mu.Lock()
	r.users = slices.DeleteFunc(r.users, func(other *Session) bool { return other == s })
	left := len(r.users)
	if left > 0 && r.users[left-1].published {
		r.publisher.Set(r.users[left-1].roots)
	}
	r.mu.Unlock()
	if left > 0 || !s.Listens() {
		return nil
	}
	return r.publisher.Close()
}

// rules returns the rules for our tool server and behind relays: those of all sessions, because
// these do not know for whom they are called. known is false once the relays are being closed.
func (r *shared) rules() (_ mcprelay.Rules, known bool) {
	r.mu.Lock()
	users := slices.Clone(r.users)
	var roots []mcproots.Snapshot
	for _, u := range users {
		roots = append(roots, u.roots)
	}
	r.mu.Unlock()
	var all permission.Permissions
	for _, u := range users {
		ask, deny := u.host.Restrictions()
		all = all.With(permission.Permissions{Ask: ask, Deny: deny})
	}
	var folders, readOnly []string
	for _, published := range roots {
		for _, root := range published.Existing().All() {
			folders = append(folders, root.Real.String())
			if root.Grant == workspace.ReadOnly {
				readOnly = append(readOnly, root.Real.String())
			}
		}
	}
	return mcprelay.Rules{Ask: all.Ask, Deny: all.Deny, Folders: folders, ReadOnly: readOnly},
		len(users) > 0
}

// tell returns the text that the instructions of our tool server contain for the latest session's
// model, or "".
func (r *shared) tell() string {
	tells := func() []briefing.Part { return nil }
	r.mu.Lock()
	if len(r.users) > 0 {
		tells = r.users[len(r.users)-1].tells
	}
	r.mu.Unlock()
	told := tells()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = told
	return briefing.SystemText(told)
}
