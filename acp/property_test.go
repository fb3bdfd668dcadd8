package acp_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
	"github.com/acp-agent/acp-agent/workspace"
)

// TestModel sends random lifecycle requests, right and wrong, and compares every answer, every list
// and every replay with the reference model.
//
// Clause A13.
func TestModel(t *testing.T) {
	dir := t.TempDir()
	clock := ticking()
	one := sqlite.New(sqlite.Options{Dir: dir, Now: clock})
	two := sqlite.New(sqlite.Options{Dir: dir, Now: clock})
	t.Cleanup(func() {
		require.NoError(t, one.Close())
		require.NoError(t, two.Close())
	})
	memory := memstore.New(t)
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
				runs++ // each run has its own agent and so its own list
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
			c := start(t, acp.Options{
				Store: store, Backend: using(&scripted{kind: kind}),
				Workspace: workspace.Options{MaxRoots: maxRoots,
					Policy: workspace.Policy{Deny: []workspace.Dir{denied}}},
			}.With(acp.Tuning{
				// Only what needs a commit makes one, so that the model knows what a fenced process
				// has lost. Such a process does not look by itself either, so that the model knows
				// when it learns of it.
				Recorder:   sessionstore.RecorderOptions{Interval: time.Hour},
				LeaseCheck: time.Hour,
			}))
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
	all := map[string]func(*rapid.T){
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
	if *over == "remote" { // the turns do not end with the input, as the model expects
		delete(all, "restart")
	}
	return all
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
	require.Empty(t, parts(t, c.messages()[from:], requests[0].session),
		"nothing is shown that was not asked for")
}

// begin is the time of what comes next, as lists show it.
func (m *machine) begin() time.Time { return m.medium.now().UTC().Truncate(time.Millisecond) }

// verify checks an answer, and what was shown before it from a place on the wire on. It returns the
// place behind it. An error has no place: it may come after what the next request shows.
func (m *machine) verify(t *rapid.T, s sent, from int) int {
	c := m.clients[s.process]
	for _, prompt := range s.want.ended {
		got, at := c.await(0, isResponse(prompt))
		require.Equal(t, "cancelled", got.stopReason(t), s.description)
		from = max(from, at+1)
	}
	switch {
	case s.id == "" || s.want.queued:
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
	require.Equal(t, merged(s.want.said), merged(parts(t, c.messages()[from:at], s.session)),
		s.description)
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

// parts are the conversation among messages; a session's title and state are not, nor are notices
// about its roots.
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
		case p.SessionID != id, strings.Contains(p.Update.Content.Text, " now leads to "),
			strings.Contains(p.Update.Content.Text, " no longer has ") ||
				strings.HasPrefix(p.Update.Content.Text, "This copy does not have "):
		case isChunk:
			out = append(out, part{kind, p.Update.Content.Text})
		default:
			require.Contains(t, []string{"available_commands_update", "session_info_update"},
				p.Update.SessionUpdate)
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
// activity since begun.
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
			require.False(t, s.updated(t).Before(begun), "%s was active at %s, after %s", r.id,
				s.UpdatedAt, begun)
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

// maxKnown bounds the sessions of a run, so that requests meet.
const maxKnown = 7

func (m *machine) drawProcess(t *rapid.T) int {
	return rapid.IntRange(0, len(m.clients)-1).Draw(t, "process")
}

// drawSession draws a session, perhaps one that was deleted or never was.
func (m *machine) drawSession(t *rapid.T) string {
	return m.known[rapid.IntRange(0, len(m.known)-1).Draw(t, "session")]
}

// drawAsked draws roots; for a stored session mostly with its own cwd.
func (m *machine) drawAsked(t *rapid.T, of string) asked {
	path := rapid.SampledFrom(m.places.spellings())
	a := asked{cwd: path.Draw(t, "cwd")}
	if r := m.stored[of]; r != nil && rapid.IntRange(0, 4).Draw(t, "own cwd") > 0 {
		a.cwd = rapid.SampledFrom([]string{r.cwd, r.real[0], m.places.path("alias")}).Draw(t,
			"its cwd")
	}
	if rapid.IntRange(0, 3).Draw(t, "omitted") > 0 {
		a.additional = rapid.SliceOfN(path, 0, 4).Draw(t, "additional")
	}
	return a
}

func (m *machine) actNew(t *rapid.T) {
	if len(m.known) > maxKnown {
		t.Skip("enough sessions")
	}
	process, a := m.drawProcess(t), m.drawAsked(t, "")
	s := m.request(process, "", "session/new", a.params())
	var ok bool
	s.want, ok = m.refuseNew(a)
	m.creating(t, s, a, nil, !ok)
}

func (m *machine) actFork(t *rapid.T) {
	if len(m.known) > maxKnown {
		t.Skip("enough sessions")
	}
	process, source := m.drawProcess(t), m.drawSession(t)
	a := m.drawAsked(t, "")
	s := m.request(process, source, "session/fork", a.params())
	var ok bool
	s.want, ok = m.refuseFork(source, a)
	m.creating(t, s, a, m.stored[source], !ok)
}

// creating does a request that makes a session, unless it is refused.
func (m *machine) creating(t *rapid.T, s sent, a asked, from *record, succeeds bool) {
	c := m.clients[s.process]
	if !succeeds {
		m.do(t, s)
		return
	}
	begun := m.begin()
	before := len(c.messages())
	c.send(s.line)
	at := m.verify(t, s, before) - 1
	var result struct{ SessionID string }
	require.NoError(t, json.Unmarshal(c.messages()[at].Result, &result))
	require.NotContains(t, m.known, result.SessionID)
	require.Empty(t, parts(t, c.messages()[before:at], result.SessionID),
		"a fork shows nothing of its history")
	m.created(s.process, result.SessionID, a, from)
	m.known = append(m.known, result.SessionID)
	m.listed(t, s.process, begun)
}

func (m *machine) actReopen(t *rapid.T) {
	process, id := m.drawProcess(t), m.drawSession(t)
	m.do(t, m.drawReopen(t, process, id))
}

func (m *machine) drawReopen(t *rapid.T, process int, id string) sent {
	method := rapid.SampledFrom([]string{"session/load", "session/resume"}).Draw(t, "method")
	return m.reopening(process, id, m.drawAsked(t, id), method)
}

func (m *machine) reopening(process int, id string, a asked, method string) sent {
	s := m.request(process, id, method, a.params())
	s.want = m.reopen(process, id, a, method == "session/load")
	return s
}

func (m *machine) actPrompt(t *rapid.T) {
	process, id := m.drawProcess(t), m.drawSession(t)
	word := rapid.SampledFrom([]string{"say", "say", "wait", "roots"}).Draw(t, "prompt")
	m.do(t, m.prompting(process, id, word))
}

// prompting is a prompt. What is said is never said twice.
func (m *machine) prompting(process int, id, word string) sent {
	text := word
	if word == "say" {
		text = "say " + time.Now().Format("05.000000")
	}
	s := m.request(process, id, "session/prompt",
		map[string]any{"prompt": []any{map[string]string{"type": "text", "text": text}}})
	var answered *string
	switch said := ""; word {
	case "say":
		said = strings.TrimPrefix(text, "say ")
		answered = &said
	case "roots":
		if seat := m.seats[process][id]; seat != nil {
			said = "[" + strings.Join(seat.roots, ", ") + "]"
		}
		answered = &said
	}
	s.want = m.prompt(process, id, s.id, text, answered)
	return s
}

func (m *machine) actEnd(t *rapid.T) {
	process, id := m.drawProcess(t), m.drawSession(t)
	m.do(t, m.drawEnd(t, process, id))
}

func (m *machine) drawEnd(t *rapid.T, process int, id string) sent {
	method := rapid.SampledFrom([]string{"session/close", "session/close", "session/delete"}).Draw(
		t, "method")
	s := m.request(process, id, method, map[string]any{})
	s.want = m.end(process, id, method == "session/delete")
	return s
}

func (m *machine) actCancel(t *rapid.T) {
	process, id := m.drawProcess(t), m.drawSession(t)
	m.do(t, m.cancel(process, id))
}

func (m *machine) cancel(process int, id string) sent {
	return sent{
		process: process, session: id, description: "session/cancel",
		line: notification("session/cancel", idParams(id)),
		want: answer{ended: m.endTurn(process, id)},
	}
}

// actBurst sends several requests of a session in one write. They take effect in arrival order. A
// cancel may only be the first and a prompt only the last of them, because neither waits for the
// requests before it.
func (m *machine) actBurst(t *rapid.T) {
	process, id := m.drawProcess(t), m.drawSession(t)
	var requests []sent
	if rapid.Bool().Draw(t, "cancel first") {
		requests = append(requests, m.cancel(process, id))
	}
	for range rapid.IntRange(1, 3).Draw(t, "requests") {
		if rapid.IntRange(0, 3).Draw(t, "end") == 0 {
			requests = append(requests, m.drawEnd(t, process, id))
		} else {
			requests = append(requests, m.drawReopen(t, process, id))
		}
	}
	if rapid.Bool().Draw(t, "prompt last") {
		requests = append(requests, m.prompting(process, id, "say"))
	}
	m.do(t, requests...)
}

// actFilter lists with random filters.
func (m *machine) actFilter(t *rapid.T) {
	c := m.clients[m.drawProcess(t)]
	path := rapid.SampledFrom(m.places.spellings())
	params := map[string]any{}
	var (
		cwd        *string
		additional []string
		wrong      []string
	)
	if rapid.Bool().Draw(t, "by cwd") {
		drawn := path.Draw(t, "cwd")
		cwd, params["cwd"] = &drawn, drawn
		wrong = append(wrong, asked{cwd: drawn}.shape()...)
	}
	if rapid.Bool().Draw(t, "by list") {
		additional = rapid.SliceOfN(path, 0, 3).Draw(t, "additional")
		if len(m.known) > 1 && rapid.Bool().Draw(t, "of a session") {
			if r := m.stored[m.drawSession(t)]; r != nil {
				additional = r.additional
			}
		}
		params["additionalDirectories"] = additional
		wrong = append(wrong, asked{cwd: "/", additional: additional}.shape()...)
	}
	all := c.list(`{}`)
	if wrong != nil {
		require.Equal(t, wrong, violations(t, c.try("session/list", encode(params))))
		return
	}
	all = slices.DeleteFunc(all, func(s listed) bool {
		return !m.stored[s.SessionID].matches(cwd, additional)
	})
	require.Equal(t, all, c.list(encode(params)), "%v", params)
}

// actRelink makes the alias lead elsewhere, perhaps where no root may be.
func (m *machine) actRelink(t *rapid.T) {
	m.places.link(t, rapid.SampledFrom([]string{"a", "b", "c", deniedDir}).Draw(t, "target"))
}

// actRestart ends a process at the end of its input and starts another.
func (m *machine) actRestart(t *rapid.T) {
	process := m.drawProcess(t)
	c := m.clients[process]
	begun := m.begin()
	var ended []string
	for _, id := range m.known {
		ended = append(ended, m.endTurn(process, id)...)
	}
	c.leave()
	for _, prompt := range ended {
		require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	}
	m.seats[process] = map[string]*seat{}
	m.clients[process] = m.serve[process]()
	m.listed(t, process, begun)
}

// The reference model: the lifecycle of sessions, written as plainly as possible.

// maxRoots and deniedDir are the policy of the runs.
const (
	maxRoots  = 4
	deniedDir = "denied"
)

// places are the directories of a run.
type places struct{ base string }

func (p places) path(name string) string { return filepath.Join(p.base, name) }

// make fills the base.
func (p places) make(t tester) {
	for _, name := range []string{"a", "a/nested", "b", "c", deniedDir} {
		if err := os.MkdirAll(p.path(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(p.path("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.link(t, "a")
}

// link makes the alias lead to another directory.
func (p places) link(t tester, name string) {
	_ = os.Remove(p.path("alias"))
	if err := os.Symlink(p.path(name), p.path("alias")); err != nil {
		t.Fatal(err)
	}
}

// spellings are what clients write, good and bad; the good ones more than once.
func (p places) spellings() []string {
	a, b, c, nested, alias := p.path("a"), p.path("b"), p.path("c"), p.path("a/nested"),
		p.path("alias")
	return []string{
		a, b, c, nested, alias, a, b, c, nested, alias, a + "/", b + "//.", p.base + "/./alias",
		p.path("missing"), p.path("file"), p.path(deniedDir), "rel", "",
	}
}

// normal returns a path as the agent compares it.
func normal(path string) string {
	var names []string
	for name := range strings.SplitSeq(path, "/") {
		if name != "" && name != "." {
			names = append(names, name)
		}
	}
	return "/" + strings.Join(names, "/")
}

// realOf returns a path's real path.
func realOf(path string) string {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return path
	}
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to
	}
	return path
}

func reals(paths []string) []string {
	out := []string{}
	for _, path := range paths {
		out = append(out, realOf(path))
	}
	return out
}

// asked is the root set in a request. A nil additional is omitted.
type asked struct {
	cwd        string
	additional []string
}

// spelledWrong returns the violations of the params by themselves.
func spelledWrong(field, path string) []string {
	switch {
	case path == "":
		return []string{field + ":empty"}
	case !strings.HasPrefix(path, "/"):
		return []string{field + ":relative"}
	}
	return nil
}

func (a asked) shape() []string {
	wrong := spelledWrong("cwd", a.cwd)
	for i, path := range a.additional {
		wrong = append(wrong, spelledWrong(fmt.Sprintf("additionalDirectories[%d]", i), path)...)
	}
	return wrong
}

// roots returns the normalised root set, and the field that each root came from.
func (a asked) roots() (paths, fields []string) {
	paths, fields = []string{normal(a.cwd)}, []string{"cwd"}
	for i, path := range a.additional {
		if path = normal(path); !slices.Contains(paths, path) {
			paths = append(paths, path)
			fields = append(fields, fmt.Sprintf("additionalDirectories[%d]", i))
		}
	}
	return paths, fields
}

// disk returns the violations found on disk.
func (a asked) disk(p places) []string {
	paths, fields := a.roots()
	if len(paths) > maxRoots {
		return []string{"additionalDirectories:too_many"}
	}
	var absent, denied []string
	for i, path := range paths {
		switch info, err := os.Stat(path); {
		case err != nil:
			absent = append(absent, fields[i]+":missing")
		case !info.IsDir():
			absent = append(absent, fields[i]+":not_directory")
		case realOf(path) == p.path(deniedDir):
			denied = append(denied, fields[i]+":denied")
		}
	}
	if absent != nil {
		return absent
	}
	return denied
}

// part is a part of a conversation.
type part struct{ kind, text string }

// merged joins neighbours of one kind.
func merged(parts []part) []part {
	out := []part{}
	for _, p := range parts {
		if last := len(out) - 1; last >= 0 && out[last].kind == p.kind {
			out[last].text += p.text
		} else {
			out = append(out, p)
		}
	}
	return out
}

// record is a stored session.
type record struct {
	id               string
	cwd              string
	additional, real []string // real has cwd's first
	title            string
	history          []part
	finished         int // how much of it is finished turns
	generation       int
	updated          string // as listed last
}

// seat is a session that is active in a process.
type seat struct {
	roots      []string
	generation int
	turn       string // the id of the prompt that runs
	queued     string // the id of the one that waits for it
	noticed    bool   // it met a newer generation: the process will close the session
}

// model is every stored session, and the active ones of each process.
type model struct {
	places      places
	stored      map[string]*record
	seats       []map[string]*seat
	generations int
	touched     map[string]bool // had activity since the last list
}

// answer is the expected response to a request.
type answer struct {
	code       int      // 0: no error, or one of several
	reasons    []string // of the error, any of them
	violations []string // all of them
	ended      []string // the prompts that are answered as cancelled before
	said       []part   // what is shown of the session before the answer
	stopReason string
	goesOn     bool // nothing is answered yet
	queued     bool // nor shown
}

func (a answer) isError() bool { return a.code != 0 || a.reasons != nil }

func refused(violations []string) answer { return answer{code: -32602, violations: violations} }

var notFound = answer{code: -32002, reasons: []string{"not_found"}}

// owns reports whether the process has the newest generation of a session.
func (m *model) owns(process int, id string) bool {
	s, r := m.seats[process][id], m.stored[id]
	return s != nil && r != nil && s.generation == r.generation
}

// inTurn reports whether a turn runs that is being recorded.
func (m *model) inTurn(id string) bool {
	for process, seats := range m.seats {
		if s := seats[id]; s != nil && s.turn != "" && m.owns(process, id) {
			return true
		}
	}
	return false
}

// hand gives a process a new generation of the session.
func (m *model) hand(process int, r *record, roots []string) {
	m.generations++
	r.generation = m.generations
	m.seats[process][r.id] = &seat{roots: roots, generation: m.generations}
}

// endTurn ends the turn that runs and the prompt that waits for it, and returns their prompts. What
// a fenced process says is lost.
func (m *model) endTurn(process int, id string) (prompts []string) {
	s := m.seats[process][id]
	if s == nil || s.turn == "" {
		return nil
	}
	prompts = append(prompts, s.turn)
	if s.queued != "" {
		prompts = append(prompts, s.queued)
	}
	s.turn, s.queued = "", ""
	if !m.owns(process, id) {
		s.noticed = true
		return prompts
	}
	r := m.stored[id]
	r.history = append(r.history, part{"agent", "waiting"}, part{"agent", "last words"})
	r.finished = len(r.history)
	m.touched[id] = true
	return prompts
}

// refuseNew is new's refusal, if any.
func (m *model) refuseNew(a asked) (answer, bool) {
	for _, wrong := range [][]string{a.shape(), a.disk(m.places)} {
		if wrong != nil {
			return refused(wrong), true
		}
	}
	return answer{}, false
}

// created stores a new session.
func (m *model) created(process int, id string, a asked, from *record) {
	roots, _ := a.roots()
	r := &record{id: id, cwd: roots[0], additional: roots[1:], real: reals(roots)}
	if from != nil {
		r.title = from.title
		r.history = slices.Clone(from.history[:from.finished])
		r.finished = from.finished
	}
	m.stored[id] = r
	m.touched[id] = true
	m.hand(process, r, roots)
}

// refuseFork returns the error of a fork, if it fails.
func (m *model) refuseFork(id string, a asked) (answer, bool) {
	if wrong := a.shape(); wrong == nil && m.stored[id] == nil {
		return notFound, true
	}
	return m.refuseNew(a)
}

// reopen is load and resume.
func (m *model) reopen(process int, id string, a asked, replays bool) answer {
	if wrong := a.shape(); wrong != nil {
		return refused(wrong)
	}
	r := m.stored[id]
	if r == nil {
		return notFound
	}
	roots, _ := a.roots()
	if roots[0] != r.cwd && realOf(roots[0]) != r.real[0] {
		return refused([]string{"cwd:cwd_mismatch"})
	}
	if wrong := a.disk(m.places); wrong != nil {
		return refused(wrong)
	}
	// A load is not activity, but the end of a turn that it ends is, in whichever process the turn
	// runs.
	if m.inTurn(id) {
		m.touched[id] = true
	}
	out := answer{ended: m.endTurn(process, id)}
	r.finished = len(r.history)
	r.additional, r.real = []string{}, []string{realOf(roots[0])}
	for _, path := range roots[1:] {
		if path != r.cwd {
			r.additional, r.real = append(r.additional, path), append(r.real, realOf(path))
		}
	}
	m.hand(process, r, roots)
	if replays {
		out.said = r.history
	}
	return out
}

// end is close and delete.
func (m *model) end(process int, id string, deletes bool) answer {
	out := answer{ended: m.endTurn(process, id)}
	delete(m.seats[process], id)
	if deletes {
		delete(m.stored, id)
		delete(m.touched, id)
	}
	return out
}

// prompt is a prompt with text. answered is the agent's reply, nil if the turn lasts until it is
// ended.
func (m *model) prompt(process int, id, request, text string, answered *string) answer {
	s, r := m.seats[process][id], m.stored[id]
	switch {
	case s != nil && s.queued != "":
		return answer{code: -32600, reasons: []string{"turn_in_progress"}}
	case s != nil && s.turn != "":
		s.queued = request
		return answer{queued: true}
	case r == nil:
		return notFound
	case s == nil:
		return answer{code: -32002, reasons: []string{"not_active"}}
	case !m.owns(process, id) && s.noticed:
		return answer{reasons: []string{"fenced", "not_active"}}
	case !m.owns(process, id):
		s.noticed = true
		return answer{code: -32600, reasons: []string{"fenced"}}
	}
	if r.title == "" {
		r.title = text
	}
	m.touched[id] = true
	r.history = append(r.history, part{"user", text})
	if answered == nil {
		s.turn = request
		return answer{said: []part{{"agent", "waiting"}}, goesOn: true}
	}
	r.history = append(r.history, part{"agent", *answered})
	r.finished = len(r.history)
	return answer{said: []part{{"agent", *answered}}, stopReason: "end_turn"}
}

// matches is session/list's filter. A nil cwd or additional is absent.
func (r *record) matches(cwd *string, additional []string) bool {
	dropped := ""
	if cwd != nil {
		dropped = normal(*cwd)
		if dropped != r.cwd && realOf(dropped) != r.real[0] {
			return false
		}
	}
	if additional == nil {
		return true
	}
	list := []string{}
	for _, path := range additional {
		if path = normal(path); path != dropped && !slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	return slices.Equal(list, r.additional) || slices.Equal(reals(list), r.real[1:])
}
