package acp

import (
	"cmp"
	"context"
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

// order selects whether an update is shown or stored first.
type order bool

const (
	// showFirst does not wait for the record to be stored.
	showFirst order = false
	// storeFirst shows an update once that and everything before it is stored.
	storeFirst order = true
)

// send shows the viewers an update of the agent and records it, in the given order. The adapter's
// commands are added to those of the backend. A title of the agent does not replace a chosen one.
func (t *transcript) send(ctx context.Context, u backend.Update, in order) error {
	if err := checkUpdate(u); err != nil {
		return err
	}
	u = t.announce(u)
	return t.viewers.shown.With(ctx, func(now *shown) error {
		t.adapter.connection.observeUsage(t.id, t.spending.Note(ctx, u))
		if u.Kind == sessionstore.SessionInfoUpdate && now.renamed {
			var more bool
			if u, more = withoutTitle(u); !more {
				return nil
			}
		}
		say := t.sayLocked
		if in == storeFirst {
			say = t.sayStoredLocked
		}
		if err := say(ctx, u); err != nil {
			return asFenced(err)
		}
		now.note(u)
		return t.noteCallLocked(ctx, now, u)
	})
}

// sayLocked shows the viewers an update, and records it.
func (t *transcript) sayLocked(ctx context.Context, u backend.Update) error {
	t.viewers.show(ctx, nil, u)
	return t.add(ctx, u)
}

// sayStoredLocked shows the viewers an update once it is stored.
func (t *transcript) sayStoredLocked(ctx context.Context, u backend.Update) error {
	if err := t.add(ctx, u); err != nil {
		return err
	}
	if err := tasks.Insist(ctx, t.record.Flush); err != nil {
		return err
	}
	t.viewers.show(ctx, nil, u)
	return nil
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
// later.
func (t *transcript) tellSetting(from *connection, set backend.Update) {
	if set.Raw == nil {
		return
	}
	ctx, cancel := tasks.Commit(t.adapter.base)
	defer cancel()
	_ = t.viewers.shown.With(ctx, func(now *shown) error {
		now.noteSet(set)
		if t.viewers.Others(from) > 0 {
			t.viewers.show(ctx, from, set)
		}
		return nil
	})
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
func (t *transcript) showMarked(
	ctx context.Context, id calls.Key, q question, mark string,
) error {
	return t.viewers.shown.With(ctx, func(*shown) error {
		known, isKnown := t.viewers.calls.Get(id)
		path := ""
		if len(q.Call.Locations) > 0 {
			path = " " + q.Call.Locations[0].Path
		}
		title := cmp.Or(known.Title, q.Call.Title, q.Call.Kind+path)
		title = strings.TrimSuffix(title, mark) + mark
		u := id.Change(sdk.WithUpdateTitle(title))
		if !isKnown {
			if id.ID == "" {
				return nil
			}
			u = q.announce(id, title)
			t.viewers.calls.Note(calls.Parse(u))
		}
		t.viewers.calls.Change(id, func(c *calls.Call) { c.Mark, c.Asked = mark, true })
		return t.sayLocked(ctx, u)
	})
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
		if err := t.sayLocked(ctx, again); err != nil {
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
