package transcript

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/address"
	"github.com/acp-agent/acp-agent/acp/internal/session/calls"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Audience is the viewers of a session, and what they were shown. The functions do not change.
type Audience[C turns.Client] struct {
	*turns.Viewers[C]
	Address address.Address
	Shown   tasks.Mutex[Shown] // used while an update is shown, so that all see the same order
	Calls   calls.Calls

	// Deliver sends a client an update, if the client takes it. params are those of the update for
	// a client that takes everything. It does not wait.
	Deliver func(to C, u backend.Update, params json.RawMessage) error
	// ShowsNotices reports whether a client shows notices.
	ShowsNotices func(C) bool
}

// Show sends the viewers but except an update of the session, if they take it. It is encoded once,
// and not recorded.
func (a *Audience[C]) Show(ctx context.Context, except C, u backend.Update) {
	params := a.Address.Update(u)
	a.Send(ctx, except, len(u.Raw), func(to C) error { return a.Deliver(to, u, params) })
}

// ShowAll shows all viewers an update.
func (a *Audience[C]) ShowAll(ctx context.Context, u backend.Update) {
	var nobody C
	a.Show(ctx, nobody, u)
}

// ShowTitle shows the viewers the stored title of the session. The caller uses now.
func (a *Audience[C]) ShowTitle(ctx context.Context, now *Shown, title string) {
	now.Titled = title != ""
	info := map[string]any{"sessionUpdate": sessionstore.SessionInfoUpdate, "title": title}
	if title == "" {
		info["title"] = nil
	}
	a.ShowAll(ctx, backend.NewUpdate(info))
}

// Mark shows the viewers but except an update that only says something in _meta, for clients that
// know it.
func (a *Audience[C]) Mark(ctx context.Context, except C, name string, value any) {
	a.Show(ctx, except, backend.NewUpdate(map[string]any{
		"sessionUpdate": sessionstore.SessionInfoUpdate,
		"_meta":         protocol.OurMeta(map[string]any{name: value})}))
}

// ShowGone shows the viewers what is lost because the session is gone from this process.
func (a *Audience[C]) ShowGone(ctx context.Context, err error, lost string) {
	what := "\n\nThis session was opened in another window. " + lost +
		" Load the session again to continue it here.\n"
	if errors.As(err, new(*sessionstore.NotFoundError)) {
		what = "\n\nThis session was deleted in another window. " + lost + "\n"
	}
	ctx, cancel := tasks.Commit(ctx)
	defer cancel()
	a.ShowAll(ctx, backend.Warning(backend.Text(what)))
}

// showNotices reports whether the first viewer shows notices.
func (a *Audience[C]) showNotices() bool {
	clients := a.Clients()
	return len(clients) > 0 && a.ShowsNotices(clients[0])
}
