package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
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
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// transcript shows the viewers of a session what is said in it, and records that. It is safe for
// concurrent use.
//
// Functions that end with Locked are called while viewers.shown is used, so that no other update is
// being shown.
type transcript struct {
	id       sessionstore.ID // the client's
	adapter  *adapter        // that speaks
	viewers  *viewers
	permits  *permission.Permits
	record   *record.Record
	spending *metering.Spending

	agentHas atomic.Pointer[[]string] // the adapter's names that the backend's commands have
}

// shown has what the viewers of a session were shown last, as far as later updates depend on it. All
// other updates wait while it is used.
type shown struct {
	titled  bool   // the session has a title
	renamed bool   // a client has chosen it
	mode    string // its id, "" if it is not known
	unruled bool   // the user was told that the agent does not ask
	// settings are what a client has set, if the agent has not sent an update of that kind since.
	settings map[sessionstore.Kind]backend.Update
}

// noteMode remembers the session's mode, if u names it.
func (now *shown) noteMode(u backend.Update) {
	if u.Kind != sessionstore.CurrentModeUpdate && u.Kind != sessionstore.ConfigOptionUpdate {
		return
	}
	var said map[string]any // with the names as they are spelled
	_ = json.Unmarshal(strictjson.Find(u.Raw, "update"), &said)
	mode, _ := said["currentModeId"].(string)
	now.mode = cmp.Or(mode, now.mode)
	options, _ := said["configOptions"].([]any)
	for _, one := range options {
		o, _ := one.(map[string]any)
		if mode, ok := o["currentValue"].(string); ok && (o["id"] == "mode" || o["category"] == "mode") {
			now.mode = mode
		}
	}
}

// noteTitle remembers whether the session has a title, if u says that.
func (now *shown) noteTitle(u backend.Update) {
	if title := latestTitle([]sessionstore.Update{u}); title != nil {
		now.titled = *title != ""
	}
}

// order selects whether an update is shown or stored first.
type order bool

const (
	// showFirst does not wait for the record to be stored.
	showFirst order = false
	// storeFirst shows an update once that and everything before it is stored.
	storeFirst order = true
)

// send shows the viewers an update and records it, in the given order. The adapter's commands are
// added to those of the backend.
func (t *transcript) send(ctx context.Context, u backend.Update, in order) error {
	if err := checkUpdate(u); err != nil {
		return err
	}
	u = t.announce(u)
	return t.viewers.shown.With(ctx, func(now *shown) error {
		return t.sendLocked(ctx, now, u, in)
	})
}

// sendLocked shows and records an update. A title of the agent does not replace a chosen one.
func (t *transcript) sendLocked(ctx context.Context, now *shown, u backend.Update, in order) error {
	t.adapter.connection.observeUsage(t.id, t.spending.Note(ctx, u))
	if u.Kind == sessionstore.SessionInfoUpdate && now.renamed {
		var more bool
		if u, more = withoutTitle(u); !more {
			return nil
		}
	}
	if in == showFirst {
		t.viewers.show(ctx, nil, u)
	}
	err := t.add(ctx, u)
	if err == nil && in == storeFirst {
		if err = tasks.Insist(ctx, t.record.Flush); err == nil {
			t.viewers.show(ctx, nil, u)
		}
	}
	if err != nil {
		return asFenced(err)
	}
	delete(now.settings, u.Kind)
	now.noteMode(u)
	now.noteTitle(u)
	return t.noteCallLocked(ctx, now, u)
}

// add records u. A warning is recorded as the message that it is for clients without notices, if
// the first viewer is one.
func (t *transcript) add(ctx context.Context, u backend.Update) error {
	if message, ok := backend.WarningMessage(u); ok {
		clients := t.viewers.Clients()
		if len(clients) > 0 && clients[0].clientCapabilities().declares(protocol.Notices) {
			return nil
		}
		u = message
	}
	return t.record.Add(ctx, u)
}

// announce adds the adapter's commands to an announcement of the backend, and notes which of their
// names commands of the backend have. It returns other updates as they are.
func (t *transcript) announce(u backend.Update) backend.Update {
	if u.Kind == sessionstore.AvailableCommandsUpdate {
		var theirs []string
		u, theirs = commands.Announce(u, t.adapter.options.Worktrees.Dir != "")
		t.agentHas.Store(&theirs)
	}
	return u
}

// agentHasCommand reports whether the backend has a command with this name, which is one of the
// adapter.
func (t *transcript) agentHasCommand(name string) bool {
	has := t.agentHas.Load()
	return has != nil && slices.Contains(*has, name)
}

// rename shows the viewers the title that a client has chosen, or that there is none, "".
func (t *transcript) rename(title string) {
	ctx, cancel := tasks.Commit(t.adapter.base)
	defer cancel()
	_ = t.viewers.shown.With(ctx, func(now *shown) error {
		now.renamed = title != ""
		t.showTitleLocked(ctx, now, title)
		return nil
	})
}

// showTitleLocked shows the viewers the stored title of the session.
func (t *transcript) showTitleLocked(ctx context.Context, now *shown, title string) {
	now.titled = title != ""
	info := map[string]any{"sessionUpdate": sessionstore.SessionInfoUpdate, "title": title}
	if title == "" {
		info["title"] = nil
	}
	t.viewers.show(ctx, nil, backend.NewUpdate(info))
}

// tellSetting tells every viewer except from what from has set, and keeps it for viewers that join
// later. An agent need not send an update of what a client sets.
func (t *transcript) tellSetting(from *connection, set backend.Update) {
	if set.Raw == nil {
		return
	}
	ctx, cancel := tasks.Commit(t.adapter.base)
	defer cancel()
	_ = t.viewers.shown.With(ctx, func(now *shown) error {
		if now.settings == nil {
			now.settings = make(map[sessionstore.Kind]backend.Update)
		}
		now.settings[set.Kind] = set
		now.noteMode(set)
		if t.viewers.Others(from) > 0 {
			t.viewers.show(ctx, from, set)
		}
		return nil
	})
}

// statesLocked returns the stored states of the session, with what clients have set since.
func (t *transcript) statesLocked(
	now *shown, stored []sessionstore.Update,
) (states []backend.Update) {
	for _, u := range stored {
		if _, newer := now.settings[u.Kind]; !newer {
			states = append(states, t.announce(u))
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(now.settings)) {
		states = append(states, now.settings[kind])
	}
	return states
}

// recordCallLocked records an update about a tool call without sending it: the client already knows
// its content.
func (t *transcript) recordCallLocked(ctx context.Context, u backend.Update) {
	said := calls.Parse(u)
	t.viewers.calls.Note(said)
	t.viewers.calls.Change(said.Key, func(c *calls.Call) { c.Asked = true })
	if err := t.add(ctx, u); err != nil {
		t.adapter.log.Debug("a tool call is not in the history", "session", t.id,
			"error", err)
	}
}

// recordRejected records that a tool call failed because the user did not allow it, and shows that
// to the viewers but by, who knows it.
func (t *transcript) recordRejected(ctx context.Context, id calls.Key, by *connection) {
	ctx, cancel := tasks.Commit(ctx)
	defer cancel()
	// If that fails, a load shows the call as failed, because it has not ended.
	_ = t.viewers.shown.With(ctx, func(*shown) error {
		failed := id.Change(sdk.WithUpdateStatus(sdk.ToolCallStatusFailed))
		t.recordCallLocked(ctx, failed)
		if t.viewers.Others(by) > 0 {
			t.viewers.show(ctx, by, failed)
		}
		return nil
	})
}

// showMarked shows the viewers a tool call about which a rule decided, with a mark in its title.
func (t *transcript) showMarked(ctx context.Context, asked question, mark string) error {
	return t.viewers.shown.With(ctx, func(*shown) error {
		id := asked.key()
		known, isKnown := t.viewers.calls.Get(id)
		path := ""
		if len(asked.Call.Locations) > 0 {
			path = " " + asked.Call.Locations[0].Path
		}
		title := cmp.Or(known.Title, asked.Call.Title, asked.Call.Kind+path)
		title = strings.TrimSuffix(title, mark) + mark
		u := id.Change(sdk.WithUpdateTitle(title))
		if !isKnown {
			if id.ID == "" {
				return nil
			}
			u = asked.announce(title)
			t.viewers.calls.Note(calls.Parse(u))
		}
		t.viewers.calls.Change(id, func(c *calls.Call) { c.Mark, c.Asked = mark, true })
		return t.showLocked(ctx, u)
	})
}

// showLocked shows the viewers an update and records it.
func (t *transcript) showLocked(ctx context.Context, u backend.Update) error {
	t.viewers.show(ctx, nil, u)
	return t.add(ctx, u)
}

// noteCallLocked notes what an update of the agent, which is being shown, says about a tool call.
// It shows the mark of the call again if the update has replaced its title.
func (t *transcript) noteCallLocked(ctx context.Context, now *shown, u backend.Update) error {
	remembers := t.permits.Decides() || t.adapter.home.isShared() // others may come
	if kind := kindOf(u); kind != sessionstore.ToolCall &&
		(kind != sessionstore.ToolCallUpdate || !remembers) {
		return nil
	}
	said := calls.Parse(u)
	call := t.viewers.calls.Note(said)
	if call.Mark != "" && said.Title != "" && !strings.HasSuffix(said.Title, call.Mark) {
		again := said.Key.Change(sdk.WithUpdateTitle(said.Title + call.Mark))
		if err := t.showLocked(ctx, again); err != nil {
			return err
		}
	}
	t.warnUnruledLocked(ctx, now, said, call)
	return nil
}

// warnUnruledLocked tells the user, once in a session, that an agent that is known to ask little
// has done something without asking. said is an update of a tool call, and call what is known of
// it.
func (t *transcript) warnUnruledLocked(
	ctx context.Context, now *shown, said calls.Update, call calls.Call,
) {
	info, effects := t.adapter.info().Info, []string{"edit", "delete", "move", "execute"}
	if info.AsksLittle == "" || said.Status != string(sdk.ToolCallStatusCompleted) || call.Asked ||
		now.unruled || t.permits.Configured == nil || !slices.Contains(effects, call.Kind) {
		return
	}
	now.unruled = true
	t.viewers.show(ctx, nil, backend.Warning(backend.Text("\n\n"+whyUnruled(info)+"\n\n")))
}

// checkUpdate rejects an update that is not a JSON object, which a backend can build without
// ParseUpdate.
func checkUpdate(u backend.Update) error {
	if !strictjson.IsObject(u.Raw) {
		return jsonrpc.Errorf(jsonrpc.CodeInternal,
			"the agent sent an update that is not an object")
	}
	return nil
}

// statesIn returns the session's mode and options in a lifecycle response as updates, for a client
// that does not get the response.
func statesIn(result backend.Raw) []backend.Update {
	return slices.DeleteFunc([]backend.Update{
		settingUpdate(sessionstore.CurrentModeUpdate,
			strictjson.Find(result, "modes", "currentModeId")),
		settingUpdate(sessionstore.ConfigOptionUpdate, strictjson.Find(result, "configOptions")),
	}, func(u backend.Update) bool { return u.Raw == nil })
}

// settingUpdate returns the update of this kind that says what the mode is, or what the options are,
// or the zero Update without a value.
func settingUpdate(kind sessionstore.Kind, value json.RawMessage) backend.Update {
	if len(value) == 0 || string(value) == "null" {
		return backend.Update{}
	}
	member := "configOptions"
	if kind == sessionstore.CurrentModeUpdate {
		member = "currentModeId"
	}
	return backend.NewUpdate(map[string]any{"sessionUpdate": kind, member: value})
}
