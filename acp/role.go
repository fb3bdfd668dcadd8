package acp

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/acp-agent/acp-agent/acp/internal/session/question"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

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

// right is the right that a message, or another act of a client, needs.
type right string

const (
	// toSee is the right to see what is there.
	toSee right = "see"
	// toAnswer is the right to answer questions and to end turns. A client that has it counts as
	// one that has a session open: the session waits for it.
	toAnswer right = "answer"
	// toAct is the right to open, change, prompt and close sessions, and to use methods that the
	// adapter does not know.
	toAct right = "act"
)

// rightsOf has the rights of each role.
var rightsOf = map[Role][]right{
	RoleWatch:  {toSee},
	RoleAnswer: {toSee, toAnswer},
	RoleFull:   {toSee, toAnswer, toAct},
}

// has reports whether a peer with the role has a right.
func (r Role) has(need right) bool {
	return slices.Contains(rightsOf[cmp.Or(r, RoleFull)], need)
}

// May reports whether a peer with the role may send messages with this method.
func (r Role) May(method string) bool { return r.has(methodOf(method).needs) }

// onlyQuestions are the capabilities of a client that may not act.
const onlyQuestions = `{"elicitation":{"form":{}},"_meta":{"acp-agent":{"turnEnds":true}}}`

// narrow leaves in a request of a peer that does not act only what such a peer may say: it offers
// no files and terminals, and gives a session no other folders and servers.
func (r Role) narrow(q *jsonrpc.Request) {
	if r.has(toAct) {
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

// asked returns a question as a peer with the role gets it.
func (r Role) asked(q question.Question) question.Question {
	if r.has(toAct) {
		return q
	}
	return q.Narrow(r.has(toAnswer))
}
