package acp

import "github.com/acp-agent/acp-agent/internal/protocol"

// unstable lists the requests of drafts of ACP that the adapter serves for every backend, with the
// member of sessionCapabilities that advertises them. They may change until the draft is stable.
var unstable = []struct {
	capability string
	methods    []string
}{
	// https://agentclientprotocol.com/rfds/session-fork
	{"fork", []string{protocol.SessionFork}},
	// https://agentclientprotocol.com/rfds/session-set-title
	{"title", []string{protocol.SessionSetTitle}},
	// https://agentclientprotocol.com/rfds/session-archive
	{"archive", []string{protocol.SessionArchive, protocol.SessionUnarchive}},
	// https://agentclientprotocol.com/rfds/session-status
	{"status", []string{protocol.SessionStatus}},
}
