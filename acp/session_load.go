package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/protocol"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// acceptLoad serves session/load and session/resume.
func (a *agent) acceptLoad(ctx context.Context, r *jsonrpc.Request, cause backend.Cause) jsonrpc.Work {
	params := parseParams(r.Params, loadShape)
	id, _ := params.Field(protocol.SessionID).Text() // checked by decodeSession
	at := a.queues.ticket(sessionstore.ID(id), lifecycleRequest)
	l := &load{agent: a, at: at, cause: cause}
	if cause == backend.Load {
		l.limiter = newLimiter(ctx, a.options.ReplayRate)
	}
	return func() (json.RawMessage, error) {
		ctx, cancel := a.requestContext(ctx)
		defer cancel()
		ok := false
		defer func() {
			if !ok { // also after a panic
				at.release()
			}
		}()
		fields := loadFields
		if cause == backend.Resume {
			fields = resumeFields
		}
		var err error
		if l.params, err = a.decodeSession(ctx, params, fields); err != nil {
			return nil, err
		}
		s, result, err := l.run(ctx)
		if err != nil {
			return nil, protocolError(err)
		}
		a.releaseAfterResponse(r, at, s, l.notice)
		ok = true
		return result, nil
	}
}

// load is a session/load or session/resume.
type load struct {
	agent   *agent
	at      *ticket
	cause   backend.Cause
	limiter *limiter // nil for a resume
	params  sessionParams
	inTurn  bool // the adapter itself changes the roots in a turn, which goes on: the backend has no part in it

	stored   openable
	previous *session // the active session, or nil
	notice   string   // for the user, from movedRoots
}

// run activates a stored session. Everything that can fail comes first; then the running turn of
// the active session ends, the new activation replaces it, and a load replays the history.
func (l *load) run(ctx context.Context) (*session, json.RawMessage, error) {
	a := l.agent
	if err := l.at.acquire(ctx); err != nil {
		return nil, nil, err
	}
	var err error
	if l.stored, err = a.findOpenable(ctx, l.params); err != nil {
		return nil, nil, err
	}
	if err := a.matchCwd(ctx, l.params.roots.Cwd(), l.stored.Keys); err != nil {
		return nil, nil, err
	}
	if err := a.addFolders(ctx, &l.params, &l.stored.Session); err != nil {
		return nil, nil, err
	}
	l.previous = l.at.queue.active()
	s, act, err := l.replace(ctx)
	if err != nil {
		return nil, nil, err
	}
	if l.cause == backend.Load {
		// A session whose history cannot be shown does not stay open.
		if err := a.replay(context.WithoutCancel(ctx), s, act.opened, l.limiter); err != nil {
			a.closeSession(a.base, s, nil)
			return nil, nil, err
		}
	}
	return s, act.opened.Result, nil
}

// replace opens the session and makes it active in place of the previous one.
func (l *load) replace(ctx context.Context) (*session, *activation, error) {
	a, q := l.agent, l.at.queue
	endTurn := func(ctx context.Context) error { return q.endTurns(ctx, backend.ErrCancelled) }
	if l.inTurn {
		endTurn = func(context.Context) error { return nil }
	}
	stop := sync.OnceValue(func() error { return endTurn(ctx) })
	o := opening{id: l.stored.ID, params: l.params, previous: l.previous, limiter: l.limiter, activation: backend.Activation{
		Cause: l.cause, State: l.stored.State, MustExist: l.stored.foreign,
		Stop: func(context.Context) error { return stop() },
	}}
	if !l.stored.foreign {
		o.activation.History = a.options.Store.History(ctx, l.stored.ID)
	}
	if l.previous != nil {
		o.activation.Previous = l.previous.backend
	}
	act, err := a.open(ctx, o)
	if err != nil {
		return nil, nil, l.hintMissing(ctx, err)
	}
	l.notice = act.movedRoots(l.stored.Keys)
	lease, err := l.takeOver(ctx, act)
	if err != nil {
		act.abandon()
		return nil, nil, err
	}
	// From here on it is too late to give up.
	if err := endTurn(context.WithoutCancel(ctx)); err != nil {
		a.log.Warn("ending a turn", "session", l.stored.ID, "error", err)
	}
	if l.previous != nil {
		l.previous.servers.passOn()
	}
	s, err := act.activate(q, lease, l.stored.Title)
	if s != nil {
		s.renamed.Store(l.stored.Renamed)
	}
	if err == nil {
		l.setNotice(s, act)
	}
	if l.previous != nil {
		l.previous.endOpenTurns(a.base, lease)
		l.previous.retire(a.base)
	}
	if f := a.foreign(); f != nil && act.opened.Superseded != nil {
		if _, err := f.CallStored(context.WithoutCancel(ctx), protocol.SessionDelete, act.opened.Superseded, backend.Raw(`{}`)); err != nil {
			a.log.Warn("the agent did not delete the session that was replaced", "session", l.stored.ID, "error", err)
		}
	}
	if err := act.host.dropReplayed(context.WithoutCancel(ctx)); err != nil {
		a.log.Warn("dropping a replay", "session", l.stored.ID, "error", err)
	}
	return s, act, err
}

// setNotice sets what s tells the user at the next prompt: what was not told before, because the
// session was never prompted, and what is new about its roots.
func (l *load) setNotice(s *session, act *activation) {
	known := l.stored.Keys.Roots
	switch {
	case l.previous != nil:
		s.notice, s.prompted = l.previous.notice, l.previous.prompted
	case l.stored.Title == "" && l.stored.Turns == 0:
		known = workspace.Roots{}
	default:
		s.prompted = true
	}
	if !l.inTurn { // otherwise the user has just changed the folders
		s.notice += act.droppedFolders(l.params, l.stored.Keys)
	}
	s.notice += act.broadRoots(known)
}

// takeOver stores the session's new roots and returns a new lease, which the previous session uses
// from now on, unless another process had taken it over.
func (l *load) takeOver(ctx context.Context, act *activation) (sessionstore.Lease, error) {
	a := l.agent
	state := act.host.takeState()
	change := sessionstore.Activation{Keys: act.keys(l.stored.Keys.Roots.Cwd()), State: state, StateKey: a.stateKey(state)}
	ctx = context.WithoutCancel(ctx)
	if l.cause == backend.Load && act.opened.Replay == backend.FromBackend {
		var err error
		if change.History, err = act.host.takeReplayed(ctx); err != nil {
			return sessionstore.Lease{}, err
		}
	}
	switch {
	case l.stored.foreign:
		return a.adopt(ctx, l.stored.Session, change)
	case l.previous == nil:
		return a.options.Store.Activate(ctx, l.stored.ID, change)
	default:
		return l.previous.takeOver(ctx, change)
	}
}

// stored returns a stored session, which must belong to this agent.
func (a *agent) stored(ctx context.Context, id sessionstore.ID) (sessionstore.Session, error) {
	if err := a.initialized(ctx); err != nil {
		return sessionstore.Session{}, err
	}
	s, err := a.options.Store.Get(ctx, id)
	if err != nil {
		return s, protocolError(err)
	}
	if s.Agent != a.init.owner() {
		return s, strictjson.Refuse(strictjson.NewViolation(protocol.SessionID, string(id), strictjson.OtherAgent).
			Expecting(commandOf(s.Agent)).Hinting(transferHint(id, a.init.owner())))
	}
	return s, nil
}

// commandOf returns a command line that runs the agent of a session.
func commandOf(owner sessionstore.Agent) string {
	switch owner.Kind {
	case "proxy":
		return "acp-agent -- " + owner.Profile
	case "model":
		return "acp-agent --model NAME"
	}
	return "acp-agent"
}

// transferHint returns how to continue a session with another agent.
func transferHint(id sessionstore.ID, to sessionstore.Agent) string {
	agent := "--to " + text.ShellWord(to.Kind)
	if to.Kind == "proxy" {
		agent = "-- " + to.Profile
	}
	return "to continue a copy of it with this agent, run: acp-agent sessions transfer " + text.ShellWord(string(id)) + " " + agent
}

// matchCwd checks that cwd is the session's, by its spelling or its real path.
func (a *agent) matchCwd(ctx context.Context, cwd workspace.Dir, stored sessionstore.Keys) error {
	if cwd == stored.Roots.Cwd() {
		return nil
	}
	var real workspace.Dir
	var hint string
	err := a.onDisk(ctx, func() error {
		real = workspace.Real(cwd)
		hint = moveHint(stored.Roots.Cwd().String(), cwd.String())
		return nil
	}, nil)
	if err != nil {
		return err
	}
	if len(stored.Real) > 0 && real == stored.Real[0] {
		return nil
	}
	return strictjson.Refuse(strictjson.NewViolation("cwd", cwd.String(), strictjson.CwdMismatch).
		Expecting(stored.Roots.Cwd().String()).Hinting(hint))
}

// hintMissing adds to the error for a missing folder of the stored session how to move the session.
// Another folder that the client names need not be one of the session's.
func (l *load) hintMissing(ctx context.Context, err error) error {
	movable := []string{"cwd", keptSetting}
	for _, f := range l.params.folders {
		if f.shown {
			movable = append(movable, f.Setting)
		}
	}
	violations := strictjson.ViolationsOf(err)
	for i, v := range violations {
		var path string
		if v.Reason != strictjson.Missing || !slices.Contains(movable, v.Field) || json.Unmarshal(v.Value, &path) != nil {
			continue
		}
		if err := l.agent.onDisk(ctx, func() error { violations[i] = v.Hinting(moveHint(path, "")); return nil }, nil); err != nil {
			return err
		}
	}
	return err
}

// moveHint returns how to move sessions after the folder that contains path was renamed, "" if path
// exists. now is where path may be now, "" if that is unknown.
func moveHint(path, now string) string {
	if !isMissing(path) {
		return ""
	}
	// The renamed folder is the first one on the way that is missing.
	folder, below := path, ""
	for parent := filepath.Dir(folder); filepath.Clean(folder) == folder && isMissing(parent); parent = filepath.Dir(folder) {
		below = string(filepath.Separator) + filepath.Base(folder) + below
		folder = parent
	}
	to := "NEW-FOLDER"
	if now != "" {
		var found bool
		if to, found = strings.CutSuffix(now, below); !found || to == "" {
			folder, to = path, now
		}
		to = text.ShellWord(to)
	}
	return "if the folder was renamed, run: acp-agent sessions move " + text.ShellWord(folder) + " " + to
}

func isMissing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// movedRoots returns a message to the user about roots that no longer lead where they did when the
// session was last opened, "" if there are none. The request names them, so they are granted; but
// whoever replaced them may not be the user.
func (act *activation) movedRoots(stored sessionstore.Keys) string {
	var lines []string
	for i, dir := range stored.Roots.All() {
		for _, root := range act.workspace.Opened() {
			if root.Dir == dir && root.Real != stored.Real[i] {
				act.agent.log.Warn("a root leads elsewhere than when the session was last opened",
					"session", act.id, "root", dir, "now", root.Real, "before", stored.Real[i])
				lines = append(lines, fmt.Sprintf("The folder %s now leads to %s. When this session was last opened, it led to %s.\n\n",
					text.Printable(dir.String()), text.Printable(root.Real.String()), text.Printable(stored.Real[i].String())))
			}
		}
	}
	return strings.Join(lines, "")
}

// replay shows the client a loaded session's conversation before the response: the stored history,
// unless the backend has sent its own, then the current states.
func (a *agent) replay(ctx context.Context, s *session, opened backend.Opened, limit *limiter) error {
	if opened.Replay == backend.FromStore {
		if err := a.replayHistory(ctx, s, limit); err != nil {
			return err
		}
	}
	states, err := a.options.Store.States(ctx, s.id)
	if err != nil {
		return protocolError(err)
	}
	buffered := s.host.bufferedKinds()
	result := members(opened.Result)
	for _, u := range states {
		if buffered[u.Kind] || len(result[responseMember(u.Kind)]) > 0 {
			continue // the client learns it anyway
		}
		if err := s.show(ctx, announceRoots(u)); err != nil {
			return err
		}
	}
	return nil
}

// responseMember returns the member of a lifecycle response that holds the same state as updates of
// kind, or "".
func responseMember(kind sessionstore.Kind) string {
	switch kind {
	case sessionstore.CurrentModeUpdate:
		return "modes"
	case sessionstore.ConfigOptionUpdate:
		return "configOptions"
	}
	return ""
}

// replayHistory sends the stored history, and then fails the tool calls that it leaves open.
func (a *agent) replayHistory(ctx context.Context, s *session, limit *limiter) error {
	open := openCalls{}
	show := func(u backend.Update) error {
		limit.wait(ctx)
		return s.show(ctx, u)
	}
	for u, err := range sessionstore.Joined(a.options.Store.History(ctx, s.id)) {
		if err != nil {
			return protocolError(err)
		}
		open.note(u)
		if err := show(u); err != nil {
			return err
		}
	}
	for _, u := range open.failures() {
		if err := show(u); err != nil {
			return err
		}
	}
	return nil
}

// openCalls collects the tool calls of a history that have not ended, in order.
type openCalls struct {
	order []string
	open  map[string]bool // by tool call id
}

// note notes what u says about tool calls.
func (o *openCalls) note(u sessionstore.Update) {
	if u.Kind != sessionstore.ToolCall && u.Kind != sessionstore.ToolCallUpdate {
		return
	}
	var call struct {
		Update struct {
			ID     string `json:"toolCallId"`
			Status string `json:"status"`
		} `json:"update"`
	}
	if json.Unmarshal(u.Raw, &call) != nil {
		return
	}
	id, status := call.Update.ID, call.Update.Status
	switch {
	case ended(status):
		delete(o.open, id)
	case u.Kind == sessionstore.ToolCall || status != "":
		if o.open == nil {
			o.open = make(map[string]bool)
		}
		if !o.open[id] {
			o.open[id] = true
			o.order = append(o.order, id)
		}
	}
}

// ended reports whether a tool call with the given status has ended.
func ended(status string) bool { return status == "completed" || status == "failed" }

// failures returns updates that fail the open calls.
func (o *openCalls) failures() []backend.Update {
	var updates []backend.Update
	for _, id := range o.order {
		if o.open[id] {
			delete(o.open, id)
			updates = append(updates, backend.NewUpdate(sdk.UpdateToolCall(sdk.ToolCallId(id), sdk.WithUpdateStatus(sdk.ToolCallStatusFailed))))
		}
	}
	return updates
}

// replayed is a history that the backend shows the client while it opens a session. It is stored in
// a draft, which replaces the stored history when the load is stored, so that little of it is in
// memory.
type replayed struct {
	draft    sessionstore.Draft
	recorder *sessionstore.Recorder
}

// draftAppender makes a recorder append to a draft.
type draftAppender struct{ draft sessionstore.Draft }

// Append implements [sessionstore.Appender].
func (d draftAppender) Append(ctx context.Context, _ sessionstore.Lease, segment []sessionstore.Update) error {
	return d.draft.Append(ctx, segment)
}

func (h *host) newReplayed(ctx context.Context) (*replayed, error) {
	a, id := h.agent, h.id
	if h.foreign {
		id = ""
	}
	draft, err := a.options.Store.NewDraft(ctx, id)
	if err != nil {
		return nil, err
	}
	r := sessionstore.NewRecorder(draftAppender{draft}, sessionstore.Lease{}, a.options.tuning.Recorder)
	return &replayed{draft: draft, recorder: r}, nil
}

// Replay implements [backend.Host].
func (h *host) Replay(ctx context.Context, u backend.Update) error {
	if h.limiter == nil {
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "only a load replays a history")
	}
	if err := h.stop(ctx); err != nil {
		return err
	}
	if err := checkUpdate(u); err != nil {
		return err
	}
	h.replays.Lock()
	defer h.replays.Unlock()
	h.mu.Lock()
	opening := h.phase == hostOpening
	h.mu.Unlock()
	if !opening {
		return backend.ErrClosed
	}
	if h.replayed == nil {
		var err error
		if h.replayed, err = h.newReplayed(ctx); err != nil {
			return err
		}
	}
	h.limiter.wait(ctx)
	if err := h.agent.conn.Notify(ctx, protocol.SessionUpdate, putSessionID(u.Raw, h.id)); err != nil {
		return err
	}
	return h.replayed.recorder.Record(ctx, u)
}

// takeReplayed returns what was replayed, possibly nothing, as the session's new history.
func (h *host) takeReplayed(ctx context.Context) (sessionstore.Draft, error) {
	h.replays.Lock()
	defer h.replays.Unlock()
	if h.replayed == nil {
		var err error
		if h.replayed, err = h.newReplayed(ctx); err != nil {
			return nil, err
		}
	}
	if err := h.replayed.recorder.Close(ctx); err != nil {
		return nil, err
	}
	return h.replayed.draft, nil
}

// dropReplayed discards what was replayed, unless it has become the session's history.
func (h *host) dropReplayed(ctx context.Context) error {
	h.replays.Lock()
	defer h.replays.Unlock()
	r := h.replayed
	if r == nil {
		return nil
	}
	h.replayed = nil
	return errors.Join(r.recorder.Close(ctx), r.draft.Discard(ctx))
}

const (
	// replayBurst is how many updates of a load are sent without delay.
	replayBurst = 512
	// limiterSlack is how far a replay may be ahead of its rate, since timers are coarse, and how
	// much lost time it may catch up on.
	limiterSlack = 2 * time.Millisecond
)

// limiter limits the rate of a load's replay to what clients can handle. A pipe pushes back when a
// client does not read, but some clients read everything and keep what they have not handled yet:
// the Go SDK's keeps 1,024 notifications and then closes the connection. Time lost because the
// client did not read for a while is not caught up on.
type limiter struct {
	interval time.Duration // between two updates; 0 for no limit
	request  context.Context

	mu    sync.Mutex
	free  int       // updates that may be sent at once
	next  time.Time // when the next one is due
	timer *time.Timer
}

// newLimiter returns the limiter of a load whose request has the context request, at rate updates a
// second. There is no limit if rate is negative.
func newLimiter(request context.Context, rate int) *limiter {
	l := &limiter{request: request, free: replayBurst}
	if rate > 0 {
		l.interval = time.Second / time.Duration(rate)
	}
	return l
}

// wait returns when the next update may be sent, or ctx ended. A client that has closed its end
// gets the rest at once: the program has little time left.
func (l *limiter) wait(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.interval == 0 {
		return
	}
	if l.free > 0 {
		l.free--
		return
	}
	now := time.Now()
	if lost := now.Add(-limiterSlack); l.next.Before(lost) {
		l.next = lost
	}
	due := l.next
	l.next = l.next.Add(l.interval)
	if ahead := due.Sub(now); ahead > limiterSlack {
		l.sleep(ctx, ahead)
	}
}

func (l *limiter) sleep(ctx context.Context, d time.Duration) {
	if l.timer == nil {
		l.timer = time.NewTimer(d)
	} else {
		l.timer.Reset(d)
	}
	request := l.request.Done()
	for {
		select {
		case <-l.timer.C:
			return
		case <-ctx.Done():
			return
		case <-request:
			request = nil
			if errors.Is(context.Cause(l.request), jsonrpc.ErrClosed) {
				l.interval = 0
				return
			}
		}
	}
}
