package proxy

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// subagent is a session that the agent has started itself, below a session of ours or below another
// subagent. It lives as long as the childSession.
type subagent struct {
	session *childSession
	parent  *subagent // nil if session is its parent
	id      string    // the agent's
	key     string    // ours; see sessionstore.InChild

	// cwd and dirs are where it works, as far as the agent has said so and the session's folders
	// allow it. Nil ones are those of the parent. They are guarded by session.order.
	cwd  *workspace.Dir
	dirs *workspace.Dirs

	cancellable atomic.Bool // the client may cancel it
	running     atomic.Bool
}

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
	return sessionstore.ChildPrefix + strings.ToLower(text)
}

// subagentUpdate announces a subagent, or changes what is known of it.
type subagentUpdate struct {
	ID           string          `json:"sessionId"`
	Cwd          json.RawMessage `json:"cwd"`
	Dirs         json.RawMessage `json:"additionalDirectories"`
	Capabilities json.RawMessage `json:"capabilities"`
	State        json.RawMessage `json:"state"`
}

// translated returns an update of cs, or of its subagent from, with our keys in the place of the
// agent's ids. If it announces a subagent, translated also returns the messages that are held for
// that. The caller must hold cs.order.
func (cs *childSession) translated(
	s *session, from *subagent, u backend.Update,
) (_ backend.Update, held []message, err error) {
	if u.Kind == sessionstore.SubagentUpdate {
		if u, held, err = cs.noteSubagent(s, from, u); err != nil {
			return u, held, err
		}
	}
	u.Raw = protocol.MapUpdateReferences(string(u.Kind), u.Raw, cs.keyOf)
	return u, held, nil
}

// withReferences returns the params of a request with our keys in the place of the agent's ids.
func (cs *childSession) withReferences(m message) backend.Raw {
	if m.method != protocol.RequestPermission {
		return m.params
	}
	return protocol.MapToolCallReferences(m.params, "toolCall", cs.keyOf)
}

// keyOf returns the key of the session with the agent's id, or id if it is not one of cs.
func (cs *childSession) keyOf(id string) string {
	if id == cs.key {
		return sessionstore.ParentKey
	}
	if to := cs.child.router.find(id); to.subagent != nil && to.session == cs {
		return to.subagent.key
	}
	return id
}

// noteSubagent notes what u says about a subagent. It takes folders from u that the parent does not
// have.
func (cs *childSession) noteSubagent(
	s *session, parent *subagent, u backend.Update,
) (_ backend.Update, held []message, err error) {
	raw := strictjson.Find(u.Raw, "update")
	var said subagentUpdate
	if err := strictjson.Decode(raw, &said); err != nil {
		return u, nil, err
	}
	sub := &subagent{session: cs, parent: parent, id: said.ID, key: subagentKey(cs.key, said.ID)}
	if sub, held, err = cs.child.router.announce(sub, cs.child.limits.MaxSubagents); err != nil {
		return u, nil, err
	}
	if said.Capabilities != nil {
		sub.cancellable.Store(strictjson.IsObject(strictjson.Find(said.Capabilities, "cancel")))
	}
	if said.State != nil {
		state := strictjson.FindText(said.State, "state")
		sub.running.Store(state == "running" || state == "requires_action")
	}
	allowed := sub.moveTo(s.activation, said, raw)
	if len(allowed) != len(raw) || string(allowed) != string(raw) {
		cs.child.log.Warn("the agent runs a subagent outside of the session's folders",
			"cwd", text.Truncate(string(said.Cwd), maxLogged),
			"folders", text.Truncate(string(said.Dirs), maxLogged))
		u.Raw = strictjson.Set(u.Raw, "update", allowed)
	}
	return u, held, nil
}

// moveTo notes where the subagent works. It returns the update without folders that the parent does
// not have.
func (sub *subagent) moveTo(a *activation, said subagentUpdate, update backend.Raw) backend.Raw {
	if said.Cwd != nil {
		var path string
		sub.cwd = nil
		if json.Unmarshal(said.Cwd, &path) == nil && path != "" {
			if dir, ok := sub.parent.within(a, path); ok {
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
	most := cmp.Or(a.proxy.options.Workspace.MaxRoots, workspace.DefaultMaxRoots)
	for _, path := range paths[:min(most, len(paths))] { // each is looked up on the disk
		if _, ok := sub.parent.within(a, path); ok {
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
// subagent, which is nil for the session itself.
func (sub *subagent) within(a *activation, path string) (workspace.Dir, bool) {
	dir, err := workspace.ParseDir(path)
	if err != nil || a.host.Workspace().HandOverDir(path) != nil {
		return dir, false
	}
	if sub == nil {
		return dir, true
	}
	real := workspace.Real(dir)
	for _, root := range sub.roots(a).All() {
		if workspace.Real(root).Contains(real) {
			return dir, true
		}
	}
	return dir, false
}

// roots returns the folders of the subagent, or of the session if sub is nil.
func (sub *subagent) roots(a *activation) workspace.Roots {
	if sub == nil {
		return a.roots
	}
	roots := sub.parent.roots(a)
	cwd, dirs := roots.Cwd(), roots.Additional()
	if sub.cwd != nil {
		cwd = *sub.cwd
	}
	if sub.dirs != nil {
		dirs = *sub.dirs
	}
	return workspace.RootsFrom(cwd, dirs)
}

// client returns the client for a message of the subagent, or of the session if sub is nil. made
// are its params as the agent made them.
func (sub *subagent) client(a *activation, made backend.Raw) backend.Client {
	from := backend.Sender{Made: made}
	if sub != nil {
		from.Child, from.Roots = sub.key, sub.roots(a)
	}
	return a.host.For(from)
}
