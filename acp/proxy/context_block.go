package proxy

import (
	"bytes"
	"encoding/json"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// What a child is told in words goes to its system prompt if it takes text for that when a session
// is created. Otherwise, and when it changes later, it is a block of text between these marks,
// after the content of a prompt. Such a block is for the child alone and is removed where it comes
// back, in a replay or a title.
const (
	contextTag   = "acp-agent-context"
	contextBegin = "<" + contextTag + ">"
	contextEnd   = "</" + contextTag + ">"
)

// contextBlock returns the parts that are not empty as a marked block, or "". End marks in them are
// escaped.
func contextBlock(parts ...string) string {
	var kept []string
	for _, part := range parts {
		if part != "" {
			kept = append(kept, strings.ReplaceAll(part, "</"+contextTag, `<\/`+contextTag))
		}
	}
	if len(kept) == 0 {
		return ""
	}
	return contextBegin + "\n" + strings.Join(kept, "\n") + contextEnd
}

// appendText returns the params of a prompt with a text block after its own content, which may
// begin with a command of the child. A prompt that is not an array is left for the child to reject.
func appendText(params backend.Raw, text string) (backend.Raw, error) {
	if text == "" {
		return params, nil
	}
	prompt, _, err := strictjson.Take(params, "prompt")
	if err != nil {
		return nil, err
	}
	longer, ok := strictjson.Append(prompt, backend.Encode(sdk.TextBlock("\n\n"+text))) // some agents join the texts of blocks
	if !ok || len(prompt) == 0 {
		return params, nil
	}
	return strictjson.Put(params, "prompt", longer)
}

// countBlocks returns the number of content blocks of a prompt.
func countBlocks(params backend.Raw) int {
	var p struct{ Prompt []json.RawMessage }
	_ = json.Unmarshal(params, &p)
	return len(p.Prompt)
}

// withoutContext removes marked blocks from an update. It returns false if nothing else was in it.
func withoutContext(u backend.Update) (backend.Update, bool) {
	if u.Kind != sessionstore.SessionInfoUpdate && !bytes.Contains(u.Raw, []byte(contextTag)) {
		return u, true
	}
	inner, _, err := strictjson.Take(u.Raw, "update")
	if err != nil || inner == nil {
		return u, true
	}
	switch u.Kind {
	case sessionstore.UserMessageChunk:
		content, _, err := strictjson.Take(inner, "content")
		if err != nil {
			return u, true
		}
		content, left, changed := editMember(content, "text", withoutBlocks)
		if !changed {
			return u, true
		}
		u.Raw = replaced(u.Raw, "update", replaced(inner, "content", content))
		return u, left != ""
	case sessionstore.SessionInfoUpdate:
		inner, left, changed := editMember(inner, "title", withoutBlocksInTitle)
		if !changed {
			return u, true
		}
		u.Raw = replaced(u.Raw, "update", inner)
		return u, left != ""
	}
	return u, true
}

// editMember applies edit to a string member of object. It returns the new object and string, and
// whether they differ from before.
func editMember(object backend.Raw, member string, edit func(string) string) (edited backend.Raw, value string, changed bool) {
	raw, _, err := strictjson.Take(object, member)
	var before string
	if err != nil || raw == nil || json.Unmarshal(raw, &before) != nil {
		return object, "", false
	}
	if value = edit(before); value == before {
		return object, "", false
	}
	return replaced(object, member, backend.Encode(value)), value, true
}

// withoutBlocks removes marked blocks from s. A mark without its counterpart stays, because it was
// written by somebody else.
func withoutBlocks(s string) string {
	var left strings.Builder
	for rest := s; ; {
		before, behind, begun := strings.Cut(rest, contextBegin)
		_, after, ended := strings.Cut(behind, contextEnd)
		switch {
		case begun && ended:
			left.WriteString(before)
			rest = strings.TrimPrefix(after, "\n")
			continue
		case len(rest) == len(s):
			return s
		}
		left.WriteString(rest)
		return strings.TrimSpace(left.String())
	}
}

// withoutBlocksInTitle removes marked blocks from a title. A title is the beginning of a prompt, so
// the last block, or its mark, may have been cut off.
func withoutBlocksInTitle(title string) string {
	const recognizable = len("<acp-agent")
	title = withoutBlocks(title)
	before, _, begun := strings.Cut(title, contextBegin)
	if !begun {
		at := max(0, strings.LastIndexByte(title, contextBegin[0]))
		mark := strings.TrimRight(title[at:], ". …")
		if len(mark) < recognizable || !strings.HasPrefix(contextBegin, mark) {
			return title
		}
		before = title[:at]
	}
	return strings.TrimSpace(before)
}
