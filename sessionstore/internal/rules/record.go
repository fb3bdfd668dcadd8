package rules

import (
	"encoding/json"
	"time"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Time returns a time that is stored in milliseconds.
func Time(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// Columns are the columns of a session that have another form in its record.
type Columns struct {
	Created, Updated int64
	Listed           int64 // negative if the session is gone, 0 if it was not listed
	Meta             []byte
}

// Fill sets the fields of a record.
func (c Columns) Fill(s *sessionstore.Session) {
	s.Created, s.Updated = Time(c.Created), Time(c.Updated)
	if s.Gone = c.Listed < 0; c.Listed != 0 {
		s.Listed = Time(max(c.Listed, -c.Listed))
	}
	if len(c.Meta) > 0 {
		s.Meta = json.RawMessage(c.Meta)
	}
}

// Listed returns the column of a session's Listed and Gone.
func Listed(s sessionstore.Session) int64 {
	switch {
	case s.Listed.IsZero():
		return 0
	case s.Gone:
		return -s.Listed.UnixMilli()
	}
	return s.Listed.UnixMilli()
}

// Paths are the keys of a session as texts. No list is nil.
type Paths struct {
	Cwd, RealCwd   string
	Dirs, RealDirs []string
}

// PathsOf returns the texts of k, which must be valid.
func PathsOf(k sessionstore.Keys) Paths {
	return Paths{
		Cwd: k.Roots.Cwd().String(), Dirs: append([]string{}, k.Roots.Additional().Strings()...),
		RealCwd: k.Real[0].String(), RealDirs: texts(k.Real[1:]),
	}
}

func texts(dirs []workspace.Dir) []string {
	out := make([]string, len(dirs))
	for i, dir := range dirs {
		out[i] = dir.String()
	}
	return out
}

// Keys is the inverse of [PathsOf].
func (p Paths) Keys() (k sessionstore.Keys, err error) {
	if k.Roots, err = workspace.NewRoots(p.Cwd, p.Dirs); err != nil {
		return k, err
	}
	k.Real = make([]workspace.Dir, 0, 1+len(p.RealDirs))
	for _, path := range append([]string{p.RealCwd}, p.RealDirs...) {
		dir, err := workspace.ParseDir(path)
		if err != nil {
			return k, err
		}
		k.Real = append(k.Real, dir)
	}
	return k, k.Validate()
}

// CheckLease returns an error unless l is the newest lease of its session, whose generation is
// current.
func CheckLease(l sessionstore.Lease, current int64) error {
	if l.Generation != current {
		return &sessionstore.FencedError{ID: l.ID, Held: l.Generation, Current: current}
	}
	return nil
}

// States returns stored states in the order of [sessionstore.StateKinds], without damaged ones.
func States(bodies map[sessionstore.Kind][]byte) (states []sessionstore.Update) {
	for _, kind := range sessionstore.StateKinds() {
		if u, err := sessionstore.ParseUpdate(bodies[kind]); err == nil && u.Kind == kind {
			states = append(states, u)
		}
	}
	return states
}

// Forked returns the session that forking makes of n: with the title of the source, and its state if
// both belong to the same agent, where n has none.
func Forked(
	n sessionstore.NewSession, title string, state []byte, sameAgent bool,
) sessionstore.NewSession {
	if n.Title == "" {
		n.Title = title
	}
	if n.State == nil && sameAgent {
		n.State = state
	}
	return n
}
