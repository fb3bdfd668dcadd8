package acp

import "github.com/acp-agent/acp-agent/internal/protocol"

// unstable lists what the adapter serves of drafts of ACP, for every backend. The names may change
// until a draft is stable.
var unstable = []struct {
	draft      string
	capability string // a member of sessionCapabilities
	methods    []string
	members    []string // of the params of session/list
}{
	{draft: "https://agentclientprotocol.com/rfds/session-fork", capability: "fork",
		methods: []string{protocol.SessionFork}},
	{draft: "https://agentclientprotocol.com/rfds/session-set-title", capability: "title",
		methods: []string{protocol.SessionSetTitle}},
	{draft: "https://agentclientprotocol.com/rfds/session-archive", capability: "archive",
		methods: []string{protocol.SessionArchive, protocol.SessionUnarchive},
		members: []string{protocol.Archived}},
	{draft: "https://agentclientprotocol.com/rfds/session-status", capability: "status",
		methods: []string{protocol.SessionStatus}},
	{draft: "https://agentclientprotocol.com/rfds/additional-directories",
		members: []string{"additionalDirectories"}},
}
