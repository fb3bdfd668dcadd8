package main

import (
	"log/slog"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/protocol"
	"github.com/acp-agent/acp-agent/internal/text"
)

// maxAuditedTitle is the length of the longest title of a tool call in the audit log, in bytes.
const maxAuditedTitle = 500

// audit writes what a user has done to the audit log: opened folders, answered permission requests,
// asked to delete sessions.
func audit(log *slog.Logger, e acp.Event) {
	switch e := e.(type) {
	case acp.OpenEvent:
		log.Info("opened a session", "session", e.Session, "folders", e.Roots)
	case acp.AnswerEvent:
		log.Info("answered a permission request", "session", e.Session,
			"title", text.Truncate(e.Title, maxAuditedTitle), "answer", answerName(e.Choice))
	case acp.RequestEvent:
		// Deleting what is not there, or is not the user's, succeeds too.
		if e.Method == protocol.SessionDelete && e.Err == nil {
			log.Info("asked to delete a session", "session", e.Session)
		}
	}
}
