package acp

import (
	"context"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/calls"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/transcript"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/workspace"
)

// Permissions are the user's rules about what backends may do without asking. Its fields:
//
//	Allow []string // what is not asked about
//	Ask   []string // what is asked about although it is allowed
//	Deny  []string // what is refused
//	Only  bool     // no other rules hold, such as remembered answers of the user
//
// A rule is a text such as "read", "edit docs/**", "run go test ...", "tool SERVER.TOOL" or "fetch
// HOST"; docs/permissions.md describes them all.
type Permissions = permission.Permissions

// origins returns the folders from which worktrees were made.
func (a *adapter) origins() worktree.Origins {
	origins, err := a.options.Worktrees.registry().Origins()
	if err != nil {
		a.log.Warn("rules about permissions may not hold in some worktrees", "error", err)
	}
	return origins
}

// verdict returns what the rules say to a question in s: about the action of acp-agent's own, or
// what the agent says that it will do.
func (a asker) verdict(ctx context.Context, s *session, q question) (v permission.Verdict) {
	switch {
	case q.own != nil && q.own.Verb != "":
		return a.decide(*q.own)
	case q.own != nil || !s.Permits().Decides() || q.err != nil:
		return v
	}
	q.Agent = s.adapter.info().Profile
	action, err := a.readAction(ctx, s, q.Request)
	if err != nil {
		return v
	}
	of := a.decide(action)
	if s.Permits().Configured == nil && of.Effect != permission.Deny {
		return v // the agent asks as it would without acp-agent
	}
	return of
}

// decide returns what the rules say to an action.
func (a asker) decide(action permission.Action) permission.Verdict {
	h := a.host
	if action.Where.Root == "" {
		action.Where.Root = h.unguarded.Root(0).Real.String()
	}
	v, err := h.Permits().Decide(h.unguarded, action)
	if err != nil {
		h.adapter.log.Warn("cannot read the rules about permissions: nothing is allowed by them",
			"session", h.id, "error", err)
		if v.Effect == permission.Ask {
			return permission.Verdict{}
		}
	}
	return v
}

// readAction returns what a request of the agent in s says that it will do.
func (a asker) readAction(
	ctx context.Context, s *session, r permission.Request,
) (action permission.Action, err error) {
	var (
		mode  string
		known calls.Call
	)
	err = s.viewers.Shown.With(ctx, func(now *transcript.Shown) error {
		id := calls.Key{Child: a.Child, ID: r.Call.ID}
		known, _ = s.viewers.Calls.Get(id)
		s.viewers.Calls.Change(id, func(c *calls.Call) { c.Asked = true })
		mode = now.Mode
		return nil
	})
	if err != nil {
		return action, err
	}
	err = a.inRoots(ctx, func(w *workspace.Workspace) (err error) {
		place := permission.At(w)
		place.Catalog, place.Outside = s.Catalog(), s.access.Outside
		place.Server = func(name string) string {
			return serverConfig(s.params.servers, name)
		}
		if w != s.unguarded {
			place.Inside = func(path string) error {
				if err := s.unguarded.HandOver(path); err != nil {
					return err
				}
				return w.HandOver(path)
			}
		}
		action, err = tasks.FromDisk(ctx, s.adapter.tasks, func() (permission.Action, error) {
			return r.Action(ctx, known.Announced(), place), nil
		})
		return err
	})
	switch { // in a mode for plans agents change nothing
	case action.Unclear != "":
	case !s.inTurn():
		action.Unclear = "no turn is running"
	case strings.Contains(strings.ToLower(mode), "plan") && action.Verb != permission.Read &&
		action.Verb != permission.Fetch:
		action.Unclear = "the session is in the mode " + text.Name(mode)
	}
	return action, err
}

// serverConfig identifies the configuration of the only server with a name, "" if there are
// several.
func serverConfig(servers []mcpclient.Config, name string) string {
	named := slices.DeleteFunc(slices.Clone(servers), func(c mcpclient.Config) bool {
		return c.Name != name
	})
	if len(named) != 1 {
		return ""
	}
	return named[0].Identity()
}

// observeRule logs, and tells the observer, that a rule decided about something that an agent does.
func (a asker) observeRule(title string, v permission.Verdict) {
	h := a.host
	h.adapter.log.Info("a rule decided about a request of the agent", "session", h.id,
		"title", text.Truncate(title, calls.MaxTitle), "verdict", v.Effect, "rule", v.Rule.String())
	choice := permission.AllowOnce
	if v.Effect == permission.Deny {
		choice = permission.RejectOnce
	}
	h.adapter.connection.observe(AnswerEvent{Session: h.id, Title: title, Choice: choice,
		Rule: v.Rule.String()})
}

// whyUnruled says what rules are worth for an agent that does not ask.
func whyUnruled(b backend.Info) string {
	asks := " asks for no permission: your rules about permissions do not hold for it."
	if !b.NeverAsks {
		asks = " changes files and runs commands without asking: your rules about permissions do " +
			"not hold for that. It asks " + b.AsksLittle + "."
	}
	if b.ServerSandbox.Mode != backend.SandboxOff {
		return text.Name(b.Profile) + asks + " Its sandbox restricts it."
	}
	return text.Name(b.Profile) + asks +
		" Use the sandbox, `--sandbox write`, if it should not do everything."
}
