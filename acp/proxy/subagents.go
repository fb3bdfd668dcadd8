package proxy

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/child"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// subagent is a session that the agent has started itself, below a session of ours or below another
// subagent. It lives as long as that session, which is itself the root of its subagents.
type subagent struct {
	session *childSession
	parent  *subagent // nil for the root
	id      string    // the agent's
	key     string    // ours, "" for the root; see sessionstore.OfSubagent

	// cwd and dirs are where it works, as far as the agent has said so and the session's folders
	// allow it. Nil ones are those of the parent. They are used only on the read loop.
	cwd  *workspace.Dir
	dirs *workspace.Dirs

	cancellable atomic.Bool // the client may cancel it
	running     atomic.Bool
}

// Deliver implements [child.Recipient]: it passes a message of the child on to the latest user.
func (sub *subagent) Deliver(m child.Message) (backend.Work, error) {
	cs := sub.session
	cs.barrier.Wait(m.Ctx)
	b, p := cs.latest()
	switch {
	case b == nil:
		return nil, child.ErrUnknownSession
	case m.Method == protocol.SessionUpdate:
		return nil, cs.handleUpdate(b, p, m, sub)
	case m.IsRequest():
		return cs.callClient(b, m, sub), nil
	}
	params, err := cs.child.Confine(m.Method, m.Params)
	if err != nil {
		return nil, err
	}
	return nil, sub.client(b.setup, m.Params).Notify(m.Ctx, m.Method, params)
}

// IsRunning implements [child.Recipient]: a subagent may go on after the turn. For what the root
// does, a request waits.
func (sub *subagent) IsRunning() bool { return sub.running.Load() }

// maxSubagentID limits the length of the ids of subagents, in bytes.
const maxSubagentID = 1 << 10

// maxLogged limits what the log quotes of an announcement, in characters.
const maxLogged = 1000

var (
	errForeignSubagent = errors.New("another session has announced a subagent with this id")
	errSubagentID      = errors.New("the id of a subagent is empty, too long, or that of a session")
	errManySubagents   = errors.New("the session has too many subagents")
)

// subagentKey returns the key of a subagent. It is the same each time the agent opens the session.
func subagentKey(session, id string) string {
	sum := sha256.Sum256([]byte(session + "\x00" + id))
	text := base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:15])
	return sessionstore.SubagentPrefix + strings.ToLower(text)
}

// subagentUpdate announces a subagent, or changes what is known of it.
type subagentUpdate struct {
	ID           string          `json:"sessionId"`
	Cwd          json.RawMessage `json:"cwd"`
	Dirs         json.RawMessage `json:"additionalDirectories"`
	Capabilities json.RawMessage `json:"capabilities"`
	State        json.RawMessage `json:"state"`
}

// handleSubagentUpdate passes on an update of a subagent, which may come in turns and after them.
func (b *bridge) handleSubagentUpdate(
	ctx context.Context, cs *childSession, from *subagent, u backend.Update,
) error {
	event := sessionstore.OfSubagent(from.key, u)
	switch cs.takeUpdate(event) {
	case live:
		b.hints.noteDenial(cs.child, u)
		return b.host.Update(ctx, event)
	case replaying:
		return b.host.Replay(ctx, event)
	}
	return nil
}

// keyOf returns the key of the session with the agent's id, or id if it is not one of cs.
func (cs *childSession) keyOf(id string) string {
	if id == cs.key {
		return sessionstore.ParentKey
	}
	if sub, ok := cs.child.Router.Find(id).(*subagent); ok && sub.session == cs {
		return sub.key
	}
	return id
}

// noteSubagent notes what u says about a subagent, and returns that. It takes folders from u that
// the parent does not have.
func (cs *childSession) noteSubagent(
	b *bridge, parent *subagent, u backend.Update,
) (_ backend.Update, sub *subagent, err error) {
	raw := u.Body()
	var said subagentUpdate
	if err := strictjson.Decode(raw, &said); err != nil {
		return u, nil, err
	}
	limit := b.proxy.options.limits.MaxSubagents
	if sub, err = cs.announced(parent, said.ID, limit); err != nil {
		return u, nil, err
	}
	if said.Capabilities != nil {
		sub.cancellable.Store(strictjson.IsObject(strictjson.Find(said.Capabilities, "cancel")))
	}
	if said.State != nil {
		state := strictjson.FindText(said.State, "state")
		sub.running.Store(state == "running" || state == "requires_action")
	}
	allowed := sub.moveTo(b.setup, said, raw)
	if len(allowed) != len(raw) || string(allowed) != string(raw) {
		cs.child.Log.Warn("the agent runs a subagent outside of the session's folders",
			"cwd", text.Truncate(string(said.Cwd), maxLogged),
			"folders", text.Truncate(string(said.Dirs), maxLogged))
		u.Raw = strictjson.Set(u.Raw, "update", allowed)
	}
	return u, sub, nil
}

// announced returns the subagent with the agent's id, which is new if the agent has not announced
// it before. A session has at most limit subagents.
func (cs *childSession) announced(parent *subagent, id string, limit int) (*subagent, error) {
	known, _ := cs.child.Router.Find(id).(*subagent)
	switch {
	case id == "" || len(id) > maxSubagentID || known != nil && known.parent == nil:
		return nil, errSubagentID
	case known != nil && (known.session != cs || known.parent != parent):
		return nil, errForeignSubagent
	case known != nil:
		return known, nil
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if len(cs.subagents) == limit {
		return nil, errManySubagents
	}
	sub := &subagent{session: cs, parent: parent, id: id, key: subagentKey(cs.key, id)}
	if !cs.child.Router.Add(id, sub) {
		return nil, errSubagentID
	}
	cs.subagents = append(cs.subagents, sub)
	return sub, nil
}

// allSubagents returns the subagents that were announced so far, without the root.
func (cs *childSession) allSubagents() []*subagent {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return slices.Clone(cs.subagents)
}

// moveTo notes where the subagent works. It returns the update without folders that the parent does
// not have.
func (sub *subagent) moveTo(s *setup, said subagentUpdate, update backend.Raw) backend.Raw {
	if said.Cwd != nil {
		var path string
		sub.cwd = nil
		if json.Unmarshal(said.Cwd, &path) == nil && path != "" {
			if dir, ok := sub.parent.within(s, path); ok {
				sub.cwd = &dir
			} else {
				update = strictjson.Set(update, "cwd", json.RawMessage("null"))
			}
		}
	}
	if said.Dirs == nil {
		return update
	}
	var paths, kept []string
	sub.dirs = nil
	if json.Unmarshal(said.Dirs, &paths) != nil || paths == nil {
		return update
	}
	most := cmp.Or(s.proxy.options.Workspace.MaxRoots, workspace.DefaultMaxRoots)
	for _, path := range paths[:min(most, len(paths))] { // each is looked up on the disk
		if _, ok := sub.parent.within(s, path); ok {
			kept = append(kept, path)
		}
	}
	if len(kept) < len(paths) {
		update = strictjson.Set(update, protocol.AdditionalDirectories,
			backend.Encode(append([]string{}, kept...)))
	}
	if dirs, err := workspace.ParseDirs(kept); err == nil {
		sub.dirs = &dirs
	}
	return update
}

// within returns the directory at a path if the session may use it and it lies in a folder of the
// subagent, unless that is the root.
func (sub *subagent) within(s *setup, path string) (workspace.Dir, bool) {
	dir, err := workspace.ParseDir(path)
	if err != nil || s.host.Workspace().HandOverDir(path) != nil {
		return dir, false
	}
	if sub.parent == nil {
		return dir, true
	}
	real := workspace.Real(dir)
	for _, root := range sub.roots(s).All() {
		if workspace.Real(root).Contains(real) {
			return dir, true
		}
	}
	return dir, false
}

// roots returns the folders of the subagent.
func (sub *subagent) roots(s *setup) workspace.Roots {
	if sub.parent == nil {
		return s.roots
	}
	roots := sub.parent.roots(s)
	cwd, dirs := roots.Cwd(), roots.Additional()
	if sub.cwd != nil {
		cwd = *sub.cwd
	}
	if sub.dirs != nil {
		dirs = *sub.dirs
	}
	return workspace.RootsFrom(cwd, dirs)
}

// client returns the client for a message of the subagent. made are its params as the agent made
// them.
func (sub *subagent) client(s *setup, made backend.Raw) backend.Client {
	return s.host.For(backend.Sender{Subagent: sub.key, Roots: sub.roots(s), Made: made})
}

// CancelSubagent implements [backend.Parent]: it passes session/cancel on if the agent allows that
// for the subagent.
func (b *bridge) CancelSubagent(key string, params backend.Raw) {
	sub := b.subagent(key)
	if sub == nil || !sub.cancellable.Load() {
		b.proxy.log.Debug("the agent does not let the client cancel this subagent")
		return
	}
	sub.session.child.Cancel(withSessionID(params, backend.Encode(sub.id)))
}

// HasSubagent implements [backend.Parent].
func (b *bridge) HasSubagent(key string) bool { return b.subagent(key) != nil }

// subagent returns the subagent with a key of the running child session, or nil.
func (b *bridge) subagent(key string) *subagent {
	if u := b.current.running(); u != nil {
		for _, sub := range u.session.allSubagents() {
			if sub.key == key {
				return sub
			}
		}
	}
	return nil
}

// loseSubagents tells the client that the subagents of a child session do nothing more.
func (b *bridge) loseSubagents(ctx context.Context, of *childSession) {
	for _, sub := range of.allSubagents() {
		if !sub.running.Load() && !sub.cancellable.Load() {
			continue
		}
		if err := b.host.Update(ctx, backend.LostSubagent(sub.parent.key, sub.key)); err != nil {
			b.proxy.log.Debug("the end of a subagent was not sent", "error", err)
		}
	}
}
