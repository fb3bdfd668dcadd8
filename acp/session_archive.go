package acp

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/internal/protocol"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// archive serves session/archive. It closes the session and marks it as archived, so that lists
// leave it out unless they ask for archived sessions.
func (a *agent) archive(
	ctx, closing context.Context, at *ticket, params params,
) (json.RawMessage, error) {
	s, err := a.stored(ctx, at.Queue.ID)
	if err != nil {
		return nil, err
	}
	archiver, err := sessionstore.As[sessionstore.Archiver](a.options.Store)
	if err != nil {
		return nil, err
	}
	if _, err := a.end(ctx, closing, at, nil); err != nil {
		return nil, err
	}
	if err := archiver.Archive(ctx, s.ID); err != nil {
		return nil, err
	}
	return a.passStored(ctx, protocol.SessionArchive, s, params), nil
}

// unarchive serves session/unarchive.
func (a *agent) unarchive(
	ctx, _ context.Context, at *ticket, params params,
) (json.RawMessage, error) {
	s, err := a.stored(ctx, at.Queue.ID)
	if err != nil {
		return nil, err
	}
	archiver, err := sessionstore.As[sessionstore.Archiver](a.options.Store)
	if err != nil {
		return nil, err
	}
	if err := archiver.Unarchive(ctx, s.ID); err != nil {
		return nil, err
	}
	return a.passStored(ctx, protocol.SessionUnarchive, s, params), nil
}

// withArchive returns the capabilities that the client is told, without that to archive sessions if
// the store cannot.
func (a *agent) withArchive(capabilities json.RawMessage) json.RawMessage {
	if _, err := sessionstore.As[sessionstore.Archiver](a.options.Store); err == nil {
		return capabilities
	}
	_, sessions, err := strictjson.Take(members(capabilities)[sessionCapabilities], "archive")
	if err != nil {
		return capabilities
	}
	return strictjson.Set(capabilities, sessionCapabilities, sessions)
}

// passStored passes a request about a stored session on to an agent that serves it, and returns the
// result of the response, nil if there is none. The store is authoritative, so a failure of the
// agent is only logged.
func (a *agent) passStored(
	ctx context.Context, method string, s sessionstore.Session, params params,
) json.RawMessage {
	f := a.foreign()
	if f == nil || s.StateKey == "" {
		return nil
	}
	result, err := f.CallStored(ctx, method, s.State, params.Without(protocol.SessionID))
	if err != nil {
		a.log.Warn("the agent rejected a request about a stored session", "method", method,
			"session", s.ID, "error", err)
		return nil
	}
	if !strictjson.IsObject(result) {
		return nil
	}
	return result
}
