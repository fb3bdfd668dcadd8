package proxy

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// withoutContext takes out of an update what we told the child in words. It reports whether anything is left.
func withoutContext(u backend.Update) (backend.Update, bool) {
	if !bytes.Contains(u, []byte(contextTag)) {
		return u, true
	}
	inner, _, err := strictjson.Take(u, "update")
	if err != nil || inner == nil {
		return u, true
	}
	switch kindOf(u) {
	case "user_message_chunk":
		content, _, err := strictjson.Take(inner, "content")
		if err != nil {
			return u, true
		}
		content, rest, changed := unmarked(content, "text", withoutBlocks)
		if !changed {
			return u, true
		}
		return replaced(u, "update", replaced(inner, "content", content)), rest != ""
	case "session_info_update":
		title, rest, changed := unmarked(inner, "title", withoutBlocksOrStart)
		if !changed {
			return u, true
		}
		return replaced(u, "update", title), rest != ""
	}
	return u, true
}

// unmarked takes our blocks out of an object's member, by without. rest is what is left of it.
func unmarked(object backend.Raw, member string, without func(string) string) (left backend.Raw, rest string, changed bool) {
	value, _, err := strictjson.Take(object, member)
	var told string
	if err != nil || value == nil || json.Unmarshal(value, &told) != nil {
		return object, "", false
	}
	if rest = without(told); rest == told {
		return object, "", false
	}
	text, err := json.Marshal(rest)
	if err != nil {
		return object, "", false
	}
	return replaced(object, member, text), rest, true
}

// withoutBlocks is a text without our blocks. A mark whose other is missing is somebody's own words.
func withoutBlocks(text string) string {
	var left strings.Builder
	for rest := text; ; {
		before, behind, begun := strings.Cut(rest, contextBegin)
		_, after, ended := strings.Cut(behind, contextEnd)
		switch {
		case begun && ended:
			left.WriteString(before)
			rest = strings.TrimPrefix(after, "\n")
			continue
		case len(rest) == len(text):
			return text // there is none
		}
		left.WriteString(rest)
		return strings.TrimSpace(left.String())
	}
}

// withoutBlocksOrStart is a text without our blocks, where one whose end was cut off goes to the end of the text: a
// title is the beginning of a prompt.
func withoutBlocksOrStart(text string) string {
	text = withoutBlocks(text)
	before, _, begun := strings.Cut(text, contextBegin)
	if !begun {
		return text
	}
	return strings.TrimSpace(before)
}
