package protocol

import (
	_ "embed" // the tables
	"slices"
	"strings"
	"sync"
)

// tables has what the program uses of tables.txt. Tests compare the file with the schema, and
// docs/protocol.md with the file.
var tables = sync.OnceValue(func() (t struct {
	refused []string
	updates []UpdateKind
	client  []ClientCapability
	agent   []AgentCapability
	content []ContentType
}) {
	for line := range strings.Lines(tablesFile) {
		var row [5]string
		rest := strings.TrimSpace(line)
		for i := range row {
			row[i], rest, _ = strings.Cut(rest, "\t")
		}
		switch row[0] {
		case "method":
			if Handling(row[3]) == Refused {
				t.refused = append(t.refused, row[2])
			}
		case "update":
			t.updates = append(t.updates, UpdateKind{row[1], Keeping(row[2]), row[3]})
		case "client":
			t.client = append(t.client, ClientCapability{row[1], row[2] == "flag"})
		case "agent":
			t.agent = append(t.agent,
				AgentCapability{row[1], Handling(row[2]), row[3] == "account"})
		case "content", "part":
			t.content = append(t.content, ContentType{row[1], row[0] == "part", row[2],
				slices.Collect(strings.FieldsSeq(row[3])),
				slices.Collect(strings.FieldsSeq(row[4]))})
		}
	}
	return t
})

//go:embed tables.txt
var tablesFile string

// Handling says what the program does with a part of the protocol.
type Handling string

const (
	Served  Handling = "served"    // the program knows what it means, whatever answers behind it
	Passed  Handling = "passed on" // it passes between the client and the agent unread
	Refused Handling = "refused"   // it is not answered, not offered, or left out
)

// IsRefused reports whether a message with this method, in either direction, is refused.
func IsRefused(method string) bool { return slices.Contains(tables().refused, method) }

// Keeping says what a store keeps of the updates of a kind: of an event, "", all of them, in order,
// and of "title" the title in it.
type Keeping string

const (
	State   Keeping = "state"   // the latest one
	Nothing Keeping = "nothing" // nothing: it is about the moment
)

// An UpdateKind describes a kind of session/update. It is sent only to a client that has declared
// the capability Needs, or to every client if Needs is "".
type UpdateKind struct {
	Name  string
	Keep  Keeping
	Needs string
}

// UpdateKinds returns the kinds of updates that the program knows.
func UpdateKinds() []UpdateKind { return slices.Clone(tables().updates) }

// Capabilities that a client may declare, as paths of members of clientCapabilities.
const (
	FileReads      = "fs.readTextFile"
	FileWrites     = "fs.writeTextFile"
	Terminals      = "terminal"
	TerminalSignIn = "auth.terminal"
	Elicitation    = "elicitation"
	Notices        = "session.notices"
	Subagents      = "subagents"
)

// A ClientCapability describes a member of clientCapabilities. A client declares it with an object,
// or with true if it is a flag. All of them are passed on to an agent as the client declared them.
type ClientCapability struct {
	Path string
	Flag bool
}

// ClientCapabilities returns the capabilities of clients that the program knows. A capability
// follows the one that it is a member of.
func ClientCapabilities() []ClientCapability { return slices.Clone(tables().client) }

// An AgentCapability describes a member of agentCapabilities. If it is served, the program offers
// it for every agent. If it is passed on, it is offered if the agent offers it.
type AgentCapability struct {
	Path     string
	Handling Handling
	// Account means that it is about the account of the agent.
	Account bool
}

// AgentCapabilities returns the capabilities of agents that the program knows. A capability follows
// the one that it is a member of.
func AgentCapabilities() []AgentCapability { return slices.Clone(tables().agent) }

// A ContentType describes the type of a content block, or of an entry in the content of a tool
// call. It is sent only to a client that has declared the capability Needs. All of them pass
// between the client and the agent as they are. A content block has at least the strings Required,
// and may have the strings Optional, or null in their place.
type ContentType struct {
	Name       string
	OfToolCall bool
	Needs      string
	Required   []string
	Optional   []string
}

// BlockType returns the type of content blocks with a name, and whether there is one.
func BlockType(name string) (t ContentType, ok bool) {
	i := slices.IndexFunc(tables().content, func(t ContentType) bool {
		return t.Name == name && !t.OfToolCall
	})
	if i < 0 {
		return ContentType{}, false
	}
	return tables().content[i], true
}
