package acp_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
	"github.com/acp-agent/acp-agent/workspace"
)

// TestA13_RandomLivesOfSessionsAgreeWithTheModel sends random lifecycle requests, right and
// wrong, and compares every answer, every list and every replay with the reference model.
func TestA13_RandomLivesOfSessionsAgreeWithTheModel(t *testing.T) {
	dir := t.TempDir()
	clock := ticking()
	one := sqlite.New(sqlite.Options{Dir: dir, Now: clock})
	two := sqlite.New(sqlite.Options{Dir: dir, Now: clock})
	t.Cleanup(func() {
		require.NoError(t, one.Close())
		require.NoError(t, two.Close())
	})
	memory := sessionstore.NewMemory()
	inMemory := medium{[]sessionstore.Store{memory, memory}, time.Now}
	onDisk := medium{[]sessionstore.Store{one, two}, clock}
	where := places{folder(t)}
	where.make(t)
	for processes, media := range map[int][]medium{
		1: {inMemory},
		2: {inMemory, inMemory, inMemory, inMemory, onDisk}, // a disk is slow
	} {
		t.Run(fmt.Sprintf("%d processes", processes), func(t *testing.T) {
			runs := 0
			rapid.Check(t, func(t *rapid.T) {
				runs++ // each run has an agent, and so a list, of its own (A31)
				where.link(t, "a")
				on := rapid.SampledFrom(media).Draw(t, "medium")
				on.stores = on.stores[:processes]
				m := newMachine(t, where, on, fmt.Sprint(processes, runs))
				t.Repeat(m.actions())
				m.finish()
			})
		})
	}
}

// medium is where the processes of a run keep their sessions, with the clock of their activity.
type medium struct {
	stores []sessionstore.Store
	now    func() time.Time
}

func (m medium) String() string { return fmt.Sprintf("%T", m.stores[0]) }

// ticking is a clock that never shows the same time twice.
func ticking() func() time.Time {
	var ms atomic.Int64
	ms.Store(time.Now().UnixMilli())
	return func() time.Time { return time.UnixMilli(ms.Add(1)) }
}

// machine is a run: clients of processes that share a store, and what the model says of them.
type machine struct {
	model
	t       *rapid.T
	medium  medium
	serve   []func() *client
	clients []*client
	known   []string // every session there ever was
}

func newMachine(t *rapid.T, where places, on medium, kind string) *machine {
	denied, err := workspace.ParseDir(where.path(deniedDir))
	require.NoError(t, err)
	m := &machine{t: t, medium: on, known: []string{"sess_unknown"}}
	m.model = model{places: where, stored: map[string]*record{}, touched: map[string]bool{}}
	for _, store := range on.stores {
		serve := func() *client {
			c := connect(t, acp.Options{
				Store: store, Backend: func() backend.Backend { return &scripted{kind: kind} },
				Workspace: workspace.Options{MaxRoots: maxRoots, Policy: workspace.Policy{Deny: []workspace.Dir{denied}}},
			}.With(acp.Tuning{
				// Only what needs a commit makes one, so that the model knows what a fenced process has lost.
				Recorder: sessionstore.RecorderOptions{Interval: time.Hour},
			}))
			c.initialize()
			return c
		}
		m.serve = append(m.serve, serve)
		m.clients = append(m.clients, serve())
		m.seats = append(m.seats, map[string]*seat{})
	}
	m.actNew(t)
	return m
}

func (m *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"new":     m.actNew,
		"fork":    m.actFork,
		"reopen":  m.actReopen,
		"prompt":  m.actPrompt,
		"prompt2": m.actPrompt,
		"end":     m.actEnd,
		"cancel":  m.actCancel,
		"burst":   m.actBurst,
		"filter":  m.actFilter,
		"relink":  m.actRelink,
		"restart": m.actRestart,
	}
}

// sent is a request on its way.
type sent struct {
	process     int
	session     string
	id, line    string
	description string
	want        answer
}

// request makes a request, before the model is asked what will come of it.
func (m *machine) request(process int, session, method string, params map[string]any) sent {
	if session != "" {
		params["sessionId"] = session
	}
	s := sent{process: process, session: session}
	s.id, s.line = m.clients[process].request(method, encode(params))
	s.description = fmt.Sprintf("process %d: %s", process, s.line)
	return s
}

func (a asked) params() map[string]any {
	params := map[string]any{"cwd": a.cwd, "mcpServers": []any{}}
	if a.additional != nil {
		params["additionalDirectories"] = a.additional
	}
	return params
}

// do sends requests of one session in one write, checks their answers, and then the list.
func (m *machine) do(t *rapid.T, requests ...sent) {
	c := m.clients[requests[0].process]
	begun := m.begin()
	from := len(c.messages())
	var lines []string
	for _, s := range requests {
		lines = append(lines, s.line)
	}
	c.send(lines...)
	for _, s := range requests {
		from = m.verify(t, s, from)
	}
	m.listed(t, requests[0].process, begun)
	require.Empty(t, parts(t, c.messages()[from:], requests[0].session), "nothing is shown that was not asked for")
}

// begin is the time of what comes next, as lists show it.
func (m *machine) begin() time.Time { return m.medium.now().UTC().Truncate(time.Millisecond) }

// verify checks an answer, and what was shown before it from a place on the wire on. It returns the place
// behind it. An error has no place: it may come after what the next request shows.
func (m *machine) verify(t *rapid.T, s sent, from int) int {
	c := m.clients[s.process]
	if s.want.ended != "" {
		got, at := c.await(0, isResponse(s.want.ended))
		require.Equal(t, "cancelled", got.stopReason(t), s.description)
		from = max(from, at+1)
	}
	switch {
	case s.id == "":
		return from
	case s.want.isError():
		m.verifyError(t, s)
		return from
	}
	answered := isResponse(s.id)
	if s.want.goesOn {
		answered = func(m message) bool { return len(parts(t, []message{m}, s.session)) > 0 }
	}
	got, at := c.await(from, answered)
	if s.want.goesOn {
		require.Equal(t, s.want.said, parts(t, []message{got}, s.session), s.description)
		return at + 1
	}
	require.Nil(t, got.Error, "%s: %+v", s.description, got.Error)
	require.Equal(t, merged(s.want.said), merged(parts(t, c.messages()[from:at], s.session)), s.description)
	if s.want.stopReason != "" {
		require.Equal(t, s.want.stopReason, got.stopReason(t), s.description)
	}
	return at + 1
}

func (m *machine) verifyError(t *rapid.T, s sent) {
	got := m.clients[s.process].response(s.id)
	if s.want.violations != nil {
		require.Equal(t, s.want.violations, violations(t, got), s.description)
	} else {
		require.Contains(t, s.want.reasons, got.reason(t), s.description)
	}
	if s.want.code != 0 {
		require.Equal(t, s.want.code, got.Error.Code, s.description)
	}
}

// parts are the conversation among messages; a session's title and state are not.
func parts(t *rapid.T, messages []message, id string) []part {
	var out []part
	for _, m := range messages {
		if m.Method != "session/update" {
			continue
		}
		var p struct {
			SessionID string
			Update    struct {
				SessionUpdate string
				Content       struct{ Text string }
			}
		}
		require.NoError(t, json.Unmarshal(m.Params, &p))
		kind, isChunk := strings.CutSuffix(p.Update.SessionUpdate, "_message_chunk")
		switch {
		case p.SessionID != id:
		case isChunk:
			out = append(out, part{kind, p.Update.Content.Text})
		default:
			require.Contains(t, []string{"available_commands_update", "session_info_update"}, p.Update.SessionUpdate)
		}
	}
	return out
}

// violations are an error's, as the model writes them.
func violations(t *rapid.T, m message) []string {
	require.NotNil(t, m.Error)
	var data struct {
		Violations []struct {
			Field, Reason string
			Index         *int
		}
	}
	require.NoError(t, json.Unmarshal(m.Error.Data, &data), m.Error.Message)
	var out []string
	for _, v := range data.Violations {
		if v.Index != nil {
			v.Field += fmt.Sprintf("[%d]", *v.Index)
		}
		out = append(out, v.Field+":"+v.Reason)
	}
	return out
}

// listed compares the list with the model: who, in which order, with which roots, title and
// activity since begun (A13, A15, A18, A29).
func (m *machine) listed(t *rapid.T, process int, begun time.Time) {
	got := m.clients[process].list(`{}`)
	require.True(t, slices.IsSortedFunc(got, func(a, b listed) int {
		return cmp.Or(b.updated(t).Compare(a.updated(t)), strings.Compare(b.SessionID, a.SessionID))
	}), "the newest activity comes first: %v", got)
	ids := []string{}
	for _, s := range got {
		ids = append(ids, s.SessionID)
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(m.stored)), ids)
	for _, s := range got {
		r := m.stored[s.SessionID]
		require.Equal(t, r.cwd, s.Cwd)
		require.Equal(t, r.additional, s.AdditionalDirectories)
		require.Equal(t, r.title, s.Title)
		if m.touched[s.SessionID] {
			require.False(t, s.updated(t).Before(begun), "%s was active at %s, after %s", r.id, s.UpdatedAt, begun)
		} else {
			require.Equal(t, r.updated, s.UpdatedAt, "%s had no activity", r.id)
		}
		r.updated = s.UpdatedAt
	}
	clear(m.touched)
}

func (s listed) updated(t *rapid.T) time.Time {
	at, err := time.Parse(time.RFC3339Nano, s.UpdatedAt)
	require.NoError(t, err)
	return at
}

// finish ends every turn and loads every session for a last look.
func (m *machine) finish() {
	for process := range m.clients {
		for _, id := range m.known {
			if s := m.seats[process][id]; s != nil && s.turn != "" {
				m.do(m.t, m.cancel(process, id))
			}
		}
	}
	for _, id := range m.known {
		if r := m.stored[id]; r != nil {
			m.do(m.t, m.reopening(0, id, asked{cwd: r.real[0]}, "session/load"))
			m.do(m.t, m.prompting(0, id, "roots"))
		}
	}
	for _, c := range m.clients {
		c.leave()
	}
}
