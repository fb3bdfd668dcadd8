package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// maxDenials limits the paths and hosts that are explained in a session.
const maxDenials = 100

// hints are what the user is told of the sandbox, each path and host once.
type hints struct{ denied, untold []string }

// hint remembers an explanation of a denied path or host.
func (s *session) hint(name, explanation string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &s.hints
	if explanation != "" && len(h.denied) < maxDenials && !slices.Contains(h.denied, name) {
		h.denied, h.untold = append(h.denied, name), append(h.untold, explanation)
	}
}

// noteDenial remembers an explanation for the user if the sandbox made a tool call fail.
func (s *session) noteDenial(c *child, u backend.Update) {
	if u.Kind != sessionstore.ToolCallUpdate && u.Kind != sessionstore.ToolCall {
		return
	}
	// only with roots it is restricted to those of a session
	if c.place.roots == nil || !sandbox.Refused(string(u.Raw)) {
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
	explanation, path := process.ExplainDenial(c.sandbox, strings.Join(lines, "\n"), "the agent",
		c.settings)
	s.hint(path, explanation)
}

// refusals are the hosts that a child's sandbox did not allow, of which its proxy reports the first
// ones once each.
type refusals struct {
	mu   sync.Mutex
	all  []hosts.Refusal
	more chan struct{} // closed when there is another one
}

func (r *refusals) add(refused hosts.Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, refused)
	if r.more != nil {
		close(r.more)
		r.more = nil
	}
}

// get returns all of r, and a channel that is closed when there is another one.
func (r *refusals) get() ([]hosts.Refusal, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.more == nil {
		r.more = make(chan struct{})
	}
	return slices.Clone(r.all), r.more
}

// tellRefusals tells the user which hosts the sandbox refuses to the child during a turn, at once:
// an agent may try to reach its model for minutes. It does so until stop is called.
func (s *session) tellRefusals(p *prompt, c *child) (stop func()) {
	if !c.sandbox.Hosts.Limited {
		return func() {}
	}
	ended := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		for last := false; ; {
			refused, more := c.refused.get()
			for _, r := range refused {
				s.hint(r.Target, process.ExplainRefusal(r, "the agent", c.settings))
			}
			s.tellDenials(p.ctx, p.updates)
			if last {
				return
			}
			select {
			case <-more:
			case <-ended:
				last = true
			}
		}
	})
	return func() {
		close(ended)
		telling.Wait()
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
	explanation := process.ExplainFailure(c.sandbox, message, "the agent", c.settings)
	if refused != nil {
		told := *refused
		told.Message += ". " + explanation
		return &told
	}
	return fmt.Errorf("%w. %s", err, explanation)
}

// tellDenials tells the user the hints so far.
func (s *session) tellDenials(ctx context.Context, to backend.Updates) {
	s.mu.Lock()
	untold := s.hints.untold
	s.hints.untold = nil
	s.mu.Unlock()
	for _, explanation := range untold {
		warning := backend.Warning(backend.Text("\n\n" + explanation + "\n\n"))
		if err := to.Update(ctx, warning); err != nil {
			s.proxy.log.Debug("the explanation of a denied path was not sent", "error", err)
		}
	}
}
