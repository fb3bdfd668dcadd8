package proxy

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/acp-agent/acp-agent/acp/runtime"
	"github.com/acp-agent/acp-agent/acp/strict"
)

// withoutContext takes out of an update what we told the child in words. It reports whether anything is left.
func withoutContext(u runtime.Update) (runtime.Update, bool) {
	if !bytes.Contains(u, []byte(contextTag)) {
		return u, true
	}
	inner, _, err := strict.Take(u, "update")
	if err != nil || inner == nil {
		return u, true
	}
	switch kindOf(u) {
	case "user_message_chunk":
		content, _, err := strict.Take(inner, "content")
		if err != nil {
			return u, true
		}
		content, rest, changed := unmarked(content, "text")
		if !changed {
			return u, true
		}
		return replaced(u, "update", replaced(inner, "content", content)), rest != ""
	case "session_info_update":
		title, rest, changed := unmarked(inner, "title")
		if !changed {
			return u, true
		}
		return replaced(u, "update", title), rest != ""
	}
	return u, true
}

// unmarked takes our blocks out of an object's member. rest is what is left of it.
func unmarked(object runtime.Raw, member string) (without runtime.Raw, rest string, changed bool) {
	value, _, err := strict.Take(object, member)
	if err != nil || value == nil || json.Unmarshal(value, &rest) != nil || !strings.Contains(rest, contextBegin) {
		return object, "", false
	}
	rest = withoutBlocks(rest)
	text, err := json.Marshal(rest)
	if err != nil {
		return object, "", false
	}
	return replaced(object, member, text), rest, true
}

// withoutBlocks is a text without our blocks. One whose end was cut off goes to the end of the text.
func withoutBlocks(text string) string {
	for {
		before, behind, found := strings.Cut(text, contextBegin)
		if !found {
			return text
		}
		_, after, _ := strings.Cut(behind, contextEnd)
		text = strings.TrimSpace(before + strings.TrimPrefix(after, "\n"))
	}
}
