package sessionstore

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/workspace"
)

// ID identifies a session. It is opaque, and unique among the sessions of an owner.
type ID string

// NewID returns an id that is unguessable and unique.
func NewID() ID { return ID("sess_" + rand.Text()) }

// Agent identifies the agent that a session belongs to.
type Agent struct {
	// Kind is the kind of the backend, Profile the agent behind it, if any.
	Kind, Profile string
}

// Session is the record of a session.
type Session struct {
	ID    ID
	Agent Agent
	Keys  Keys
	// Title is one line, or "".
	Title string
	// Created and Updated are in UTC, with millisecond precision. Updated is set when the session
	// is created or forked, and when a turn starts or ends.
	Created, Updated time.Time
	// Generation is the generation of the newest lease. A store never uses a generation twice, so
	// the lease of a deleted session is not valid for another session with the same id.
	Generation int64
	// State is an opaque value of the backend, or nil.
	State []byte
	// StateKey is the agent's own id of the session, or "". It is unique among the sessions of an
	// agent.
	StateKey string
	// Turns is the number of turns that were started. In a fork it includes the source's finished
	// turns.
	Turns int64
	// Archived is set by [Sessions.Archive], Renamed by [Sessions.Rename].
	Archived, Renamed bool
	// Listed is the time when its agent first listed it with its cwd (see [Imports.Import]), or the
	// zero time.
	Listed time.Time
	// Gone reports whether the agent no longer lists it (see [Imports.Retain]).
	Gone bool
	// Meta is the _meta of the session in its agent's own list, or nil.
	Meta json.RawMessage
}

// ListedTitle returns the title as lists show it: with a mark if the session is gone.
func (s Session) ListedTitle() string {
	if s.Gone {
		return strings.TrimSpace("[deleted in the agent] " + s.Title)
	}
	return s.Title
}

// Lease is the right to write to a session until a newer lease is issued.
type Lease struct {
	ID         ID
	Generation int64
}

// Activation describes what a load or resume changes.
type Activation struct {
	// Keys are the session's new roots and real paths. The recorded spelling of cwd does not
	// change, see [Keys.WithCwd].
	Keys Keys
	// Held is the generation of the lease that the caller holds, or 0. If it is not the newest, the
	// activation fails with [*FencedError], so that a fenced caller does not continue with a newer
	// lease. The caller's running turn continues under the new lease, unless History is set.
	Held int64
	// State and StateKey replace those of the session, unless State is nil.
	State    []byte
	StateKey string
	// History, if not nil, is added to the end of the history in the same transaction. It counts as
	// finished turns. States in it are stored; other states stay as they are. If the activation
	// fails, the draft is unchanged.
	History Draft
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

// Turn describes the start of a turn.
type Turn struct {
	// Prompt is the prompt as user_message_chunk updates, in order.
	Prompt []Update
	// Title becomes the session's title if it has none.
	Title string
	// Overlaps reports whether the running turns continue.
	Overlaps bool
}

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
func (s Session) Validate() error {
	return errors.Join(s.ID.Validate(), s.Agent.Validate(), s.Keys.Validate())
}

// ValidateListed returns an error unless the session, which its agent lists, can be imported.
func (s Session) ValidateListed() error {
	if s.StateKey == "" {
		return errors.New("an imported session needs the name that its agent has for it")
	}
	return s.Validate()
}

// Keys are the paths by which a session is found.
type Keys struct {
	// Roots are the roots as the client spelled them, with their grants.
	Roots workspace.Roots
	// Real are the real paths of all roots when they were opened, in the same order, cwd first.
	// Duplicates are kept.
	Real []workspace.Dir
}

// Validate returns an error unless k has roots and a real path for each of them.
func (k Keys) Validate() error {
	switch {
	case k.Roots.IsZero():
		return errors.New("a session needs roots")
	case len(k.Real) != k.Roots.Len():
		return fmt.Errorf("%d roots have %d real paths", k.Roots.Len(), len(k.Real))
	case slices.ContainsFunc(k.Real, workspace.Dir.IsZero):
		return errors.New("a root has no real path")
	}
	return nil
}

// Opened returns the roots, k must be valid, as they were when they were opened.
func (k Keys) Opened() []workspace.Root {
	roots := make([]workspace.Root, len(k.Real))
	for i, dir := range k.Roots.All() {
		roots[i] = workspace.Root{Index: i, Dir: dir, Real: k.Real[i], Grant: k.Roots.Grant(dir)}
	}
	return roots
}

// WithCwd returns k, which must be valid, with cwd in another spelling of the same directory. An
// additional root with the same spelling is dropped, since roots contain no path twice.
func (k Keys) WithCwd(cwd workspace.Dir) Keys {
	real := []workspace.Dir{k.Real[0]}
	for i, dir := range k.Roots.Additional().All() {
		if dir != cwd {
			real = append(real, k.Real[i+1])
		}
	}
	roots := workspace.RootsFrom(cwd, k.Roots.Additional())
	return Keys{Real: real, Roots: roots.Granting(func(dir workspace.Dir) workspace.Grant {
		if dir == cwd {
			dir = k.Roots.Cwd()
		}
		return k.Roots.Grant(dir)
	})}
}
