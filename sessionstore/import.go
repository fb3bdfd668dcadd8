package sessionstore

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

const (
	// MaxTombstones is how many deleted sessions of an agent a store remembers in order not to
	// import them again.
	MaxTombstones = 10_000
	// TombstoneAge is how long a store remembers a deleted session after the agent last listed it.
	TombstoneAge = 180 * 24 * time.Hour
)

// Deleted is a store's record of a deleted session, which makes Import skip it.
type Deleted struct {
	Name [sha256.Size]byte // the SHA-256 of its StateKey
	At   time.Time         // when it was deleted or, if later, last listed by the agent
}

// Imported is a session in an agent's own list; see [Imports.Import].
type Imported struct {
	// ID is the session's id if it is new.
	ID ID
	// StateKey is the agent's name for it. It must not be empty.
	StateKey string
	// State is the backend's value for it.
	State []byte
	// Keys are its roots and their real paths now.
	Keys Keys
	// Title is one line, or "".
	Title string
	// Updated is the time of its last activity; the zero time means now.
	Updated time.Time
	// Archived says that the agent lists it as archived.
	Archived bool
	// Meta is its _meta in the agent's list, or nil.
	Meta json.RawMessage
	// OnlyKnown skips the session unless the store has it. It does not count as listed, so that
	// Retain never removes it.
	OnlyKnown bool
}

// Listed describes a complete list of an agent's sessions, see [Imports.Retain].
type Listed struct {
	// Asked is when the agent was asked for the list. Sessions that it first listed later, perhaps
	// to another process, are kept.
	Asked time.Time
	// Cwds are the working directories whose sessions are listed; nil means all.
	Cwds []workspace.Dir
	// StateKeys has the names of the sessions in the list.
	StateKeys map[string]bool
}

// Validate returns an error unless the session can be stored.
func (s Imported) Validate() error {
	if s.StateKey == "" {
		return errors.New("an imported session needs the name that its agent has for it")
	}
	return errors.Join(s.ID.Validate(), s.Keys.Validate())
}

// NewTitle returns the title of a known session after s is imported: the present title, unless the
// agent gave the session a better one. A title that the agent took from the first prompt is not
// better, because it may contain text that the user did not type. Nor is a placeholder. first
// yields the first updates of the session's history.
func (s Imported) NewTitle(present string, first []Update) string {
	title := folded(strings.TrimRight(s.Title, ". …"))
	switch {
	case title == "", present != "" && isPlaceholder(title):
		return present
	case len(first) == 0:
		return CleanTitle(s.Title)
	}
	prompt := ""
	for _, u := range first {
		if u.Kind == UserMessageChunk {
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
	return CleanTitle(s.Title)
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
func promptText(u Update) string {
	var chunk struct {
		Update struct {
			Content struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"update"`
	}
	_ = strictjson.Decode(u.Raw, &chunk) // which leaves it empty
	return chunk.Update.Content.Text
}
