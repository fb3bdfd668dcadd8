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
	s, archiver, err := a.archiver(ctx, at.Queue.ID)
	if err != nil {
		return nil, err
	}
	if _, err := a.end(ctx, closing, at, nil); err != nil {
		return nil, err
	}
	if err := archiver.Archive(ctx, s.ID); err != nil {
		return nil, err
	}
	return a.pass(ctx, protocol.SessionArchive, s, params), nil
}

// unarchive serves session/unarchive.
func (a *agent) unarchive(
	ctx, _ context.Context, at *ticket, params params,
) (json.RawMessage, error) {
	s, archiver, err := a.archiver(ctx, at.Queue.ID)
	if err != nil {
		return nil, err
	}
	if err := archiver.Unarchive(ctx, s.ID); err != nil {
		return nil, err
	}
	return a.pass(ctx, protocol.SessionUnarchive, s, params), nil
}

// archiver returns a stored session and what archives it.
func (a *agent) archiver(
	ctx context.Context, id sessionstore.ID,
) (s sessionstore.Session, archiver sessionstore.Archiver, err error) {
	if s, err = a.stored(ctx, id); err == nil {
		archiver, err = sessionstore.As[sessionstore.Archiver](a.options.Store)
	}
	return s, archiver, err
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
