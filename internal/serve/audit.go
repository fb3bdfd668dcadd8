package serve

import (
	"log/slog"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// maxAudited is the length of the longest title or error in the audit log, in bytes.
const maxAudited = 500

// audit writes what a user has done to the audit log: opened folders or tried to, sent prompts,
// answered permission requests, changed sessions, sent the agent something that the operator does
// not allow.
func audit(log *slog.Logger, e acp.Event) {
	switch e := e.(type) {
	case acp.OpenEvent:
		log.Info("opened a session", "session", e.Session, "folders", e.Roots)
	case acp.AnswerEvent:
		what := "answered a permission request"
		if e.Late {
			what = "answered a permission request too late, without effect"
		}
		said := []any{"session", e.Session, "title", text.Truncate(e.Title, maxAudited),
			"answer", answerName(e.Choice)}
		if !e.Late && e.Rule == "" {
			said = append(said, "seconds", e.Duration.Seconds())
		}
		if e.Rule != "" {
			said = append(said, "rule", text.Truncate(e.Rule, maxAudited))
		}
		log.Info(what, said...)
	case acp.RefusedEvent:
		log.Info("refused a message to the agent", "method", text.Truncate(e.Method, maxAudited),
			"session", text.Truncate(string(e.Session), maxAudited))
	case acp.RequestEvent:
		auditRequest(log, e)
	}
}

func auditRequest(log *slog.Logger, e acp.RequestEvent) {
	switch e.Method {
	case protocol.SessionNew, protocol.SessionLoad, protocol.SessionResume, protocol.SessionFork:
		if e.Err != nil {
			log.Info("could not open a session", "method", e.Method, "session", e.Session,
				"error", text.Truncate(e.Err.Error(), maxAudited))
		}
	case protocol.SessionPrompt:
		result := "ok"
		if e.Err != nil {
			result = text.Truncate(e.Err.Error(), maxAudited)
		}
		log.Info("sent a prompt", "session", e.Session, "seconds", e.Duration.Seconds(),
			"result", result)
	default:
		if e.Did != "" {
			log.Info(e.Did, "session", e.Session)
		}
	}
}
