package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/sandbox/confine"
	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// maxDenials limits the paths and hosts that are explained in a session.
const maxDenials = 100

// hints are what the user of a session is told of the sandbox, each path and host once. They live
// as long as the activation.
type hints struct {
	mu             sync.Mutex // held while they are told
	denied, untold []string
}

// add remembers an explanation of a denied path or host.
func (h *hints) add(name, explanation string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if explanation != "" && len(h.denied) < maxDenials && !slices.Contains(h.denied, name) {
		h.denied, h.untold = append(h.denied, name), append(h.untold, explanation)
	}
}

// noteDenial remembers an explanation for the user if the sandbox made a tool call fail.
func (h *hints) noteDenial(c *child, u backend.Update) {
	isCall := u.Kind == sessionstore.ToolCall || u.Kind == sessionstore.ToolCallUpdate
	// only with roots it is restricted to those of a session
	if !isCall || c.place.roots == nil || !sandbox.Refused(string(u.Raw)) {
		return
	}
	var lines []string
	var call any
	_ = json.Unmarshal(u.Raw, &call) // it was read before
	strictjson.Walk("", call, func(_ string, value any) {
		if line, ok := value.(string); ok {
			lines = append(lines, line)
		}
	})
	explanation, path := confine.ExplainDenial(c.sandbox, strings.Join(lines, "\n"), "the agent",
		c.settings)
	h.add(path, explanation)
}

// tell tells the user in the turn of a prompt what the sandbox has denied c so far. What was not
// sent is told in the next turn.
func (h *hints) tell(p *prompt, c *child) {
	c.mu.Lock()
	refused := slices.Clone(c.refused)
	c.mu.Unlock()
	for _, r := range refused {
		h.add(r.Target, confine.ExplainRefusal(r, "the agent", c.settings))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.untold) > 0 {
		warning := backend.Warning(backend.Text("\n\n" + h.untold[0] + "\n\n"))
		if err := p.updates.Update(p.ctx, warning); err != nil {
			c.log.Debug("an explanation of the sandbox was not sent", "error", err)
			return
		}
		h.untold = h.untold[1:]
	}
}

// noteRefusal remembers a host to which the sandbox does not let the child connect. In running
// turns the user is told at once: an agent may try to reach its model for minutes.
func (c *child) noteRefusal(r hosts.Refusal) {
	c.mu.Lock()
	c.refused = append(c.refused, r)
	c.mu.Unlock()
	for _, u := range c.uses.list() {
		if cs := u.bridge.running(); cs != nil {
			if _, p := cs.latest(); p != nil {
				go u.bridge.hints.tell(p, c)
			}
		}
	}
}

// explainDenied adds to the error of a request what the sandbox has probably denied, if the error
// is about a permission. In mode strict a runtime that cannot read its own files fails in any way,
// so there it is added to the errors of every process that starts.
func (c *child) explainDenied(err error) error {
	if err == nil || c.sandbox.Mode == backend.SandboxOff {
		return err
	}
	message := err.Error()
	refused := responseError(err)
	ended, hasEnded := errors.AsType[*endedError](err)
	starts := refused == nil && (c.info.Version == 0 || hasEnded && !ended.InSession)
	switch {
	case refused != nil:
		message += "\n" + string(refused.Data)
	case hasEnded:
		message += "\n" + strings.Join(ended.Stderr, "\n")
	}
	if !sandbox.Refused(message) && !(starts && c.sandbox.Mode == backend.SandboxStrict) {
		return err
	}
	explanation := confine.ExplainFailure(c.sandbox, message, "the agent", c.settings)
	if refused != nil {
		told := *refused
		told.Message += ". " + explanation
		return &told
	}
	return fmt.Errorf("%w. %s", err, explanation)
}
