// Package calls keeps what the viewers of a session have seen of its tool calls.
package calls

import (
	"cmp"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

const (
	// maxCalls is how many tool calls of a session are kept. The oldest is forgotten first.
	maxCalls = 1_000
	// MaxTitle is the length up to which their titles are kept, in bytes.
	MaxTitle = 1 << 10
	// maxShown is the size up to which all that was shown of a call is kept, in bytes.
	maxShown = 256 << 10
)

// tooLong stands for an input that is not kept. No request agrees with it.
var tooLong = strictjson.Text("too long to be shown again")

// Key identifies a tool call in a session.
type Key struct {
	Subagent string // the key of the subagent that makes it, "" for the session itself
	ID       string
}

// Change returns an update that changes the tool call.
func (k Key) Change(o ...sdk.ToolCallUpdateOpt) sessionstore.Update {
	return k.from(backend.NewUpdate(sdk.UpdateToolCall(sdk.ToolCallId(k.ID), o...)))
}

// Announce returns the tool call of a permission request as an update. A tool_call needs a title,
// and its members must not be null.
func (k Key) Announce(call json.RawMessage) sessionstore.Update {
	said := Merge(json.RawMessage(`{"title":"Tool call"}`), call)
	said = strictjson.Set(said, "sessionUpdate", backend.Encode(sessionstore.ToolCall))
	return k.from(sessionstore.Update{Kind: sessionstore.ToolCall,
		Raw: strictjson.Set(nil, "update", said)})
}

// from returns u as an update of the session that makes the call.
func (k Key) from(u sessionstore.Update) sessionstore.Update {
	if k.Subagent == "" {
		return u
	}
	return sessionstore.OfSubagent(k.Subagent, u)
}

// Update is what an update says about a tool call, the zero value if it is about something else.
type Update struct {
	permission.Call
	Key        Key
	UpdateKind sessionstore.Kind
	shown      json.RawMessage
}

// Ended reports whether the call has ended.
func (u Update) Ended() bool { return u.Status == "completed" || u.Status == "failed" }

// Parse reads an update of the session or of a subagent.
func Parse(u sessionstore.Update) Update {
	subagent, u, _ := u.Subagent()
	if u.Kind != sessionstore.ToolCall && u.Kind != sessionstore.ToolCallUpdate {
		return Update{}
	}
	said := Update{UpdateKind: u.Kind, shown: u.Body()}
	if strictjson.Decode(said.shown, &said.Call) != nil {
		return Update{}
	}
	said.Key = Key{subagent, said.ID}
	return said
}

// Merge returns a tool call with the members that an update or a question has of it.
func Merge(call, said json.RawMessage) json.RawMessage {
	object, _ := strictjson.ParseObject(said)
	for name, value := range object.All() {
		if name != "sessionUpdate" && string(value) != "null" {
			call = strictjson.Set(call, name, value)
		}
	}
	return call
}

// Calls are the latest tool calls that the viewers know. The zero value has none.
type Calls struct {
	mu    sync.Mutex
	known map[Key]*Call
	order []Key // the oldest first
}

// Call is what is known of a tool call.
type Call struct {
	Title, Kind string
	Shown       json.RawMessage // all that the viewers were shown, nil once it has ended
	Mark        string          // in its title, while it has not ended
	Asked       bool            // the agent has asked about it
}

// Announced returns what was said of the call for a request about it.
func (c Call) Announced() (said permission.Call) {
	_ = strictjson.Decode(c.Shown, &said) // each part could be read
	said.Title, said.Kind = c.Title, c.Kind
	return said
}

// Note keeps what an update says about a tool call, and returns it with the mark that it had. An
// update of one that is not known changes nothing.
func (c *Calls) Note(said Update) (known Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.known[said.Key]
	switch {
	case call != nil:
	case said.UpdateKind != sessionstore.ToolCall:
		return known
	default:
		call = &Call{}
		c.addLocked(said.Key, call)
	}
	if said.Title != "" {
		call.Title = text.Truncate(said.Title, MaxTitle)
	}
	call.Kind = cmp.Or(said.Kind, call.Kind)
	known = *call
	if said.Ended() {
		call.Shown, call.Mark = nil, ""
		return known
	}
	call.Shown = Merge(call.Shown, said.shown)
	if len(call.Shown) > maxShown {
		call.Shown = strictjson.Set(call.Shown, "rawInput", tooLong)
		for _, name := range []string{"content", "_meta"} {
			call.Shown = strictjson.Remove(call.Shown, name)
		}
	}
	return known
}

func (c *Calls) addLocked(k Key, call *Call) {
	if c.known == nil {
		c.known = make(map[Key]*Call)
	}
	c.known[k] = call
	if c.order = append(c.order, k); len(c.order) > maxCalls {
		delete(c.known, c.order[0])
		c.order = c.order[1:]
	}
}

// Get returns what is known of a call.
func (c *Calls) Get(k Key) (call Call, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found := c.known[k]; found != nil {
		return *found, true
	}
	return call, false
}

// Change changes what is known of a call, if it is known.
func (c *Calls) Change(k Key, change func(*Call)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.known[k]; call != nil {
		change(call)
	}
}

// begun is a tool call, or a subagent of Key.Subagent, that has begun in a history.
type begun struct {
	Key
	isSubagent bool // whose key is the ID
}

// WithEnds yields a history, and then updates that end the tool calls and subagents that may not
// have ended in it, the latest first: calls fail, and nothing is known any more of a subagent. It
// does not end the subagents that the backend has, nor their calls.
func WithEnds(
	history iter.Seq2[sessionstore.Update, error], has func(subagent string) bool,
) iter.Seq2[sessionstore.Update, error] {
	return func(yield func(sessionstore.Update, error) bool) {
		open, count := make(map[begun]int), 0 // in which order they have begun
		for u, err := range history {
			if !yield(u, err) || err != nil {
				return
			}
			one, begins, ended := about(u)
			if _, known := open[one]; ended {
				delete(open, one)
			} else if begins && !known {
				open[one] = count
				count++
			}
		}
		later := func(a, b begun) int { return open[b] - open[a] }
		for _, one := range slices.SortedFunc(maps.Keys(open), later) {
			if u := one.end(has); u.Raw != nil && !yield(u, nil) {
				return
			}
		}
	}
}

// about returns the tool call or subagent that u is about, and whether u says that it works or that
// it has ended.
func about(u sessionstore.Update) (one begun, begins, ended bool) {
	if subagent, works := workingSubagent(u); works {
		return begun{subagent, true}, true, false
	}
	said := Parse(u)
	begins = said.UpdateKind == sessionstore.ToolCall || said.Status != ""
	return begun{Key: said.Key}, begins, said.Ended()
}

// workingSubagent returns the subagent that an update is about, if it says what that can or does.
func workingSubagent(u sessionstore.Update) (subagent Key, works bool) {
	parent, u, _ := u.Subagent()
	var said struct {
		Key          string          `json:"sessionId"`
		Capabilities json.RawMessage `json:"capabilities"`
		State        json.RawMessage `json:"state"`
	}
	if u.Kind != sessionstore.SubagentUpdate || strictjson.Decode(u.Body(), &said) != nil {
		return subagent, false
	}
	given := func(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
	return Key{parent, said.Key}, given(said.Capabilities) || given(said.State)
}

// end returns the update that ends it, or the zero Update if the backend has the subagent.
func (one begun) end(has func(subagent string) bool) (u sessionstore.Update) {
	switch {
	case one.isSubagent && !has(one.ID):
		return backend.LostSubagent(one.Subagent, one.ID)
	case !one.isSubagent && (one.Subagent == "" || !has(one.Subagent)):
		return one.Change(sdk.WithUpdateStatus(sdk.ToolCallStatusFailed))
	}
	return u
}
