package proxy

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// topic is a subject that a child is told about in its system prompt or in a prompt.
type topic struct {
	// write returns the current text, "" if there is nothing to say.
	write func(s *session, mode profiles.RootsMode) string
	// sent returns the field of a state with the digest of the text that was last sent, "" for
	// none.
	sent func(saved *state) *string
	// changed introduces a text that replaces an earlier one. gone is said if there is no longer a
	// text.
	changed, gone string
}

// topics returns all topics, in the order in which a child is told about them.
func topics() []topic {
	return []topic{
		{
			write: (*session).rootsText,
			sent:  func(saved *state) *string { return &saved.SentRoots },
			gone:  "What you were told about the folders of this session no longer applies.\n",
		},
		{
			write: (*session).instructionsText,
			sent:  func(saved *state) *string { return &saved.SentInstructions },
			changed: "These instructions replace those that you were given before in this " +
				"session.\n",
			gone: "The instructions from files that you were given before in this session no " +
				"longer apply.\n",
		},
		{
			write: (*session).skillsText,
			sent:  func(saved *state) *string { return &saved.SentSkills },
			changed: "This list of skills replaces the one that you were given before in this " +
				"session.\n",
			gone: "The skills that were listed before in this session are no longer available.\n",
		},
	}
}

// contextPart is the text about one topic in the context for a child, and its digest. Both are ""
// if there is nothing to say.
type contextPart struct {
	topic
	text, digest string
}

// contextParts returns the parts about all topics.
func (s *session) contextParts(mode profiles.RootsMode) (parts []contextPart) {
	for _, t := range topics() {
		part := contextPart{topic: t, text: t.write(s, mode)}
		if part.text != "" {
			part.digest = digest(part.text)
		}
		parts = append(parts, part)
	}
	return parts
}

// systemText returns the text to tell a child before the conversation, "" for none.
func systemText(parts []contextPart) string {
	texts := slices.DeleteFunc(partTexts(parts), func(text string) bool { return text == "" })
	if len(texts) == 0 {
		return ""
	}
	return systemIntro + strings.Join(texts, "\n")
}

// promptContext is the context that is sent to a child with a prompt.
type promptContext struct {
	parts   []contextPart
	history string
	note    string // for the user, about the command that the prompt calls
}

// text returns the marked block, or "" if it would be empty.
func (pc promptContext) text() string {
	return contextBlock(append(partTexts(pc.parts), pc.history)...)
}

func partTexts(parts []contextPart) []string {
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = part.text
	}
	return texts
}

// nextContext returns the context for the next prompt in cs: everything that has changed since the
// child was last told. The caller must then call contextDelivered or contextLost.
func (s *session) nextContext(cs *childSession) promptContext {
	s.nested() // reads directories, which may take too long for the lock
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.telling == cs {
		return promptContext{}
	}
	pc := promptContext{history: s.pendingHistory}
	told := s.relays.toldParts()
	for i, part := range s.contextParts(s.state.RootsMode) {
		known := *part.sent(&s.state)
		if known == "" && told != nil { // what a prompt said is newer
			known = told[i].digest
		}
		switch {
		case part.digest == known:
			continue
		case part.text == "":
			part.text = part.gone
		case known != "":
			part.text = part.changed + part.text
		}
		pc.parts = append(pc.parts, part)
	}
	if pc.text() != "" {
		s.telling = cs
	}
	return pc
}

// contextLost records that the child has not answered a prompt with pc.
func (s *session) contextLost(cs *childSession, pc promptContext) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pc.text() != "" && s.telling == cs {
		s.telling = nil
	}
}

// contextDelivered records that the child has answered a prompt with pc in cs.
func (s *session) contextDelivered(ctx context.Context, cs *childSession, pc promptContext) {
	if pc.text() == "" {
		return
	}
	s.mu.Lock()
	if s.telling == cs {
		s.telling = nil
	}
	if s.current != cs { // the session was opened again in between
		s.mu.Unlock()
		return
	}
	for _, part := range pc.parts {
		*part.sent(&s.state) = part.digest
	}
	if pc.history != "" {
		s.pendingHistory, s.state.HistoryDue = "", false
	}
	saved := s.state
	s.mu.Unlock()
	if err := s.host.SaveState(ctx, saved.encode()); err != nil {
		s.proxy.log.Warn("cannot store which context the agent has: it will be sent again",
			"error", err)
	}
}

// systemIntro begins the text for a child's system prompt.
const systemIntro = "acp-agent, which connects you with the user's editor, adds the following. " +
	"What " + contextBegin + " blocks in the conversation say is newer.\n\n"

// systemParts returns the parts to add to a child's system prompt when the session is opened. It
// returns nil if the child takes none, or if the client uses an extension that excludes the
// standard way. Only a new session uses them: Claude Code keeps the system prompt with which a
// session began, so changes are also sent in a prompt.
func (s *session) systemParts(c *child, mode profiles.RootsMode) []contextPart {
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(s.params, &p)
	if !c.info.SystemPrompt || p.Meta[protocol.SystemPrompt] != nil {
		return nil
	}
	return s.contextParts(mode)
}

// withSystemPrompt returns the params of a lifecycle request with parts added to the system prompt,
// after the client's text. A malformed text is left for the child to reject.
func withSystemPrompt(params backend.Raw, parts []contextPart) backend.Raw {
	prompt := strictjson.Find(params, protocol.SystemPrompt)
	if prompt == nil || string(prompt) == "null" {
		prompt = backend.Raw(`{"mode":"append"}`)
	}
	text := systemText(parts)
	content, ok := strictjson.Append(strictjson.Find(prompt, "content"),
		backend.Encode(sdk.TextBlock(text)))
	if text == "" || !ok || !strictjson.IsObject(prompt) {
		return params
	}
	return strictjson.Set(params, protocol.SystemPrompt, strictjson.Set(prompt, "content", content))
}
