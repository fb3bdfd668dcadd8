// Package sessions does what commands do to stored sessions, in any store: it lists and describes
// them, exports and imports them, lets them follow a folder that was moved, and copies them to
// another store.
package sessions

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Report describes a session to a person or a program.
type Report struct {
	ID                    sessionstore.ID `json:"sessionId"`
	Agent                 string          `json:"agent"`
	Cwd                   workspace.Dir   `json:"cwd"`
	AdditionalDirectories workspace.Dirs  `json:"additionalDirectories"`
	Title                 string          `json:"title,omitempty"`
	ReadOnlyDirectories   []workspace.Dir `json:"readOnlyDirectories,omitempty"`
	CreatedAt             time.Time       `json:"createdAt"`
	UpdatedAt             time.Time       `json:"updatedAt"`
	Turns                 int64           `json:"turns"`
	Archived              bool            `json:"archived,omitempty"`
	// Gone says that the agent has deleted the session. What is stored of it stays.
	Gone bool `json:"deletedInAgent,omitempty"`
	// Directories describes how the agent behind acp-agent learns about the folders.
	Directories string `json:"directories,omitempty"`
}

// NewReport describes a session.
func NewReport(s sessionstore.Session) Report {
	agent := s.Agent.Kind
	if s.Agent.Profile != "" {
		agent += " " + s.Agent.Profile
	}
	directories := ""
	if s.Agent.Kind == proxy.Kind {
		directories = proxy.Describe(s.State)
	}
	return Report{
		ID: s.ID, Agent: agent, Directories: directories,
		Cwd: s.Keys.Roots.Cwd(), AdditionalDirectories: s.Keys.Roots.Additional(),
		ReadOnlyDirectories: s.Keys.Roots.ReadOnly(),
		CreatedAt:           s.Created.UTC(), UpdatedAt: s.Updated.UTC(),
		Title: s.Title, Turns: s.Turns, Archived: s.Archived, Gone: s.Gone,
	}
}

// TitleLine returns what tables of sessions show as the title.
func TitleLine(s sessionstore.Session) string {
	return text.Line(text.Plain(s.ListedTitle()), 80)
}

// Last names the session with the newest activity on a command line.
const Last = "last"

// Named returns the session of a list with this name: its id, the beginning of its id, or Last for
// the first one. ok is false if no session has this name.
func Named[T any](
	list iter.Seq2[T, error], id func(T) string, name string,
) (found T, ok bool, err error) {
	matches := 0
	for one, err := range list {
		if err != nil || name == Last || id(one) == name {
			return one, err == nil, err
		}
		if strings.HasPrefix(id(one), name) {
			found = one
			matches++
		}
	}
	if matches > 1 {
		err = usage.Errorf("%d session ids begin with %q: give more of the id", matches, name)
	}
	return found, matches == 1, err
}

// All yields the sessions that q selects, most recently active first. It stops after an error.
func All(
	ctx context.Context, store sessionstore.Sessions, q sessionstore.Query,
) iter.Seq2[sessionstore.Session, error] {
	return func(yield func(sessionstore.Session, error) bool) {
		for q.Limit = sessionstore.MaxPageSize; ; {
			page, err := store.List(ctx, q)
			if err != nil {
				yield(sessionstore.Session{}, err)
				return
			}
			for _, session := range page.Sessions {
				if !yield(session, nil) {
					return
				}
			}
			if q.Cursor = page.Next; q.Cursor == "" {
				return
			}
		}
	}
}
