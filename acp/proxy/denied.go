package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/hostproxy"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// maxDenials limits the denied paths that the user is told about in a session.
const maxDenials = 5

// noteDenial remembers an explanation for the user if the sandbox made a tool call fail, once for
// each path.
func (s *session) noteDenial(c *child, u backend.Update) {
	if u.Kind != sessionstore.ToolCallUpdate && u.Kind != sessionstore.ToolCall {
		return
	}
	// only with roots it is restricted to those of a session
	if c.place.roots == "" || !sandbox.Refused(string(u.Raw)) {
		return
	}
	var lines []string
	var call any
	if json.Unmarshal(u.Raw, &call) == nil {
		collectText(call, &lines)
	}
	explanation, path := process.ExplainDenial(c.sandbox, strings.Join(lines, "\n"), "the agent",
		c.settings)
	s.mu.Lock()
	defer s.mu.Unlock()
	if explanation != "" && len(s.denials) < maxDenials && !slices.Contains(s.denials, path) {
		s.denials = append(s.denials, path)
		s.untold = append(s.untold, explanation)
	}
}

// noteRefusal remembers a host to which the sandbox did not let the child connect.
func (c *child) noteRefusal(r hostproxy.Refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.refused) < maxDenials {
		c.refused = append(c.refused, r)
	}
}

// noteRefusals remembers explanations for the hosts that were refused to the child so far, once for
// each host.
func (s *session) noteRefusals(c *child) {
	c.mu.Lock()
	refused := slices.Clone(c.refused)
	c.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range refused {
		if len(s.denials) < maxDenials && !slices.Contains(s.denials, r.Target) {
			s.denials = append(s.denials, r.Target)
			s.untold = append(s.untold, process.ExplainRefusal(r, "the agent", c.settings))
		}
	}
}

// explainDenied adds to the error of a request what the sandbox has probably denied, if the error is
// about a permission. In mode strict a runtime that cannot read its own files fails in any way, so
// there it is added to the errors of every process that starts.
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
	explanation, _ := process.ExplainDenial(c.sandbox, message, "the agent", c.settings)
	if explanation == "" {
		explanation = "The agent runs in acp-agent's sandbox, which may have denied this: name what it " +
			"needs in sandboxWrite or sandboxRead of its entry in acp-agent's configuration file."
	}
	if refused != nil {
		told := *refused
		told.Message += ". " + explanation
		return &told
	}
	return fmt.Errorf("%w. %s", err, explanation)
}

// collectText appends the strings in a JSON value.
func collectText(value any, lines *[]string) {
	switch v := value.(type) {
	case string:
		*lines = append(*lines, v)
	case []any:
		for _, e := range v {
			collectText(e, lines)
		}
	case map[string]any:
		for _, e := range v {
			collectText(e, lines)
		}
	}
}

// tellDenials tells the user what noteDenial remembers.
func (s *session) tellDenials(ctx context.Context, to backend.Updates) {
	s.mu.Lock()
	untold := s.untold
	s.untold = nil
	s.mu.Unlock()
	for _, explanation := range untold {
		warning := backend.Warning(backend.Text("\n\n" + explanation + "\n\n"))
		if err := to.Update(ctx, warning); err != nil {
			s.proxy.log.Debug("the explanation of a denied path was not sent", "error", err)
		}
	}
}
