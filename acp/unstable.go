package acp

// Methods and members that are in drafts of ACP, but not in its stable schema.
const (
	methodFork      = "session/fork"
	methodSetTitle  = "session/set_title"
	methodArchive   = "session/archive"
	methodUnarchive = "session/unarchive"
	methodStatus    = "session/status"

	memberArchived = "archived" // of the params of session/list and of SessionInfo
)

// unstable lists what the adapter serves of drafts of ACP, for every backend. The names may change
// until a draft is stable, so there are no others in this module.
var unstable = []struct {
	draft      string
	capability string // a member of sessionCapabilities
	methods    []string
	members    []string // of the params of session/list
}{
	{draft: "https://agentclientprotocol.com/rfds/session-fork", capability: "fork", methods: []string{methodFork}},
	{draft: "https://agentclientprotocol.com/rfds/session-set-title", capability: "title", methods: []string{methodSetTitle}},
	{draft: "https://agentclientprotocol.com/rfds/session-archive", capability: "archive",
		methods: []string{methodArchive, methodUnarchive}, members: []string{memberArchived}},
	{draft: "https://agentclientprotocol.com/rfds/session-status", capability: "status", methods: []string{methodStatus}},
	{draft: "https://agentclientprotocol.com/rfds/additional-directories", members: []string{"additionalDirectories"}},
}
