package conform

import (
	"context"
	"encoding/json"
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
	"A9.new":           func(t *trial) error { return t.begins("plain") },
	"A9.two":           func(t *trial) error { return t.begins("two") },
	"A9.unique":        (*trial).uniqueIDs,
	"W5.first-update":  (*trial).firstUpdate,
	"A16.cwd-absolute": (*trial).listsAbsolute,
	"A18.pages":        (*trial).listsOnce,
	"A9.prompt":        (*trial).prompts,
	"W6.cancel":        (*trial).cancels,

	"A10.load":          func(t *trial) error { return t.opensStored(protocol.SessionLoad) },
	"A10.resume":        func(t *trial) error { return t.opensStored(protocol.SessionResume) },
	"A14.fork":          func(t *trial) error { return t.opensStored(protocol.SessionFork) },
	"A27.replay":        func(t *trial) error { return t.replays(protocol.SessionLoad, true) },
	"A27.resume-silent": func(t *trial) error { return t.replays(protocol.SessionResume, false) },

	"W9.end": (*trial).ends,

	"W1.lines":    (*trial).judge,
	"W1.answers":  (*trial).judge,
	"W1.schema":   (*trial).judge,
	"A37.members": (*trial).judge,
	"A26.client":  (*trial).judge,
}

// version asks its own process for a version that the agent does not have.
func (t *trial) version(version int) error {
	a, err := t.launch(t.ctx)
	if err != nil {
		return err
	}
	defer func() {
		a.stop()
		t.lines = a.Lines()
	}()
	answer, err := a.initialize(t.ctx, version, t.Version)
	if err := refusal(answer, err); err != nil {
		return err
	}
	var i introduction
	if json.Unmarshal(answer.Result, &i) != nil || i.ProtocolVersion == nil {
		return errors.New("it answered with no version")
	}
	if version != 0 && string(i.ProtocolVersion) == fmt.Sprint(version) {
		return fmt.Errorf("it answered with version %d", version)
	}
	return nil
}

// begins looks at how a session was made that the checks share.
func (t *trial) begins(name string) error {
	o, known := t.opened[name]
	if !known {
		return notTried("there is no such session")
	}
	t.lines = o.lines
	return o.err
}

func (t *trial) uniqueIDs() error {
	_, err := t.session("plain")
	ids := make(map[string]bool)
	for _, o := range t.opened {
		if ids[o.id] {
			return errors.New("two sessions have the same id")
		}
		ids[o.id] = o.id != ""
	}
	return err
}

func (t *trial) firstUpdate() error {
	for _, o := range t.opened {
		names := func(m rawrpc.Message) bool { return strings.Contains(string(m.Params), o.id) }
		if o.id != "" && slices.ContainsFunc(o.before, names) {
			return errors.New("an update of a session came before the answer that names it")
		}
	}
	return nil
}

// listed is a session in a list.
type listed struct {
	SessionID, Cwd        string
	AdditionalDirectories []string // nil without such a member
}

// list returns the sessions of a list, from at most 20 pages.
func (t *trial) list(filter map[string]any) (all []listed, err error) {
	for range 20 {
		var page struct {
			Sessions   []listed
			NextCursor *string
		}
		if err := t.result(protocol.SessionList, filter, &page); err != nil {
			return nil, err
		}
		if page.Sessions == nil {
			return nil, errors.New("the result has no list of sessions")
		}
		if all = append(all, page.Sessions...); page.NextCursor == nil {
			return all, nil
		}
		filter["cursor"] = *page.NextCursor
	}
	return all, nil
}

// listsAbsolute looks only at sessions that the checks have made.
func (t *trial) listsAbsolute() error {
	all, err := t.list(map[string]any{})
	if err != nil {
		return err
	}
	ours := slices.DeleteFunc(all, func(l listed) bool { return !t.made[l.SessionID] })
	for _, l := range ours {
		if !filepath.IsAbs(l.Cwd) {
			return fmt.Errorf("it shows the working directory %q", l.Cwd)
		}
	}
	if len(ours) == 0 {
		return errUnlisted
	}
	return nil
}

func (t *trial) listsOnce() error {
	found, err := t.list(map[string]any{"cwd": t.fill.Replace("$A")})
	ids := make(map[string]bool)
	for _, l := range found {
		if ids[l.SessionID] {
			return errors.New("it shows a session twice")
		}
		ids[l.SessionID] = true
	}
	return err
}

func (t *trial) prompts() error {
	if _, err := t.session("plain"); err != nil {
		return err
	}
	o := t.opened["plain"]
	t.lines = o.lines
	return o.turn
}

// cancels sends a prompt and the cancel of its turn in one write.
func (t *trial) cancels() error {
	var made struct{ SessionID string }
	if err := t.result(protocol.SessionNew, t.setup(nil), &made); err != nil {
		return notTried("%v", err)
	}
	id, from := t.NextID(), t.Count()
	err := t.write(
		rawrpc.Request(id, protocol.SessionPrompt, prompt(made.SessionID, "Count to a thousand.")),
		rawrpc.Notification(protocol.SessionCancel, map[string]any{"sessionId": made.SessionID}))
	if err != nil {
		return err
	}
	ctx, cancel := t.within(t.ctx, protocol.SessionPrompt)
	defer cancel()
	m, err := t.Response(ctx, from, id)
	if err := t.explain(err); err != nil {
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

// opensStored opens a session in another process. Many agents store none without a message.
func (t *trial) opensStored(method string) error {
	err := t.opens(method)
	if err != nil && !t.Prompt && t.usable() {
		return notTried("%v, which may be because it has no message: --prompt", err)
	}
	return err
}

// replays looks for a message of the agent before it answered the first request that opened the
// session, which has a prompt and an answer.
func (t *trial) replays(method string, want bool) error {
	if err := t.opensStored(method); err != nil {
		return notTried("%v", err)
	}
	shown := slices.ContainsFunc(t.loaded[method].before, func(m rawrpc.Message) bool {
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
	t.hung = true
	if exit, ok := errors.AsType[*process.ExitError](err); ok {
		return fmt.Errorf("it ended with %s", exit.State)
	}
	return err
}
