package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

func modelTests() []testCase {
	return []testCase{
		{"A16, A17, A18, A31/every combination of filters, compared with a naive list", filterMatrix},
		{"A13, A14, A16, A17, A28, A29, A31, A35, S3, S8, S12, P6, P7, N5, W7/random operations, compared with a model", randomOperations},
	}
}

func modelAgents() []sessionstore.Agent {
	return []sessionstore.Agent{{Kind: "explore"}, {Kind: "proxy", Profile: "child"}, {Kind: "proxy"}}
}

func modelCwds() []string { return []string{"app", "link", "lib"} }

func modelLists() [][]string { return [][]string{{}, {"a"}, {"b"}, {"a", "b"}, {"b", "a"}} }

// filterMatrix fills a store with every combination of roots and real paths that filters
// distinguish, and compares lists with a loop over all sessions.
func filterMatrix(t *testing.T, s store) {
	for i := range 150 {
		list, realList := modelLists()[i%5], modelLists()[(i/5)%5]
		if len(list) != len(realList) {
			realList = list
		}
		real := append([]string{modelCwds()[(i/7)%3]}, realList...)
		createAs(t, s, sessionstore.Session{
			ID: sessionstore.ID(fmt.Sprintf("%03d", (i*101)%150)), Agent: modelAgents()[i%3], Keys: linked(t, modelCwds()[(i/3)%3], list, real),
		})
	}
	all := listAll(t, s, sessionstore.Query{Limit: 1000})
	require.Len(t, all, 150)
	for i := range all[1:] {
		require.Negative(t, position(all[i]).Compare(position(all[i+1])), "newest activity first, ties by id")
	}
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuery(t)
		want := []string{}
		for _, session := range all {
			if matches(q, session) {
				want = append(want, string(session.ID))
			}
		}
		require.Equal(t, want, ids(listAll(t, s, q)))
	})
}

func drawQuery(t *rapid.T) sessionstore.Query {
	q := sessionstore.Query{Limit: rapid.IntRange(20, 160).Draw(t, "limit")}
	if rapid.Bool().Draw(t, "by agent") {
		q.Agent = rapid.SampledFrom(modelAgents()).Draw(t, "agent")
	}
	if rapid.Bool().Draw(t, "by cwd") {
		q.Cwd = &sessionstore.DirFilter{
			Spelling: dir(t, rapid.SampledFrom(modelCwds()).Draw(t, "cwd")),
			Real:     dir(t, rapid.SampledFrom(modelCwds()).Draw(t, "real cwd")),
		}
	}
	if rapid.Bool().Draw(t, "by list") {
		spelling := rapid.SampledFrom(modelLists()).Draw(t, "list")
		real := rapid.SampledFrom(modelLists()).Draw(t, "real list")
		q.Additional = &sessionstore.DirsFilter{Spelling: dirs(t, spelling...), Real: linked(t, "x", nil, real).Real}
	}
	return q
}

// matches is the simplest implementation of the filters.
func matches(q sessionstore.Query, s sessionstore.Session) bool {
	cwd, list := s.Keys.Roots.Cwd().String(), fmt.Sprintf("%q", s.Keys.Roots.Additional().Strings())
	realCwd, realList := s.Keys.Real[0].String(), fmt.Sprintf("%q", s.Keys.Real[1:])
	if q.Agent.Kind != "" && (s.Agent.Kind != q.Agent.Kind || s.Agent.Profile != q.Agent.Profile) {
		return false
	}
	if q.Cwd != nil && cwd != q.Cwd.Spelling.String() && realCwd != q.Cwd.Real.String() {
		return false
	}
	return q.Additional == nil ||
		list == fmt.Sprintf("%q", q.Additional.Spelling.Strings()) ||
		realList == fmt.Sprintf("%q", q.Additional.Real)
}

// randomOperations applies random operations to a few sessions and to a model of them.
func randomOperations(t *testing.T, s store) {
	checks := 0
	rapid.Check(t, func(t *rapid.T) {
		checks++
		m := &model{store: s, agent: sessionstore.Agent{Kind: "model", Profile: fmt.Sprint(checks)},
			sessions: map[string]*modelSession{}, deleted: map[string]bool{}}
		for range 3 {
			t.Repeat(map[string]func(*rapid.T){
				"create": m.create, "fork": m.fork, "activate": m.activate, "refused": m.refused, "move": m.move, "delete": m.delete,
				"begin": m.begin, "overlap": m.overlap, "append": m.append, "end": m.end, "take back": m.takeBack,
				"title": m.title, "rename": m.rename, "archive": m.archive, "unarchive": m.unarchive,
				"save": m.save, "import": m.importList, "import again": m.importList, // the rest needs what is imported
				"retain": m.retain, "adopt": m.adopt,
			})
			m.check(t)
			m.stale = nil // later ones are enough
		}
	})
}

// model is what a store should contain. Sessions are named by letters, to which their ids add the
// number of the check.
type model struct {
	store    store
	agent    sessionstore.Agent
	sessions map[string]*modelSession
	// stale are leases that are not the newest.
	stale []sessionstore.Lease
	// deleted are the state keys of deleted sessions.
	deleted map[string]bool
	words   int
}

type modelSession struct {
	lease   sessionstore.Lease
	keys    sessionstore.Keys
	title   string
	turns   int64
	mode    string
	history []string
	open    int     // where the open turns start, -1 if none
	running []int64 // their numbers
	first   int64   // the number of the first turn since open

	renamed, archived bool

	state, key, meta string
	imported, opened bool
	listed           int // 1 if its agent lists it, -1 if no longer
}

func (m *model) id(name string) sessionstore.ID {
	return sessionstore.ID(m.agent.Profile + "/" + name)
}

func (m *model) say() update {
	m.words++
	return say(fmt.Sprint("word ", m.words))
}

func drawName(t *rapid.T, label string) string {
	return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, label)
}

// pick draws an existing session. Without one it skips the action.
func (m *model) pick(t *rapid.T) (string, *modelSession) {
	names := []string{}
	for name := range m.sessions {
		names = append(names, name)
	}
	if len(names) == 0 {
		t.Skip("no session")
	}
	slices.Sort(names)
	name := rapid.SampledFrom(names).Draw(t, "session")
	return name, m.sessions[name]
}

func drawKeys(t *rapid.T, cwd string) sessionstore.Keys {
	list := rapid.SampledFrom(modelLists()).Draw(t, "list")
	real := append([]string{rapid.SampledFrom(modelCwds()).Draw(t, "real cwd")}, list...)
	return linked(t, cwd, list, real)
}

func (m *model) create(t *rapid.T) {
	name := drawName(t, "new")
	n := sessionstore.Session{ID: m.id(name), Agent: m.agent, Keys: drawKeys(t, rapid.SampledFrom(modelCwds()).Draw(t, "cwd")),
		State: []byte(drawState(t)), StateKey: drawKey(t)}
	lease, err := m.store.Create(t.Context(), n)
	if m.sessions[name] != nil {
		require.ErrorIs(t, err, sessionstore.ErrExists)
		return
	}
	require.NoError(t, err)
	m.sessions[name] = &modelSession{lease: lease, keys: n.Keys, open: -1, state: string(n.State)}
	m.give(name, n.StateKey)
}

func (m *model) fork(t *rapid.T) {
	source, from := m.pick(t)
	name := drawName(t, "fork")
	n := sessionstore.Session{ID: m.id(name), Agent: m.agent, Keys: drawKeys(t, rapid.SampledFrom(modelCwds()).Draw(t, "cwd")), StateKey: drawKey(t)}
	lease, err := m.store.Fork(t.Context(), m.id(source), n)
	if m.sessions[name] != nil {
		require.ErrorIs(t, err, sessionstore.ErrExists)
		return
	}
	require.NoError(t, err)
	f := &modelSession{lease: lease, keys: n.Keys, title: from.title, turns: from.turns, mode: from.mode, open: -1, history: slices.Clone(from.history), state: from.state}
	if from.open >= 0 {
		f.history, f.turns = f.history[:from.open], from.first-1
	}
	m.sessions[name] = f
	m.give(name, n.StateKey)
}

func (m *model) activate(t *rapid.T) {
	name, s := m.pick(t)
	a := sessionstore.Activation{Keys: drawKeys(t, rapid.SampledFrom(modelCwds()).Draw(t, "cwd"))}
	if rarely(t, "state") {
		a.State, a.StateKey = []byte("activated"), drawKey(t)
	}
	if rapid.Bool().Draw(t, "held") {
		a.Held = s.lease.Generation
	}
	if rarely(t, "extended") {
		a.History = newDraft(t, m.store, string(m.id(name)), m.updates(t, s)...)
	}
	lease, err := m.store.Activate(t.Context(), m.id(name), a)
	require.NoError(t, err)
	require.Greater(t, lease.Generation, s.lease.Generation)
	m.stale = append(m.stale, s.lease)
	s.lease, s.keys, s.opened = lease, a.Keys.WithCwd(s.keys.Roots.Cwd()), true
	if a.Held == 0 || a.History != nil { // no turn goes on
		s.open, s.running = -1, nil
	}
	if a.State != nil {
		s.state = string(a.State)
		m.give(name, a.StateKey)
	}
}

// refused activates a session as a holder whose lease is not the newest. Then the draft is still
// there.
func (m *model) refused(t *rapid.T) {
	name, _ := m.pick(t)
	older := slices.IndexFunc(m.stale, func(l sessionstore.Lease) bool { return l.ID == m.id(name) })
	if older < 0 {
		t.Skip("no older lease")
	}
	d := newDraft(t, m.store, string(m.id(name)), m.say())
	_, err := m.store.Activate(t.Context(), m.id(name), sessionstore.Activation{
		Keys: drawKeys(t, "app"), State: []byte("old"), StateKey: "old", History: d, Held: m.stale[older].Generation})
	require.ErrorAs(t, err, new(*sessionstore.FencedError))
	require.NoError(t, d.Append(t.Context(), nil))
	require.NoError(t, d.Discard(t.Context()))
}

func (m *model) move(t *rapid.T) {
	_, s := m.pick(t)
	to := drawKeys(t, rapid.SampledFrom(modelCwds()).Draw(t, "cwd"))
	lease, err := m.store.Move(t.Context(), s.lease, to)
	require.NoError(t, err)
	m.stale = append(m.stale, s.lease)
	s.lease, s.keys, s.opened, s.listed = lease, to, true, 0
}

func (m *model) delete(t *rapid.T) {
	name := rapid.SampledFrom([]string{"a", "b", "c", "any", "unused", "all"}).Draw(t, "gone")
	future := time.Now().Add(24 * time.Hour)
	switch name {
	case "any":
		name, _ = m.pick(t)
	case "unused":
		m.prune(t, sessionstore.PruneQuery{UnusedBefore: future}, (*modelSession).isUnused)
		return
	case "all":
		m.prune(t, sessionstore.PruneQuery{Before: future}, func(*modelSession) bool { return true })
		return
	}
	require.NoError(t, m.store.Delete(t.Context(), m.id(name)))
	m.remember(name)
}

func (m *model) prune(t *rapid.T, q sessionstore.PruneQuery, matches func(*modelSession) bool) {
	_, err := m.store.Prune(t.Context(), q)
	require.NoError(t, err)
	for name, s := range m.sessions {
		if matches(s) {
			m.remember(name)
		}
	}
}

func (m *model) begin(t *rapid.T) { m.beginTurn(t, false) }

func (m *model) overlap(t *rapid.T) { m.beginTurn(t, true) }

func (m *model) beginTurn(t *rapid.T, overlaps bool) {
	_, s := m.pick(t)
	prompt := m.say()
	number, err := m.store.BeginTurn(t.Context(), s.lease, sessionstore.Turn{Prompt: []update{prompt}, Title: prompt.String(), Overlaps: overlaps})
	require.NoError(t, err)
	if s.turns++; !overlaps {
		s.running, s.open = nil, -1
	}
	s.listed = max(s.listed, 0)
	if s.running = append(s.running, s.turns); s.open < 0 {
		s.open, s.first = len(s.history), s.turns
	}
	require.Equal(t, s.turns, number)
	s.history = append(s.history, prompt.String())
	if s.title == "" {
		s.title = prompt.String()
	}
}

func (m *model) append(t *rapid.T) {
	_, s := m.pick(t)
	require.NoError(t, m.store.Append(t.Context(), s.lease, m.updates(t, s)))
}

// updates draws updates, and adds them to the model of a session.
func (m *model) updates(t *rapid.T, s *modelSession) (segment []update) {
	for range rapid.IntRange(0, 3).Draw(t, "updates") {
		u := m.say()
		segment = append(segment, u)
		s.history = append(s.history, u.String())
	}
	if rapid.Bool().Draw(t, "mode") {
		s.mode = mode(fmt.Sprint(m.words)).String()
		segment = append(segment, parse(s.mode))
	}
	return segment
}

// drawTurn draws the number of a turn, which most probably runs.
func (s *modelSession) drawTurn(t *rapid.T) int64 {
	return rapid.SampledFrom(append([]int64{s.turns, s.turns + 1}, s.running...)).Draw(t, "turn")
}

func (m *model) end(t *rapid.T) {
	_, s := m.pick(t)
	number := s.drawTurn(t)
	require.NoError(t, m.store.EndTurn(t.Context(), s.lease, number))
	if s.running = slices.DeleteFunc(s.running, func(n int64) bool { return n == number }); len(s.running) == 0 {
		s.open = -1
	}
}

func (m *model) takeBack(t *rapid.T) {
	_, s := m.pick(t)
	number := s.drawTurn(t)
	turn := sessionstore.Turn{Prompt: []update{say("none")}}
	if s.open >= 0 {
		turn = sessionstore.Turn{Prompt: []update{parse(s.history[s.open])}, Title: s.history[s.open]}
	}
	taken, err := m.store.TakeBackTurn(t.Context(), s.lease, number, turn)
	require.NoError(t, err)
	alone := slices.Equal(s.running, []int64{number}) && s.first == number && s.turns == number
	require.Equal(t, alone && len(s.history) == s.open+1, taken)
	if !taken {
		return
	}
	if s.title == turn.Title && !s.renamed {
		s.title = ""
	}
	s.history, s.turns, s.running, s.open = s.history[:s.open], s.turns-1, nil, -1
}

func (m *model) title(t *rapid.T) {
	_, s := m.pick(t)
	title := rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "title")
	if !s.renamed {
		s.title = title
	}
	require.NoError(t, m.store.SetTitle(t.Context(), s.lease, title))
}

func (m *model) rename(t *rapid.T) {
	name, s := m.pick(t)
	s.title = rapid.SampledFrom([]string{"", "v", s.title}).Draw(t, "chosen")
	s.renamed = s.title != ""
	require.NoError(t, m.store.Rename(t.Context(), m.id(name), s.title))
}

func (m *model) archive(t *rapid.T) {
	name, s := m.pick(t)
	s.archived = true
	require.NoError(t, m.store.Archive(t.Context(), m.id(name)))
}

func (m *model) unarchive(t *rapid.T) {
	name, s := m.pick(t)
	s.archived = false
	require.NoError(t, m.store.Unarchive(t.Context(), m.id(name)))
}

// listed returns the ids that a list must have.
func (m *model) listed(q sessionstore.Query) (all []string) {
	for name, s := range m.sessions {
		hidden := q.Archive == sessionstore.WithoutArchived && s.archived || q.Archive == sessionstore.OnlyArchived && !s.archived ||
			!s.archived && s.isUnused() && !q.Unused.Before.IsZero() && !slices.Contains(q.Unused.Keep, m.id(name))
		if !hidden && matches(q, sessionstore.Session{Agent: m.agent, Keys: s.keys}) {
			all = append(all, string(m.id(name)))
		}
	}
	return all
}

func (m *model) check(t *rapid.T) {
	for name, want := range m.sessions {
		id := string(m.id(name))
		got := get(t, m.store, id)
		requireKeys(t, want.keys, got.Keys)
		require.Equal(t, want.title, got.Title)
		require.Equal(t, want.renamed, got.Renamed)
		require.Equal(t, want.archived, got.Archived)
		require.Equal(t, want.turns, got.Turns)
		require.Equal(t, want.lease.Generation, got.Generation)
		require.Equal(t, []string{want.state, want.key, want.meta}, []string{string(got.State), got.StateKey, string(got.Meta)})
		require.Equal(t, []bool{want.listed != 0, want.listed < 0}, []bool{!got.Listed.IsZero(), got.Gone})
		all := append([]string{}, want.history...)
		require.Equal(t, all, history(t, m.store, id))
		if want.open >= 0 {
			all = all[:want.open]
		}
		require.Equal(t, all, collected(t, m.store.Finished(t.Context(), m.id(name))))
		wantStates := []string{}
		if want.mode != "" {
			wantStates = append(wantStates, want.mode)
		}
		require.Equal(t, wantStates, states(t, m.store, id))
	}
	future := time.Now().Add(24 * time.Hour)
	for _, archive := range []sessionstore.ArchiveFilter{sessionstore.ArchivedToo, sessionstore.WithoutArchived, sessionstore.OnlyArchived} {
		for _, unused := range []sessionstore.UnusedFilter{{}, {Before: future}, {Before: future, Keep: []sessionstore.ID{m.id("a"), m.id("b")}}} {
			q := sessionstore.Query{Agent: m.agent, Archive: archive, Unused: unused, Limit: rapid.IntRange(1, 3).Draw(t, "limit")}
			if rapid.Bool().Draw(t, "by cwd") {
				q.Cwd = sessionstore.FilterDir(dir(t, rapid.SampledFrom(modelCwds()).Draw(t, "cwd")))
			}
			listed := listAll(t, m.store, q)
			require.True(t, slices.IsSortedFunc(listed, func(a, b sessionstore.Session) int { return position(a).Compare(position(b)) }))
			require.ElementsMatch(t, m.listed(q), ids(listed))
		}
	}
	m.checkNames(t)
	for _, lease := range m.stale {
		for call, write := range writes() {
			m.checkStaleLease(t, lease, write(t.Context(), m.store, lease), call)
		}
	}
}

// checkStaleLease checks that the error for a stale lease says whether its session exists.
func (m *model) checkStaleLease(t *rapid.T, lease sessionstore.Lease, err error, call string) {
	for name, s := range m.sessions {
		if m.id(name) == lease.ID {
			var fenced *sessionstore.FencedError
			require.ErrorAs(t, err, &fenced, call)
			require.Equal(t, sessionstore.FencedError{ID: lease.ID, Held: lease.Generation, Current: s.lease.Generation}, *fenced, call)
			return
		}
	}
	require.ErrorAs(t, err, new(*sessionstore.NotFoundError), call)
}

// writes returns the calls that need a lease.
func writes() map[string]func(context.Context, store, sessionstore.Lease) error {
	return map[string]func(context.Context, store, sessionstore.Lease) error{
		"BeginTurn": func(ctx context.Context, s store, l sessionstore.Lease) error {
			_, err := s.BeginTurn(ctx, l, sessionstore.Turn{Prompt: []update{say("old")}, Title: "old"})
			return err
		},
		"Append": func(ctx context.Context, s store, l sessionstore.Lease) error {
			return s.Append(ctx, l, []update{say("old"), mode("old")})
		},
		"Append nothing": func(ctx context.Context, s store, l sessionstore.Lease) error { return s.Append(ctx, l, nil) },
		"EndTurn":        func(ctx context.Context, s store, l sessionstore.Lease) error { return s.EndTurn(ctx, l, 1) },
		"TakeBackTurn": func(ctx context.Context, s store, l sessionstore.Lease) error {
			_, err := s.TakeBackTurn(ctx, l, 1, sessionstore.Turn{Prompt: []update{say("first")}})
			return err
		},
		"SetTitle": func(ctx context.Context, s store, l sessionstore.Lease) error { return s.SetTitle(ctx, l, "old") },
		"SaveState": func(ctx context.Context, s store, l sessionstore.Lease) error {
			return s.SaveState(ctx, l, []byte("old"), "")
		},
		"Charge": func(ctx context.Context, s store, l sessionstore.Lease) error {
			return s.Charge(ctx, l, []charge{usd(at(9, 0), 1, 1, "")})
		},
		"Charge nothing": func(ctx context.Context, s store, l sessionstore.Lease) error { return s.Charge(ctx, l, nil) },
		"Move": func(ctx context.Context, s store, l sessionstore.Lease) error {
			_, err := s.Move(ctx, l, Keys(panicking{}, "lib"))
			return err
		},
	}
}

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
