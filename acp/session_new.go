package acp

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/listing"
	"github.com/acp-agent/acp-agent/acp/internal/session/address"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// new serves session/new.
func (c *connection) new(ctx context.Context, r *jsonrpc.Request) (json.RawMessage, error) {
	p, err := c.decodeSession(ctx, r.Params, newShape, absent, required)
	if err != nil {
		return nil, err
	}
	return c.create(ctx, r, p, backend.New, listing.Openable{})
}

// create opens a session and returns the response. source is the session that it is a fork of, the
// zero value for a new one.
func (c *connection) create(
	ctx context.Context, r *jsonrpc.Request, p sessionParams, cause backend.Cause,
	source listing.Openable,
) (json.RawMessage, error) {
	p, err := c.adapter.chooseFolders(ctx, p, cause, source.Session)
	if err != nil {
		return nil, err
	}
	id := sessionstore.NewID()
	ticket := c.home.queues.Ticket(id, turns.Lifecycle, c)
	defer r.AfterResponse(ticket.Release) // what goOn does comes first
	o := opening{adapter: c.adapter, cause: cause, asked: p, source: source, storeID: id,
		ticket: ticket, viewers: newViewers(c.adapter, c, address.New(id))}
	s, err := o.run(ctx)
	if err != nil {
		return nil, err
	}
	c.goOn(r, s)
	return strictjson.Set(s.result, protocol.SessionID, strictjson.Text(string(id))), nil
}
