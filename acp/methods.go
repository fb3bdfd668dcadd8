package acp

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// method describes a method that clients send. The zero value is that of a method that
// only the backend may know.
type method struct {
	shape  *strictjson.Shape // of its params
	needs  right             // the zero value is acts
	did    string            // see RequestEvent.Did
	accept acceptFunc        // nil if requests are passed to the backend
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
		ctx, cancel := c.agent.requestContext(ctx)
		defer cancel(nil)
		result, err := serve(ctx)
		return result, protocolError(err)
	}
}

// methodOf is the table of methods. A method is a row here, a file with its accept function, and
// its name in package protocol.
func methodOf(name string) method {
	switch name {
	case protocol.Initialize:
		return method{shape: initializeShape, needs: sees, accept: (*connection).acceptInitialize}
	case protocol.SessionNew:
		return method{shape: newShape, accept: atOnce((*connection).new)}
	case protocol.SessionFork:
		return method{shape: forkShape, accept: atOnce((*connection).fork)}
	case protocol.SessionLoad, protocol.SessionResume:
		return method{shape: loadShape, needs: sees, accept: (*connection).acceptLoad}
	case protocol.SessionPrompt:
		return method{shape: promptShape, accept: (*connection).acceptPrompt}
	case protocol.SessionList:
		return method{shape: listShape, needs: sees, accept: atOnce((*connection).list)}
	case protocol.SessionOptions:
		return method{shape: loadShape, accept: atOnce((*connection).sessionOptions)}
	case protocol.SessionClose:
		return method{shape: idShape, needs: sees,
			accept: queued(turns.Lifecycle, (*connection).close)}
	case protocol.SessionDelete: // succeeds too if there is nothing to delete
		return method{shape: idShape, did: "asked to delete a session",
			accept: queued(turns.Lifecycle, (*connection).delete)}
	case protocol.SessionArchive:
		return method{shape: idShape, did: "archived a session",
			accept: queued(turns.Lifecycle, (*connection).archive)}
	case protocol.SessionUnarchive:
		return method{shape: idShape, did: "took a session out of the archive",
			accept: queued(turns.Ordinary, (*connection).unarchive)}
	case protocol.SessionSetTitle:
		return method{shape: titleShape, did: "renamed a session",
			accept: queued(turns.Ordinary, (*connection).setTitle, "title")}
	case protocol.SessionStatus:
		return method{shape: idShape, needs: sees,
			accept: queued(turns.Ordinary, (*connection).status)}

	case protocol.Authenticate:
		return method{shape: keys("methodId", "_meta"), did: "signed the agent in"}
	case protocol.Logout:
		return method{shape: keys("_meta"), did: "signed the agent out"}
	case protocol.AuthStatus:
		return method{shape: keys("_meta")}
	case protocol.SessionSetMode:
		return method{shape: keys(protocol.SessionID, "modeId", "_meta")}
	case protocol.SessionSetConfigOption:
		return method{shape: keys(protocol.SessionID, "configId", "type", "value", "_meta")}
	case protocol.SessionSetModel: // a draft
		return method{shape: keys(protocol.SessionID, "modelId", "_meta")}

	case protocol.SessionCancel: // a notification; see connection.cancel
		return method{shape: idShape, needs: answers}
	case protocol.CancelRequest: // served by package jsonrpc
		return method{needs: sees}
	}
	return method{}
}

// isPassed reports whether ACP defines the method, and the adapter passes it to the backend.
func (m method) isPassed() bool { return m.accept == nil && m.shape != nil && m.needs == acts }

// Role says what a peer may do with the sessions of its principal.
type Role string

const (
	// RoleWatch lets a peer see them.
	RoleWatch Role = "watch"
	// RoleAnswer also lets it stop turns and answer questions: it can allow or refuse once.
	RoleAnswer Role = "answer"
	// RoleFull lets it do everything. The zero Role means the same.
	RoleFull Role = "full"
)

// right is a kind of permission that requests, and other acts of clients, need.
type right int

const (
	// acts opens, changes, prompts and closes sessions. Unknown methods need it.
	acts right = iota
	// answers questions and ends turns. A client that may do that counts as one that has a session
	// open: the session waits for it.
	answers
	// sees what is there.
	sees
)

// has reports whether a peer with the role has a right.
func (r Role) has(need right) bool {
	switch r {
	case RoleWatch:
		return need >= sees
	case RoleAnswer:
		return need >= answers
	}
	return true
}

// May reports whether a peer with the role may send messages with this method.
func (r Role) May(method string) bool { return r.has(methodOf(method).needs) }

// onlyQuestions are the capabilities of a client that may not act.
const onlyQuestions = `{"elicitation":{"form":{}},"_meta":{"acp-agent":{"turnEnds":true}}}`

// narrow leaves in a request of a peer that does not act only what such a peer may say: it offers
// no files and terminals, and gives a session no other folders and servers.
func (r Role) narrow(q *jsonrpc.Request) {
	if r.has(acts) {
		return
	}
	only := func(names ...string) json.RawMessage {
		return strictjson.Prune(q.Params, keys(names...), "_meta")
	}
	switch q.Method {
	case protocol.Initialize:
		q.Params = strictjson.Set(only("protocolVersion", "clientInfo"), "clientCapabilities",
			json.RawMessage(onlyQuestions))
	case protocol.SessionLoad, protocol.SessionResume:
		q.Params = strictjson.Set(only(protocol.SessionID, "cwd"), protocol.MCPServers,
			json.RawMessage("[]"))
	}
}
