package acp

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/workspace"
)

// Package policy decides about each request for permission before it is sent to the client.
//
//   - permits are the rules that hold in a session.
//   - session.permit decides: about a question of acp-agent's own by its action, about a request of
//     an agent by what the request and the agent's earlier updates say.
//   - ruling is what comes of it: an answer in place of the client's, or a request in which the user
//     may choose a rule.

// Permissions are the user's rules about what backends may do without asking. Its fields:
//
//	Allow []string // what is not asked about
//	Ask   []string // what is asked about although it is allowed
//	Deny  []string // what is refused
//	Only  bool     // no other rules hold, such as those that the user gave for good
//
// A rule is a text such as "read", "edit docs/**", "run go test ...", "tool SERVER.TOOL" or "fetch
// HOST"; docs/permissions.md describes them all.
type Permissions = permission.Permissions

// permits are the rules that hold in a session.
type permits struct {
	permission.Sources

	mu    sync.Mutex
	given []permission.Rule   // by the user, until the session is closed
	asked []permission.Action // what the user has allowed once, as a rule wants, and is not done yet
}

// newPermits returns the rules for a session with the roots of w, with what the user has allowed in
// previous, the session that it replaces, if that is not nil.
func newPermits(a *agent, w *workspace.Workspace, previous *session) *permits {
	configured := a.options.Permissions
	if configured == nil {
		configured = func(workspace.Dir) *Permissions { return nil }
	}
	p := &permits{Sources: permission.NewSources(w, a.consents(), a.origins(), configured)}
	if previous != nil {
		before := previous.host.permits
		before.mu.Lock()
		defer before.mu.Unlock()
		p.given = slices.Clone(before.given)
	}
	return p
}

// origins returns the repositories of which others are worktrees.
func (a *agent) origins() permission.Origins {
	o := a.options.Worktrees
	if o.Dir == "" {
		return nil
	}
	origins, err := worktree.NewRegistry(o.Records, o.Dir).Origins()
	if err != nil {
		a.log.Warn("rules about permissions may not hold in some worktrees", "error", err)
	}
	return origins
}

// rules returns the rules that hold now in a session with these roots.
func (p *permits) rules(w *workspace.Workspace) (permission.Rules, error) {
	rules, err := p.Rules(w)
	p.mu.Lock()
	defer p.mu.Unlock()
	rules.Allow = append(rules.Allow, p.given...)
	return rules, err
}

// remember makes a rule hold that the user chose.
func (p *permits) remember(r permission.Rule, about consent.Consent) error {
	if r.Session == "" {
		return p.Remember(r, about)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.given = append(p.given, r)
	return nil
}

// ruling is what the policy says about a request for permission.
type ruling struct {
	params backend.Raw  // to send to the client
	answer backend.Work // in place of the client's, nil if the client is asked
	// offered is the rule that the user can choose, and original the backend's request, nil if the
	// client gets its options.
	offered  permission.Rule
	offers   bool
	original backend.Raw
	request  permission.Request
	// asked is the action about which a rule asks.
	asked *permission.Action
}

// permit decides about a request for permission. A request that no rule is about stays as it is.
func (s *session) permit(ctx context.Context, from asker, params backend.Raw) ruling {
	unchanged := ruling{params: params}
	permits := s.host.permits
	action, own := permission.Asked(ctx)
	if own && action.Verb == "" || !own && permits.Configured == nil {
		return unchanged
	}
	request, err := permission.ParseRequest(params)
	if err != nil {
		return unchanged
	}
	request.Agent = s.agent.init.backend().Profile
	action.Root = cmp.Or(action.Root, s.workspace.Root(0).Real.String())
	if !own {
		if action, err = s.readAction(ctx, from, request); err != nil {
			return unchanged
		}
	}
	action.Session = string(s.id)
	rules, err := permits.rules(s.workspace)
	if err != nil {
		s.agent.log.Warn("cannot read the rules about permissions: nothing is allowed by them",
			"session", s.id, "error", err)
		rules.Allow = nil
	}
	verdict := permission.Decide(action, rules)
	switch {
	case verdict.Effect != permission.Ask:
	case err != nil:
		return unchanged
	default:
		if verdict.Again {
			return onlyOnce(request, params)
		}
		d := s.offer(request, action, verdict, params)
		if !own && verdict.Rule.String() != "" {
			d.asked = &action
		}
		return d
	}
	if verdict.Rule.Preset {
		if verdict.Effect == permission.Deny {
			return ruling{answer: refusal(request, "", true)}
		}
		return ruling{answer: answerOption(request.Once())}
	}
	if id := verdict.Rule.Given.ID; id != "" {
		_ = permits.Consents.Use(id)
	}
	return s.decided(ctx, from, request, verdict, params)
}

// readAction returns what a request of an agent says that it will do.
func (s *session) readAction(
	ctx context.Context, from asker, r permission.Request,
) (action permission.Action, err error) {
	if err := s.beginUpdate(ctx); err != nil {
		return action, err
	}
	id := callKey{from.child, r.Call.ID}
	announced := s.toolCalls[id].said
	s.setAsked(id)
	mode := s.mode
	s.endUpdate()
	err = from.inRoots(ctx, func(w *workspace.Workspace) (err error) {
		action, err = tasks.FromDisk(ctx, s.agent.tasks, func() (permission.Action, error) {
			return r.Action(ctx, announced, permission.Place{
				Workspace: w, Catalog: s.host.Catalog(), Inside: from.handOver,
				Outside: s.outsideFile, Server: s.serverConfig,
			}), nil
		})
		return err
	})
	switch {
	case !s.inTurn():
		action.Unclear = cmp.Or(action.Unclear, "no turn is running")
	case isForPlans(mode) && action.Verb != permission.Read && action.Verb != permission.Fetch:
		action.Unclear = cmp.Or(action.Unclear, "the session is in the mode "+text.Name(mode))
	}
	return action, err
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

// decided answers a request as a rule says, and shows the client the tool call with a mark.
func (s *session) decided(
	ctx context.Context, from asker, r permission.Request, v permission.Verdict, params backend.Raw,
) ruling {
	answer := answerOption(r.Once())
	if v.Effect == permission.Deny {
		answer = refusal(r, v.Rule.String(), false)
	}
	s.agent.log.Info("a rule decided about a tool call", "session", s.id, "toolCall", r.Call.ID,
		"title", text.Truncate(r.Call.Title, maxCallTitle), "verdict", v.Effect, "rule", v.Rule.String())
	s.observeRule(r, v)
	if err := s.showMarked(ctx, from, r, params, v.Mark()); err != nil {
		return ruling{answer: jsonrpc.Fail(err)}
	}
	return ruling{answer: answer}
}

// answerOption returns the work that chooses an option.
func answerOption(id string) backend.Work {
	return func() (backend.Raw, error) {
		return backend.Encode(sdk.RequestPermissionResponse{
			Outcome: sdk.NewRequestPermissionOutcomeSelected(sdk.PermissionOptionId(id))}), nil
	}
}

// refusal returns the work that refuses a request because of a rule, or of the session's mode. An
// agent without an option for that is told that the request was cancelled, which ends the turn of
// some.
func refusal(r permission.Request, rule string, byMode bool) backend.Work {
	return func() (backend.Raw, error) {
		response := sdk.RequestPermissionResponse{
			Outcome: sdk.NewRequestPermissionOutcomeCancelled(),
			Meta:    backend.DeniedError{Rule: rule, Mode: byMode}.Meta(),
		}
		if id := r.Refusal(); id != "" {
			response.Outcome = sdk.NewRequestPermissionOutcomeSelected(sdk.PermissionOptionId(id))
		}
		return backend.Encode(response), nil
	}
}

// alwaysID is the id of the option that makes a rule, as of a [backend.Question].
const alwaysID = "allow-always"

// offer returns the request for the client. If a rule can be made, the request offers that in place
// of the backend's own way to allow for good, and at most one option of each kind, because some
// clients keep only one.
func (s *session) offer(
	r permission.Request, a permission.Action, v permission.Verdict, params backend.Raw,
) ruling {
	unchanged := ruling{params: params}
	relabels := func(to *agent) bool { return to.clientCapabilities().relabels }
	if v.Rule.String() != "" || slices.ContainsFunc(s.host.viewers.Clients(), relabels) {
		return unchanged
	}
	rule, ok := permission.Offer(a, s.host.permits.Lasting())
	if !ok || r.Once() == alwaysID || r.Refusal() == alwaysID {
		return unchanged
	}
	options := []any{optionWith(params, r.Once()), map[string]any{
		"optionId": alwaysID, "kind": sdk.PermissionOptionKindAllowAlways, "name": rule.Label(a),
		"_meta": map[string]any{"acp-agent": map[string]any{"rule": rule.String()}},
	}}
	if id := r.Refusal(); id != "" {
		options = append(options, optionWith(params, id))
	}
	changed := strictjson.Set(params, "options", backend.Encode(options))
	return ruling{params: explained(changed, rule), offered: rule, offers: true, original: params,
		request: r}
}

// onlyOnce returns the request for the client without answers for good: a rule would not stop the
// question, and after the agent's own answer it would not ask again.
func onlyOnce(r permission.Request, params backend.Raw) ruling {
	if r.Once() == "" || r.Refusal() == "" {
		return ruling{params: params}
	}
	options := []any{optionWith(params, r.Once()), optionWith(params, r.Refusal())}
	changed := strictjson.Set(params, "options", backend.Encode(options))
	return ruling{params: changed, original: params}
}

// explained returns a request that says what a rule covers.
func explained(params backend.Raw, rule permission.Rule) backend.Raw {
	about := rule.Explain()
	if about == "" {
		return params
	}
	call := strictjson.Find(params, "toolCall")
	shown, ok := strictjson.Append(strictjson.Find(call, "content"),
		backend.Encode(sdk.ToolContent(sdk.TextBlock(about))))
	if !ok {
		return params
	}
	return strictjson.Set(params, "toolCall", strictjson.Set(call, "content", shown))
}

// optionWith returns the option of a request with an id, as the request has it.
func optionWith(params backend.Raw, id string) backend.Raw {
	var options []backend.Raw
	_ = strictjson.Decode(strictjson.Find(params, "options"), &options)
	i := slices.IndexFunc(options, func(o backend.Raw) bool {
		var one permission.Option
		return strictjson.Decode(o, &one) == nil && one.ID == id
	})
	return options[i] // the request has been read
}

// chosen returns the client's answer to a request as the backend gets it. If the client has chosen
// the offered rule, it holds from now on, and the backend is told to go ahead once, so that it
// remembers nothing itself.
func (s *session) chosen(d ruling, result backend.Raw) backend.Raw {
	if d.original == nil {
		return result
	}
	kind, ok := choice(d.params, result)
	if _, known := choice(d.original, result); !ok && known { // it was not offered
		return backend.Encode(sdk.RequestPermissionResponse{
			Outcome: sdk.NewRequestPermissionOutcomeCancelled()})
	}
	if !d.offers || kind != string(sdk.PermissionOptionKindAllowAlways) {
		return result
	}
	r := d.request
	err := s.host.permits.remember(d.offered, consent.Consent{
		Agent: r.Agent, By: string(s.id), Title: text.Truncate(r.Call.Title, maxCallTitle)})
	if err != nil {
		s.agent.log.Warn("cannot remember what the user allows", "session", s.id, "error", err)
	}
	result, _ = answerOption(r.Once())()
	return result
}

// inTurn reports whether a turn is running that was not told to end.
func (s *session) inTurn() bool {
	return slices.ContainsFunc(s.queue.Unanswered(), func(t *turns.Turn) bool {
		return t.RunsIn(s)
	})
}

// handOver returns an error unless another program that opens path now reaches a file or directory
// of the session.
func (s *session) handOver(path string) error { return permission.HandOver(s.workspace, path) }

// inRoots calls do with the session's roots.
func (s *session) inRoots(_ context.Context, do func(*workspace.Workspace) error) error {
	return do(s.workspace)
}

// showMarked shows the client a tool call about which a rule decided, with a mark in its title.
func (s *session) showMarked(
	ctx context.Context, from asker, r permission.Request, params backend.Raw, mark string,
) error {
	if err := s.beginUpdate(ctx); err != nil {
		return err
	}
	defer s.endUpdate()
	id := callKey{from.child, r.Call.ID}
	known, isKnown := s.toolCalls[id]
	path := ""
	if len(r.Call.Locations) > 0 {
		path = " " + r.Call.Locations[0].Path
	}
	title := cmp.Or(known.said.Title, r.Call.Title, r.Call.Kind+path)
	title = strings.TrimSuffix(title, mark) + mark
	if isKnown {
		s.setMark(id, mark)
		return s.showTitle(ctx, id, title)
	}
	if r.Call.ID == "" {
		return nil
	}
	call, err := strictjson.Put(strictjson.Find(params, "toolCall"), "title", quote(title))
	if err != nil {
		return err
	}
	object, err := strictjson.ParseObject(call)
	if err != nil {
		return err
	}
	u := from.update(toolCallOf(object))
	if err := s.show(ctx, u); err != nil {
		return err
	}
	s.recordToolCall(ctx, u)
	s.setMark(id, mark)
	return nil
}

// setMark notes the mark of a tool call that the client knows, "" once it has ended. The caller has
// begun an update.
func (s *session) setMark(id callKey, mark string) {
	call := s.toolCalls[id]
	call.mark = mark
	s.toolCalls[id] = call
}

// markAgain shows the mark of a tool call again after an update of the agent has replaced its
// title. The caller has begun an update.
func (s *session) markAgain(ctx context.Context, said toolCallUpdate) error {
	mark := s.toolCalls[said.key()].mark
	if mark == "" {
		return nil
	}
	if ended(said.Status) {
		s.setMark(said.key(), "")
	}
	if said.Title == "" || strings.HasSuffix(said.Title, mark) {
		return nil
	}
	return s.showTitle(ctx, said.key(), said.Title+mark)
}

// showTitle changes the title of a tool call. The caller has begun an update.
func (s *session) showTitle(ctx context.Context, id callKey, title string) error {
	u := asker{child: id.child}.change(id.call, sdk.WithUpdateTitle(title))
	if err := s.show(ctx, u); err != nil {
		return err
	}
	return s.record.add(ctx, u)
}
