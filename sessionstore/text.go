package sessionstore

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// CleanTitle returns a title as stores keep it: with U+FFFD in place of NUL and of bytes that are
// not UTF-8, which not every medium can hold.
func CleanTitle(title string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(title, "\x00", "\uFFFD"), "\uFFFD")
}

// isText reports whether every medium can hold s as text.
func isText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// Validate returns an error unless a session of the agent can be stored.
func (a Agent) Validate() error {
	if !isText(a.Kind) || !isText(a.Profile) {
		return errors.New("the name of an agent must be UTF-8 without NUL")
	}
	return nil
}

// Validate returns an error unless a session can have the id. Stores find nothing for other ids.
func (id ID) Validate() error {
	if !isText(string(id)) {
		return errors.New("the id of a session must be UTF-8 without NUL")
	}
	return nil
}

// Validate returns an error unless the session can be stored.
func (n NewSession) Validate() error {
	return errors.Join(n.ID.Validate(), n.Agent.Validate(), n.Keys.Validate())
}

// Validate returns an error unless the session can be stored.
func (s Session) Validate() error {
	return NewSession{ID: s.ID, Agent: s.Agent, Keys: s.Keys}.Validate()
}
