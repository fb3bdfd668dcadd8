package acp

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// method describes a method that clients send.
type method struct {
	needs    right
	shape    *strictjson.Shape // of its params, nil if only the backend may know the method
	did      string            // see RequestEvent.Did
	accept   acceptFunc        // nil if messages are passed to the backend
	notifies bool              // its messages are notifications, not requests
}

// acceptFunc accepts a request.
type acceptFunc func(c *connection, ctx context.Context, r *jsonrpc.Request) jsonrpc.Work

// atOnce returns the acceptFunc of a method whose requests wait for no other request of a session.
func atOnce(
	serve func(c *connection, ctx context.Context, r *jsonrpc.Request) (json.RawMessage, error),
) acceptFunc {
	return func(c *connection, ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
		return c.work(ctx, func(ctx context.Context) (json.RawMessage, error) {
			return serve(c, ctx, r)
		})
	}
}

// work returns the work for a request with the context ctx, which serve does in a requestContext.
func (c *connection) work(
	ctx context.Context, serve func(context.Context) (json.RawMessage, error),
) jsonrpc.Work {
	return func() (json.RawMessage, error) {
		ctx, cancel := c.adapter.requestContext(ctx)
		defer cancel(nil)
		result, err := serve(ctx)
		return result, protocolError(err)
	}
}

// methods is the table of methods. A method is a row here, a file with its accept function, and its
// name in package protocol.
var methods = map[string]method{
	protocol.Initialize: {needs: toSee, shape: initializeShape,
		accept: (*connection).acceptInitialize},
	protocol.SessionNew:    {needs: toAct, shape: newShape, accept: atOnce((*connection).new)},
	protocol.SessionFork:   {needs: toAct, shape: forkShape, accept: atOnce((*connection).fork)},
	protocol.SessionLoad:   {needs: toSee, shape: loadShape, accept: (*connection).acceptLoad},
	protocol.SessionResume: {needs: toSee, shape: loadShape, accept: (*connection).acceptLoad},
	protocol.SessionPrompt: {needs: toAct, shape: promptShape, accept: (*connection).acceptPrompt},
	protocol.SessionList:   {needs: toSee, shape: listShape, accept: atOnce((*connection).list)},
	protocol.SessionOptions: {needs: toAct, shape: loadShape,
		accept: atOnce((*connection).sessionOptions)},
	protocol.SessionClose: {needs: toSee, shape: idShape,
		accept: queued(turns.Lifecycle, idShape, queuedRequest.close)},
	// It succeeds too if there is nothing to delete.
	protocol.SessionDelete: {needs: toAct, shape: idShape, did: "asked to delete a session",
		accept: queued(turns.Lifecycle, idShape, queuedRequest.delete)},
	protocol.SessionArchive: {needs: toAct, shape: idShape, did: "archived a session",
		accept: queued(turns.Lifecycle, idShape, queuedRequest.archive)},
	protocol.SessionUnarchive: {needs: toAct, shape: idShape,
		did:    "took a session out of the archive",
		accept: queued(turns.Ordinary, idShape, queuedRequest.unarchive)},
	protocol.SessionSetTitle: {needs: toAct, shape: titleShape, did: "renamed a session",
		accept: queued(turns.Ordinary, titleShape, queuedRequest.setTitle, "title")},
	protocol.SessionStatus: {needs: toSee, shape: idShape,
		accept: queued(turns.Ordinary, idShape, queuedRequest.status)},

	protocol.Authenticate: {needs: toAct, shape: keys("methodId", "_meta"),
		did: "signed the agent in"},
	protocol.Logout:     {needs: toAct, shape: keys("_meta"), did: "signed the agent out"},
	protocol.AuthStatus: {needs: toAct, shape: keys("_meta")},
	protocol.SessionSetMode: {needs: toAct,
		shape: keys(protocol.SessionID, "modeId", "_meta")},
	protocol.SessionSetConfigOption: {needs: toAct,
		shape: keys(protocol.SessionID, "configId", "type", "value", "_meta")},
	protocol.SessionSetModel: {needs: toAct, // a draft
		shape: keys(protocol.SessionID, "modelId", "_meta")},

	protocol.SessionCancel: {needs: toAnswer, shape: idShape,
		accept: (*connection).acceptCancel, notifies: true},
	protocol.CancelRequest: {needs: toSee}, // served by package jsonrpc
}

// methodOf returns the row of a method, also of one that the adapter does not know.
func methodOf(name string) method {
	if m, ok := methods[name]; ok {
		return m
	}
	return method{needs: toAct}
}
