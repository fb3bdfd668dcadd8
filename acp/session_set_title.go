package acp

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/protocol"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// maxChosenTitle is the length of the longest title that a client may set, in characters. Longer
// ones are truncated.
const maxChosenTitle = 200

// setTitle serves session/set_title. No title of the agent or of a prompt replaces one that a
// client has set, until the client clears it with "".
func (a *agent) setTitle(
	ctx, _ context.Context, at *ticket, params params,
) (json.RawMessage, error) {
	stored, err := a.stored(ctx, at.queue.id)
	if err != nil {
		return nil, err
	}
	given, _ := params.Field("title").Text() // checked when the request was accepted
	title := text.Line(given, maxChosenTitle)
	if err := a.options.Store.Rename(ctx, stored.ID, title); err != nil {
		return nil, err
	}
	result := a.passStored(ctx, protocol.SessionSetTitle, stored, params)
	if s := at.queue.active(); s != nil {
		s.rename(ctx, title)
	}
	return strictjson.Set(result, "title", quote(title)), nil
}

// rename shows the client a title that was chosen for the session, or that it has none if title is
// "".
func (s *session) rename(ctx context.Context, title string) {
	s.titled.Store(title != "")
	s.renamed.Store(title != "")
	info := map[string]any{"sessionUpdate": sessionstore.SessionInfoUpdate, "title": title}
	if title == "" {
		info["title"] = nil
	}
	update := backend.NewUpdate(info)
	if err := s.show(ctx, update); err != nil {
		s.agent.log.Debug("title not shown", "session", s.id, "error", err)
	}
}

// withoutTitle returns u without its title. It reports false if u says nothing else.
func withoutTitle(u backend.Update) (backend.Update, bool) {
	inner := members(u.Raw)["update"]
	title, rest, err := strictjson.Take(inner, "title")
	if err != nil || title == nil {
		return u, true
	}
	if len(members(rest)) == 1 { // sessionUpdate
		return u, false
	}
	return sessionstore.Update{Kind: u.Kind, Raw: strictjson.Set(u.Raw, "update", rest)}, true
}
