package core

import (
	"slices"
	"strings"
	"unicode"

	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// importedTitle returns the title of a known session once n is imported: the present title, unless
// the agent gave the session a better one. A title that the agent took from the first prompt is not
// better, because it may contain text that the user did not type. Nor is a placeholder. first are
// the first updates of the session's history.
func importedTitle(
	n sessionstore.Imported, present string, first []sessionstore.Update,
) string {
	title := folded(strings.TrimRight(n.Title, ". …"))
	switch {
	case title == "", present != "" && isPlaceholder(title):
		return present
	case len(first) == 0:
		return sessionstore.CleanTitle(n.Title)
	}
	prompt := ""
	for _, u := range first {
		if u.Kind == sessionstore.UserMessageChunk {
			prompt += promptText(u) + "\n"
		}
	}
	if prompt == "" { // it comes later
		prompt = present
	}
	// A title from the prompt begins at the beginning of a line, and may span several.
	var starts []int
	all := ""
	for line := range strings.Lines(prompt) {
		starts = append(starts, len(all))
		all += folded(line)
	}
	if slices.ContainsFunc(starts, func(at int) bool { return strings.HasPrefix(all[at:], title) }) {
		return present
	}
	return sessionstore.CleanTitle(n.Title)
}

// isPlaceholder reports whether a folded title is one that agents give new sessions, such as "New
// session - 2026-01-02T03:04:05.678Z".
func isPlaceholder(title string) bool {
	for _, first := range []string{"new", "child", "untitled"} {
		rest, ok := strings.CutPrefix(title, first)
		if !ok {
			continue
		}
		for _, noun := range []string{"session", "chat", "thread", "conversation", ""} {
			time, ok := strings.CutPrefix(rest, noun)
			if ok && strings.Trim(time, "-0123456789tz:.") == "" {
				return true
			}
		}
	}
	return false
}

// folded returns a text without white space and in lower case.
func folded(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

// promptText returns the text of a user_message_chunk, "" if it is something else.
func promptText(u sessionstore.Update) string {
	var chunk struct {
		Update struct {
			Content struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"update"`
	}
	_ = strictjson.Decode(u.Raw, &chunk) // an error leaves it empty
	return chunk.Update.Content.Text
}
