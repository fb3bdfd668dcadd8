package acp

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// acceptSetTitle accepts a session/set_title.
func (a *agent) acceptSetTitle(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	return a.acceptStored(ctx, r, turns.Ordinary, a.setTitle, "title")
}

// setTitle serves session/set_title. No title of the agent or of a prompt replaces one that a
// client has set, until the client clears it with "".
func (a *agent) setTitle(
	ctx, _ context.Context, at *ticket, params params,
) (json.RawMessage, error) {
	stored, err := a.stored(ctx, at.Queue.ID)
	if err != nil {
		return nil, err
	}
	given, _ := params.Field("title").Text() // checked when the request was accepted
	title := text.Line(given, maxChosenTitle)
	if err := a.options.Store.Rename(ctx, stored.ID, title); err != nil {
		return nil, err
	}
	result := a.pass(ctx, protocol.SessionSetTitle, stored, params)
	if s := at.Queue.Active(); s != nil {
		s.renamed.Store(title != "")
		s.setTitle(ctx, title)
	}
	return strictjson.Set(result, "title", quote(title)), nil
}
