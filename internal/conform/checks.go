package conform

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// checks are those of checks.json that say nothing to send, by id. Each returns nil if the agent
// passes.
var checks = map[string]func(*trial) error{
	"W10.version-0": func(t *trial) error { return t.version(0) },
	"W10.version-1": func(t *trial) error {
		t.lines = t.Lines()[:2]
		if version := t.intro.ProtocolVersion; string(version) != "1" {
			return fmt.Errorf("it answered with version %s", version)
		}
		return nil
	},
	"W10.version-99": func(t *trial) error { return t.version(99) },
	"A1.info": func(t *trial) error {
		if i := t.intro.AgentInfo; i.Name == "" || i.Version == "" {
			return errors.New("agentInfo has no name or no version")
		}
		return nil
	},
	"W5.first-update": func(t *trial) error {
		if t.early {
			return errors.New("an update of a session came before the answer that names it")
		}
		return nil
	},
	"A16.cwd-absolute":  (*trial).listsAbsolute,
	"A18.pages":         (*trial).listsOnce,
	"W6.cancel":         (*trial).cancels,
	"A27.replay":        func(t *trial) error { return t.replays(true) },
	"A27.resume-silent": func(t *trial) error { return t.replays(false) },
	"W9.end":            (*trial).ends,
}

// version asks for a version that the agent does not have.
func (t *trial) version(version int) error {
	var i introduction
	if err := t.result(protocol.Initialize, t.introduce(version), &i); err != nil {
		return err
	}
	if i.ProtocolVersion == nil {
		return errors.New("it answered with no version")
	}
	if version != 0 && string(i.ProtocolVersion) == fmt.Sprint(version) {
		return fmt.Errorf("it answered with version %d", version)
	}
	return nil
}

// listsAbsolute looks only at sessions that the checks have made.
func (t *trial) listsAbsolute() error {
	all, err := t.list(map[string]any{})
	if err != nil {
		return err
	}
	err = errUnlisted
	for _, l := range all {
		if t.made[l.SessionID] && !filepath.IsAbs(l.Cwd) {
			return fmt.Errorf("it shows the working directory %q", l.Cwd)
		} else if t.made[l.SessionID] {
			err = nil
		}
	}
	return err
}

func (t *trial) listsOnce() error {
	found, err := t.list(map[string]any{"cwd": t.folders["A"]})
	ids := make(map[string]bool)
	for _, l := range found {
		if ids[l.SessionID] {
			return errors.New("it shows a session twice")
		}
		ids[l.SessionID] = true
	}
	return err
}

// cancels sends a prompt and the cancel of its turn in one write.
func (t *trial) cancels() error {
	var made struct{ SessionID string }
	if err := t.result(protocol.SessionNew, t.setup(), &made); err != nil {
		return notTried("%v", err)
	}
	id := t.NextID()
	m, err := t.exchange(t.ctx, protocol.SessionPrompt, responseTo(id),
		rawrpc.Request(id, protocol.SessionPrompt, prompt(made.SessionID, "Count to a thousand.")),
		rawrpc.Notification(protocol.SessionCancel, map[string]any{"sessionId": made.SessionID}))
	if err != nil {
		return err
	}
	var end struct{ StopReason string }
	if err := m.Decode(&end); err != nil {
		return fmt.Errorf("it was answered with %s", outcome(m))
	}
	if end.StopReason != "cancelled" {
		return notTried("the turn ended before it was cancelled: %s", end.StopReason)
	}
	return nil
}

// replays looks for a message of the agent before it answered the request of the earlier check,
// which was the first one to open the session.
func (t *trial) replays(want bool) error {
	shown := slices.ContainsFunc(t.results[t.row.After].before, func(m rawrpc.Message) bool {
		return strings.Contains(string(m.Params), `"agent_message_chunk"`)
	})
	switch {
	case shown == want:
		return nil
	case want:
		return errors.New("no message came before the response")
	}
	return errors.New("a message came before the response")
}

// ends closes the input of the agent.
func (t *trial) ends() error {
	const patience = 5 * time.Second
	_ = t.child.Stdin().Close() // it may have ended
	late := fmt.Errorf("it goes on after %v", patience)
	ctx, cancel := context.WithTimeoutCause(t.ctx, patience, late)
	defer cancel()
	err := t.child.Wait(ctx)
	t.ended = true
	if exit, ok := errors.AsType[*process.ExitError](err); ok {
		return fmt.Errorf("it ended with %s", exit.State)
	}
	return err
}
