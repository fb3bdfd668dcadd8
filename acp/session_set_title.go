package acp

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

var titleShape = keys(protocol.SessionID, "title", "_meta")

// setTitle serves session/set_title. No title of the agent or of a prompt replaces one that a
// client has set, until the client clears it with "".
func (q queuedRequest) setTitle(ctx context.Context) (json.RawMessage, error) {
	stored, a, err := q.stored(ctx)
	if err != nil {
		return nil, err
	}
	given, _ := q.params.Field("title").Text() // checked when the request was accepted
	title := text.Line(given, maxChosenTitle)
	if err := a.options.Store.Rename(ctx, stored.ID, title); err != nil {
		return nil, err
	}
	result := a.sessions.Pass(ctx, protocol.SessionSetTitle, stored, q.params)
	if s := q.ticket.Queue.Active(); s != nil {
		s.transcript.Rename(ctx, title)
	}
	return strictjson.Set(result, "title", strictjson.Text(title)), nil
}
