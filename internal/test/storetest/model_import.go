package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// The part of the model that knows the agent's names for sessions, and what the agent lists.

func stateKeys() []string { return []string{"k0", "k1", "k2", "k3", "k4", "k5"} }

// drawKey draws a state key, or none.
func drawKey(t *rapid.T) string {
	return rapid.SampledFrom(append(stateKeys(), "")).Draw(t, "state key")
}

func drawState(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "s", "t\x00\xff"}).Draw(t, "state")
}

// rarely draws whether to do something that ends most of what a session had.
func rarely(t *rapid.T, label string) bool {
	return rapid.SampledFrom([]bool{false, false, false, true}).Draw(t, label)
}

// isUnused reports whether nobody has used the session, here or in its agent.
func (s *modelSession) isUnused() bool { return !s.imported && s.turns == 0 && len(s.history) == 0 }

// neverUsed reports whether the session was imported and nothing was stored in it.
func (s *modelSession) neverUsed() bool { return s.imported && s.turns == 0 && len(s.history) == 0 }

// named returns the name of the session with a state key, or "".
func (m *model) named(key string) string {
	for name, s := range m.sessions {
		if s.key == key {
			return name
		}
	}
	return ""
}

// remember removes a session, if there is one, and remembers its key.
func (m *model) remember(name string) {
	if s := m.sessions[name]; s != nil {
		if s.key != "" {
			m.deleted[s.key] = true
		}
		m.forget(name)
	}
}

func (m *model) forget(name string) {
	m.stale = append(m.stale, m.sessions[name].lease)
	delete(m.sessions, name)
}

// give gives a session a state key, or none.
func (m *model) give(name, key string) {
	s := m.sessions[name]
	switch {
	case key == "":
		s.key, s.imported, s.listed = "", false, 0
		return
	case key == s.key:
		return
	case s.key != "":
		m.deleted[s.key] = true
		s.listed, s.meta = 0, ""
	}
	switch other := m.named(key); {
	case other == "":
	case m.sessions[other].neverUsed():
		m.forget(other)
	default:
		m.give(other, "")
	}
	s.key = key
	delete(m.deleted, key)
}

func (m *model) save(t *rapid.T) {
	name, s := m.pick(t)
	state, key := drawState(t), drawKey(t)
	require.NoError(t, m.store.SaveState(t.Context(), s.lease, []byte(state), key))
	s.state = state
	m.give(name, key)
}

// drawListed draws a session as the agent lists it.
func (m *model) drawListed(t *rapid.T, id, key string) sessionstore.Session {
	return sessionstore.Session{
		ID: m.id(id), Agent: m.agent, Keys: drawKeys(t, rapid.SampledFrom(modelCwds()).Draw(t, "cwd")), StateKey: key,
		State: []byte(drawState(t)), Title: rapid.SampledFrom([]string{"", "p", "q"}).Draw(t, "listed title"),
		Archived: rarely(t, "archived"), Meta: []byte(rapid.SampledFrom([]string{"", `{"n":1.0}`}).Draw(t, "meta")),
		Updated: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

// add adds a session that the store did not have.
func (m *model) add(t *rapid.T, name string, n sessionstore.Session) *modelSession {
	s := &modelSession{keys: n.Keys, title: n.Title, open: -1, state: string(n.State)}
	m.sessions[name] = s
	m.give(name, n.StateKey)
	s.imported, s.archived, s.meta = true, n.Archived, string(n.Meta)
	s.lease = sessionstore.Lease{ID: n.ID, Generation: get(t, m.store, string(n.ID)).Generation}
	return s
}

func (m *model) importList(t *rapid.T) {
	onlyKnown := rapid.Bool().Draw(t, "only known")
	var list []sessionstore.Session
	names := map[string]string{}
	for _, key := range stateKeys() {
		if rarely(t, "not listed") {
			continue
		}
		m.words++
		names[key] = fmt.Sprint("imported ", m.words)
		n := m.drawListed(t, names[key], key)
		if s := m.sessions[m.named(key)]; s != nil && !rarely(t, "elsewhere") {
			n.Keys = s.keys
		}
		list = append(list, n)
		if rarely(t, "twice") {
			list = append(list, n)
		}
	}
	added, err := m.store.Import(t.Context(), m.agent, list, onlyKnown)
	require.NoError(t, err)
	for _, n := range list {
		known := m.named(n.StateKey)
		if known == "" {
			if !onlyKnown && !m.deleted[n.StateKey] {
				m.add(t, names[n.StateKey], n).listed = 1
				added--
			}
			continue
		}
		s := m.sessions[known]
		if n.Title != "" && !s.renamed && !s.isUnused() {
			s.title = n.Title
		}
		s.meta = string(n.Meta)
		if cwd := n.Keys.Roots.Cwd(); onlyKnown {
			continue
		} else if s.listed = 1; cwd != s.keys.Roots.Cwd() && cwd != s.keys.Real[0] {
			s.listed = 0
		}
	}
	require.Zero(t, added)
}

func (m *model) retain(t *rapid.T) {
	l := sessionstore.Listed{Asked: time.UnixMilli(1), StateKeys: map[string]bool{}}
	isNew := !rarely(t, "asked before")
	if isNew {
		l.Asked = time.Now().Add(24 * time.Hour)
	}
	for _, key := range stateKeys() {
		l.StateKeys[key] = rapid.Bool().Draw(t, "kept")
	}
	if rarely(t, "by cwd") {
		l.Cwds = []workspace.Dir{dir(t, "other"), dir(t, rapid.SampledFrom(modelCwds()).Draw(t, "cwd"))}
	}
	n, err := m.store.Retain(t.Context(), m.agent, l)
	require.NoError(t, err)
	for name, s := range m.sessions {
		if !isNew || s.listed < 1 || l.StateKeys[s.key] || l.Cwds != nil && !slices.Contains(l.Cwds, s.keys.Roots.Cwd()) {
			continue
		}
		n--
		if s.listed = -1; s.neverUsed() && !s.opened && !s.archived && !s.renamed {
			m.forget(name)
		}
	}
	require.Zero(t, n)
}

func (m *model) adopt(t *rapid.T) {
	name := drawName(t, "adopted")
	n := m.drawListed(t, name, rapid.SampledFrom(stateKeys()).Draw(t, "adopted key"))
	history := &modelSession{}
	d := newDraft(t, m.store, "", m.updates(t, history)...)
	_, err := m.store.Adopt(t.Context(), n, d)
	switch {
	case m.deleted[n.StateKey]:
		require.ErrorAs(t, err, new(*sessionstore.NotFoundError))
	case m.sessions[name] != nil:
		require.ErrorIs(t, err, sessionstore.ErrExists)
	default:
		require.NoError(t, err)
		s := m.add(t, name, n)
		s.history, s.mode, s.opened = history.history, history.mode, true
	}
}

// checkNames checks by which state keys sessions are found.
func (m *model) checkNames(t *rapid.T) {
	for _, key := range stateKeys() {
		id, err := m.store.Named(t.Context(), m.agent, key)
		if name := m.named(key); name != "" {
			require.NoError(t, err)
			require.Equal(t, m.id(name), id)
			continue
		}
		require.ErrorAs(t, err, new(*sessionstore.NotFoundError))
	}
}
