// Package transcript shows the viewers of a session what is said in it, and records that.
package transcript

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/commands"
	"github.com/acp-agent/acp-agent/acp/internal/session/calls"
	"github.com/acp-agent/acp-agent/acp/internal/session/metering"
	"github.com/acp-agent/acp-agent/acp/internal/session/record"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Transcript shows the viewers of a session what is said in it, and records that. It is safe for
// concurrent use. Its exported fields do not change.
type Transcript[C turns.Client] struct {
	Audience *Audience[C]
	Permits  *permission.Permits
	Record   *record.Record
	Spending *metering.Spending
	// Charged is called with what was stored as used.
	Charged func([]sessionstore.Charge)
	// Worktrees says whether there is a /worktree.
	Worktrees bool
	// Lasts says that clients may come later, who are to know the tool calls of others.
	Lasts bool
	// Unruled tells the user that the agent has done something without asking. It is "" for an
	// agent that asks. Warned says that the user was told.
	Unruled string
	Warned  *atomic.Bool
	Log     *slog.Logger // of the session

	agentHas atomic.Pointer[[]string] // the adapter's names that the backend's commands have
}

// Order selects whether an update is shown or stored first.
type Order bool

const (
	// ShowFirst does not wait for the record to be stored.
	ShowFirst Order = false
	// StoreFirst shows an update once that and everything before it is stored.
	StoreFirst Order = true
)

// Send shows the viewers an update of the agent and records it, in the given order. The adapter's
// commands are added to those of the backend. A title of the agent does not replace a chosen one.
func (t *Transcript[C]) Send(ctx context.Context, u backend.Update, in Order) error {
	if err := Check(u); err != nil {
		return err
	}
	u = t.Announce(u)
	return t.with(ctx, func(f lockedTranscript[C]) error {
		t.Charged(t.Spending.Note(ctx, u))
		if u.Kind == sessionstore.SessionInfoUpdate && f.now.Renamed {
			var more bool
			if u, more = withoutTitle(u); !more {
				return nil
			}
		}
		say := f.say
		if in == StoreFirst {
			say = f.sayStored
		}
		if err := say(ctx, u); err != nil {
			return record.AsFenced(err)
		}
		f.now.note(u)
		return f.noteCall(ctx, u)
	})
}

// add records u. A warning is recorded as the message that it is for clients without notices, if
// the first viewer is one.
func (t *Transcript[C]) add(ctx context.Context, u backend.Update) error {
	if message, ok := backend.WarningMessage(u); ok {
		if t.Audience.showNotices() {
			return nil
		}
		u = message
	}
	return t.Record.Add(ctx, u)
}

// Announce adds the adapter's commands to an announcement of the backend, and notes which of their
// names commands of the backend have. It returns other updates as they are.
func (t *Transcript[C]) Announce(u backend.Update) backend.Update {
	if u.Kind == sessionstore.AvailableCommandsUpdate {
		var theirs []string
		u, theirs = commands.Announce(u, t.Worktrees)
		t.agentHas.Store(&theirs)
	}
	return u
}

// AgentHasCommand reports whether the backend has a command with this name, which is one of the
// adapter.
func (t *Transcript[C]) AgentHasCommand(name string) bool {
	has := t.agentHas.Load()
	return has != nil && slices.Contains(*has, name)
}

// Rename shows the viewers the title that a client has chosen, or that there is none, "".
func (t *Transcript[C]) Rename(ctx context.Context, title string) {
	ctx, cancel := tasks.Commit(ctx)
	defer cancel()
	_ = t.Audience.Shown.With(ctx, func(now *Shown) error {
		now.Renamed = title != ""
		t.Audience.ShowTitle(ctx, now, title)
		return nil
	})
}

// ShowSetting shows every viewer except from what from has set, and keeps it for viewers that join
// later.
func (t *Transcript[C]) ShowSetting(ctx context.Context, from C, set backend.Update) {
	if set.Raw == nil {
		return
	}
	ctx, cancel := tasks.Commit(ctx)
	defer cancel()
	_ = t.Audience.Shown.With(ctx, func(now *Shown) error {
		now.noteSet(set)
		if t.Audience.Others(from) > 0 {
			t.Audience.Show(ctx, from, set)
		}
		return nil
	})
}

// Ask has the user asked with ask, which does not wait for the answer. If the viewers do not know
// the tool call with the id, it is recorded from the question, which announces it, and Ask reports
// true.
func (t *Transcript[C]) Ask(
	ctx context.Context, id calls.Key, announced backend.Update, ask func(),
) (isNew bool, err error) {
	err = t.with(ctx, func(f lockedTranscript[C]) error {
		ask()
		_, known := t.Audience.Calls.Get(id)
		if isNew = !known && id.ID != ""; isNew {
			f.recordCall(ctx, announced)
		}
		return nil
	})
	return isNew, err
}

// RecordRejected records that a tool call failed because the user did not allow it, and shows that
// to the viewers but by, who knows it.
func (t *Transcript[C]) RecordRejected(ctx context.Context, id calls.Key, by C) {
	ctx, cancel := tasks.Commit(ctx)
	defer cancel()
	// If that fails, a load shows the call as failed, because it has not ended.
	_ = t.with(ctx, func(f lockedTranscript[C]) error {
		failed := id.Change(sdk.WithUpdateStatus(sdk.ToolCallStatusFailed))
		f.recordCall(ctx, failed)
		if t.Audience.Others(by) > 0 {
			t.Audience.Show(ctx, by, failed)
		}
		return nil
	})
}

// ShowMarked shows the viewers a tool call about which a rule decided, with a mark in its title.
// call is the call as the question about it has it, and announce returns it with a title.
func (t *Transcript[C]) ShowMarked(
	ctx context.Context, id calls.Key, call permission.Call, mark string,
	announce func(title string) backend.Update,
) error {
	return t.with(ctx, func(f lockedTranscript[C]) error {
		known, isKnown := t.Audience.Calls.Get(id)
		path := ""
		if len(call.Locations) > 0 {
			path = " " + call.Locations[0].Path
		}
		title := cmp.Or(known.Title, call.Title, call.Kind+path)
		title = strings.TrimSuffix(title, mark) + mark
		u := id.Change(sdk.WithUpdateTitle(title))
		if !isKnown {
			if id.ID == "" {
				return nil
			}
			u = announce(title)
			t.Audience.Calls.Note(calls.Parse(u))
		}
		t.Audience.Calls.Change(id, func(c *calls.Call) { c.Mark, c.Asked = mark, true })
		return f.say(ctx, u)
	})
}

// lockedTranscript is a transcript while nobody else shows the viewers anything.
type lockedTranscript[C turns.Client] struct {
	*Transcript[C]
	now *Shown
}

// with calls do once nobody else shows an update.
func (t *Transcript[C]) with(ctx context.Context, do func(lockedTranscript[C]) error) error {
	return t.Audience.Shown.With(ctx, func(now *Shown) error {
		return do(lockedTranscript[C]{t, now})
	})
}

// say shows the viewers an update, and records it.
func (f lockedTranscript[C]) say(ctx context.Context, u backend.Update) error {
	f.Audience.ShowAll(ctx, u)
	return f.add(ctx, u)
}

// sayStored shows the viewers an update once it is stored.
func (f lockedTranscript[C]) sayStored(ctx context.Context, u backend.Update) error {
	if err := f.add(ctx, u); err != nil {
		return err
	}
	if err := tasks.Insist(ctx, f.Record.Flush); err != nil {
		return err
	}
	f.Audience.ShowAll(ctx, u)
	return nil
}

// recordCall records an update about a tool call without sending it: the client already knows its
// content.
func (f lockedTranscript[C]) recordCall(ctx context.Context, u backend.Update) {
	said := calls.Parse(u)
	f.Audience.Calls.Note(said)
	f.Audience.Calls.Change(said.Key, func(c *calls.Call) { c.Asked = true })
	if err := f.add(ctx, u); err != nil {
		f.Log.Debug("a tool call is not in the history", "error", err)
	}
}

// noteCall notes what an update of the agent, which is being shown, says about a tool call. It
// shows the mark of the call again if the update has replaced its title.
func (f lockedTranscript[C]) noteCall(ctx context.Context, u backend.Update) error {
	remembers := f.Lasts || f.Permits.Decides()
	if _, of, _ := u.Subagent(); of.Kind != sessionstore.ToolCall &&
		(of.Kind != sessionstore.ToolCallUpdate || !remembers) {
		return nil
	}
	said := calls.Parse(u)
	call := f.Audience.Calls.Note(said)
	if call.Mark != "" && said.Title != "" && !strings.HasSuffix(said.Title, call.Mark) {
		again := said.Key.Change(sdk.WithUpdateTitle(said.Title + call.Mark))
		if err := f.say(ctx, again); err != nil {
			return err
		}
	}
	f.warnUnruled(ctx, said, call)
	return nil
}

// warnUnruled tells the user, once in a session, that an agent that is known to ask little has done
// something without asking. said is an update of a tool call, and call what is known of it.
func (f lockedTranscript[C]) warnUnruled(ctx context.Context, said calls.Update, call calls.Call) {
	effects := []string{"edit", "delete", "move", "execute"}
	if f.Unruled == "" || said.Status != string(sdk.ToolCallStatusCompleted) || call.Asked ||
		f.Permits.Configured == nil || !slices.Contains(effects, call.Kind) ||
		f.Warned.Swap(true) {
		return
	}
	f.Audience.ShowAll(ctx, backend.Warning(backend.Text("\n\n"+f.Unruled+"\n\n")))
}

// Check rejects an update that is not a JSON object, which a backend can build without ParseUpdate.
func Check(u backend.Update) error {
	if !strictjson.IsObject(u.Raw) {
		return jsonrpc.Errorf(jsonrpc.CodeInternal,
			"the agent sent an update that is not an object")
	}
	return nil
}

// withoutTitle returns u without its title. It reports false if u says nothing else.
func withoutTitle(u backend.Update) (backend.Update, bool) {
	before := len(u.Raw)
	u.Raw = strictjson.Remove(u.Raw, "update", "title")
	var members map[string]json.RawMessage
	_ = json.Unmarshal(u.Body(), &members)
	return u, len(u.Raw) == before || len(members) > 1 // sessionUpdate
}
