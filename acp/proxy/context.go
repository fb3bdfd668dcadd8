package proxy

import (
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
	write func(w *contextWriter, mode profiles.RootsMode) string
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
			write: (*contextWriter).rootsText,
			sent:  func(saved *state) *string { return &saved.SentRoots },
			gone:  "What you were told about the folders of this session no longer applies.\n",
		},
		{
			write: (*contextWriter).instructionsText,
			sent:  func(saved *state) *string { return &saved.SentInstructions },
			changed: "These instructions replace those that you were given before in this " +
				"session.\n",
			gone: "The instructions from files that you were given before in this session no " +
				"longer apply.\n",
		},
		{
			write: (*contextWriter).skillsText,
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

// systemText returns the text to tell a child before the conversation, "" for none.
func systemText(parts []contextPart) string {
	texts := slices.DeleteFunc(partTexts(parts), func(text string) bool { return text == "" })
	if len(texts) == 0 {
		return ""
	}
	return systemIntro + strings.Join(texts, "\n")
}

func partTexts(parts []contextPart) []string {
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = part.text
	}
	return texts
}

// systemIntro begins the text for a child's system prompt.
const systemIntro = "acp-agent, which connects you with the user's editor, adds the following. " +
	"What " + contextBegin + " blocks in the conversation say is newer.\n\n"

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
