package acp

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/commands"
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
// concurrent use. Its methods are also in title.go, settings.go and tool_calls.go.
//
// Functions that end with Locked are called while viewers.shown is used, so that no other update is
// being shown.
type transcript struct {
	id       sessionstore.ID // the client's
	agent    *agent          // that speaks
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
func (t *transcript) sendLocked(
	ctx context.Context, now *shown, u backend.Update, in order,
) error {
	t.agent.connection.observeUsage(t.id, t.spending.Note(ctx, u))
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
		u, theirs = commands.Announce(u, t.agent.options.Worktrees.Dir != "")
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

// checkUpdate rejects an update that is not a JSON object, which a backend can build without
// ParseUpdate.
func checkUpdate(u backend.Update) error {
	if !strictjson.IsObject(u.Raw) {
		return jsonrpc.Errorf(jsonrpc.CodeInternal,
			"the agent sent an update that is not an object")
	}
	return nil
}
