package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/calls"
	"github.com/acp-agent/acp-agent/acp/internal/session/gate"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Questions for permission. Those of acp-agent's own come typed, with the action that they are
// about ([backend.Question]); those of an agent come as JSON, and what it says about the action is
// read once (session.readAction). session.decideOrAsk asks the user if no rule decides.

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

// newPermits returns the rules for the session with this id and the roots of w, with what the user
// has allowed in previous, the session that it replaces, if that is not nil.
func newPermits(
	a *agent, id sessionstore.ID, w *workspace.Workspace, previous *session,
) *permission.Permits {
	p := permission.NewPermits(string(id), w, a.consents(), a.origins(), a.options.Permissions)
	if previous != nil {
		p.Inherit(previous.permits)
	}
	return p
}

// origins returns the folders of which others are worktrees.
func (a *agent) origins() worktree.Origins {
	origins, err := a.options.Worktrees.origins()
	if err != nil {
		a.log.Warn("rules about permissions may not hold in some worktrees", "error", err)
	}
	return origins
}

// question is a question to the user, as a client gets it.
type question struct {
	method string
	params backend.Raw
	// Request is read from params, and err says why they can be read in several ways. It is zero
	// for questions of MCP servers.
	permission.Request
	err   error
	child string // that asks, "" for the session itself
	// ofTurn means that the adapter asks before the agent gets the prompt of the turn.
	ofTurn bool
}

// key identifies the tool call that a question is about.
func (q question) key() calls.Key { return calls.Key{Child: q.child, ID: q.Call.ID} }

func newQuestion(method string, params backend.Raw) question {
	q := question{method: method, params: params}
	if method == protocol.RequestPermission {
		q.Request, q.err = permission.ParseRequest(params)
	}
	return q
}

// as returns the question as a client with a role gets it: one that does not act can allow or
// refuse once at most.
func (q question) as(r Role) question {
	if r.has(acts) || q.method != protocol.RequestPermission {
		return q
	}
	options := []permission.Option{}
	for _, o := range q.Options {
		if q.err == nil && r.has(answers) && o.ID != "" && strings.HasSuffix(o.Kind, "_once") {
			options = append(options, o)
		}
	}
	return q.with(options)
}

// with returns the question with other options.
func (q question) with(options []permission.Option) question {
	q.Options = options
	q.params = strictjson.Set(q.params, "options", backend.Encode(options))
	return q
}

// saying returns the question with a text, if there is one, after what is known of its tool call,
// whose content it would replace otherwise.
func (q question) saying(about string, known json.RawMessage) question {
	call := strictjson.Find(q.params, "toolCall")
	content, ok := strictjson.Append(strictjson.Find(calls.Merge(known, call), "content"),
		backend.Encode(sdk.ToolContent(sdk.TextBlock(about))))
	if ok && about != "" {
		q.params = strictjson.SetAt(q.params, content, "toolCall", "content")
	}
	return q
}

// resolution is the result of a question.
type resolution struct {
	answer                   // of a client; Result is nil if another one takes its place
	option permission.Option // that was chosen
	chosen bool
	denied error // by a rule
}

func (o resolution) allows() bool {
	return o.Err == nil && o.chosen && !strings.HasPrefix(o.option.Kind, "reject")
}

// result returns the response to a request of an agent. If the request has no option to refuse, the
// response says that it was cancelled, and some agents then end the turn.
func (o resolution) result() (backend.Raw, error) {
	if o.Err != nil || o.Result != nil {
		return o.Result, o.Err
	}
	response := sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeCancelled()}
	if o.chosen {
		response.Outcome =
			sdk.NewRequestPermissionOutcomeSelected(sdk.PermissionOptionId(o.option.ID))
	}
	return backend.Encode(response), nil
}

// Ask implements [backend.Host].
func (s *session) Ask(ctx context.Context, q backend.Question) (backend.Answer, error) {
	asked := question{method: protocol.RequestPermission, params: q.Params(), Request: q.Request()}
	if s.gate.Phase() != gate.Live || s.asker().check(ctx, asked.method, asked.params) != nil {
		return s.unrecorded().Ask(ctx, q)
	}
	var r ruling
	if q.Action.Verb != "" {
		r = s.rule(q.Action)
	}
	got := s.decideOrAsk(ctx, s.asker(), asked, r)()
	switch {
	case got.denied != nil:
		return backend.Answer{}, got.denied
	case got.allows() && got.Result == nil:
		return backend.Answer{}, nil
	}
	result, err := got.result()
	return q.Answer(ctx, result, err)
}

// requestPermission answers a request of an agent.
func (s *session) requestPermission(
	ctx context.Context, from asker, params backend.Raw,
) backend.Work {
	q := newQuestion(protocol.RequestPermission, params)
	r := s.ruleRequest(ctx, from, q)
	wait := s.decideOrAsk(ctx, from, q, r)
	return func() (backend.Raw, error) {
		got := wait()
		if got.allows() && r.Effect == permission.Ask && r.Rule.String() != "" {
			s.permits.NoteAsked(r.action)
		}
		return got.result()
	}
}

// ruling is the verdict of the rules on a question. The zero ruling is that of a question about
// which no rule is asked.
type ruling struct {
	permission.Verdict
	action permission.Action
}

// rule decides about an action.
func (s *session) rule(a permission.Action) ruling {
	if a.Where.Root == "" {
		a.Where.Root = s.workspace.Root(0).Real.String()
	}
	v, err := s.permits.Decide(s.workspace, a)
	if err != nil {
		s.agent.log.Warn("cannot read the rules about permissions: nothing is allowed by them",
			"session", s.id, "error", err)
		if v.Effect == permission.Ask {
			return ruling{}
		}
	}
	return ruling{v, a}
}

// ruleRequest decides about a request of an agent, by what it says that it will do.
func (s *session) ruleRequest(ctx context.Context, from asker, q question) ruling {
	if !s.permits.Decides() || q.err != nil {
		return ruling{}
	}
	q.Agent = s.agent.info().Profile
	action, err := s.readAction(ctx, from, q.Request)
	if err != nil {
		return ruling{}
	}
	r := s.rule(action)
	if s.permits.Configured == nil && r.Effect != permission.Deny {
		return ruling{} // the agent asks as it would without acp-agent
	}
	return r
}

// readAction returns what a request of an agent says that it will do.
func (s *session) readAction(
	ctx context.Context, from asker, r permission.Request,
) (action permission.Action, err error) {
	var (
		mode  string
		known calls.Call
	)
	err = s.viewers.shown.With(ctx, func(now *shown) error {
		id := calls.Key{Child: from.Child, ID: r.Call.ID}
		known, _ = s.viewers.calls.Get(id)
		s.viewers.calls.Change(id, func(c *calls.Call) { c.Asked = true })
		mode = now.mode
		return nil
	})
	if err != nil {
		return action, err
	}
	err = from.inRoots(ctx, func(w *workspace.Workspace) (err error) {
		action, err = tasks.FromDisk(ctx, s.agent.tasks, func() (permission.Action, error) {
			place := permission.At(w)
			place.Catalog, place.Outside, place.Server = s.Catalog(), s.outsideFile, s.serverConfig
			place.Inside = func(path string) error { return from.reaches(ctx, path) }
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

// inTurn reports whether a turn is running that was not told to end.
func (s *session) inTurn() bool {
	return slices.ContainsFunc(s.queue.Unanswered(), func(t *turns.Turn) bool {
		return t.RunsIn(s)
	})
}

// outsideFile returns the real path of a file outside the roots that may be asked about.
func (s *session) outsideFile(ctx context.Context, path string) (string, error) {
	file, err := openOutside(ctx, path, s.agent.options.Workspace)
	if err != nil {
		return "", err
	}
	defer file.Close()
	return file.Ref().Real(), nil
}

// serverConfig identifies the configuration of the only server with a name that the client gave the
// session.
func (s *session) serverConfig(name string) string {
	found := ""
	for _, c := range s.params.servers {
		if c.Name != name {
			continue
		}
		if found != "" {
			return ""
		}
		found = c.Identity()
	}
	return found
}

// decideOrAsk asks the user a question, unless the ruling answers it. Some agents mention a tool call only
// there, and say nothing more about one that was rejected. Such a call is recorded from the
// question, with its outcome.
func (s *session) decideOrAsk(
	ctx context.Context, from asker, q question, r ruling,
) func() resolution {
	if r.Effect == permission.Allow || r.Effect == permission.Deny {
		return s.decided(ctx, from, q, r)
	}
	q.child = from.Child
	sent, offered := s.offer(q, r)
	var wait func() answer
	begun, isNew := time.Now(), false
	err := s.viewers.shown.With(ctx, func(*shown) error {
		addressed := sent
		addressed.params = from.addressed(sent.method, sent.params)
		wait = s.viewers.poll(ctx, addressed)
		_, known := s.viewers.calls.Get(q.key())
		if isNew = !known && q.Call.ID != ""; isNew {
			s.recordToolCall(ctx, q.key().Announce(strictjson.Find(q.params, "toolCall")))
		}
		return nil
	})
	if err != nil {
		return func() resolution { return resolution{answer: answer{Err: err}} }
	}
	return func() resolution {
		got := resolution{answer: wait()}
		got.option, got.chosen = sent.Chosen(got.Result)
		cmp.Or(got.By, s.agent.connection).observe(AnswerEvent{Session: s.id,
			Title: sent.Call.Title, Choice: got.option.Kind, Duration: time.Since(begun)})
		s.applyAlways(q, offered, &got)
		if isNew && !got.allows() {
			s.recordRejected(ctx, q.key(), got.By)
		}
		return got
	}
}

// decided answers a question by a rule or the session's mode. If it was a rule, the client is shown
// the tool call with a mark.
func (s *session) decided(ctx context.Context, from asker, q question, r ruling) func() resolution {
	var o resolution
	if r.Effect == permission.Allow {
		o.option, o.chosen = q.Once()
	} else {
		o.option, o.chosen = q.Refusal()
		o.denied = &permission.RuleError{Action: r.action, Rule: r.Rule, Effect: permission.Deny}
	}
	if !r.Rule.Preset {
		s.observeRule(q.Call.Title, r.Verdict)
		o.Err = s.showMarked(ctx, from, q, r.Mark())
	}
	return func() resolution { return o }
}

// offer returns the question for the client. If a rule can be made, it offers that in place of the
// asker's own "always". It offers neither where a rule would not stop the question.
func (s *session) offer(q question, r ruling) (sent question, offered permission.Rule) {
	relabels := func(to *connection) bool { return to.clientCapabilities().relabels }
	switch {
	case r.Effect == "":
		return q, offered
	case r.Again:
		if options, ok := q.OnlyOnce(); ok {
			q = q.with(options)
		}
		return q, offered
	case r.Rule.String() != "" || slices.ContainsFunc(s.viewers.Clients(), relabels):
		return q, offered
	}
	rule, isRule := s.permits.Offer(r.action)
	if options, ok := q.Offering(rule, r.action); isRule && ok {
		known, _ := s.viewers.calls.Get(q.key())
		return q.with(options).saying(rule.Explain(), known.Shown), rule
	}
	return q, offered
}

// applyAlways changes the answer of a client so that the asker of q understands it. If the client has chosen
// the offered rule, it holds from now on, and the asker is allowed the action once, so that it
// remembers nothing itself.
func (s *session) applyAlways(q question, offered permission.Rule, got *resolution) {
	if _, known := q.Chosen(got.Result); known && !got.chosen { // it was not offered
		got.Result = nil
		return
	}
	if offered.String() == "" || got.option.Kind != permission.AllowAlways {
		return
	}
	err := s.permits.Remember(offered, consent.Consent{
		Agent: s.agent.info().Profile, By: string(s.id),
		Title: text.Truncate(q.Call.Title, calls.MaxTitle),
	})
	if err != nil {
		s.agent.log.Warn("cannot remember what the user allows", "session", s.id, "error", err)
	}
	got.option, _ = q.Once()
	got.Result = nil
}
