package acp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The reference model: what the clauses say of sessions, said as plainly as possible.

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
	a, b, c, nested, alias := p.path("a"), p.path("b"), p.path("c"), p.path("a/nested"), p.path("alias")
	return []string{
		a, b, c, nested, alias, a, b, c, nested, alias, a + "/", b + "//.", p.base + "/./alias",
		p.path("missing"), p.path("file"), p.path(deniedDir), "rel", "",
	}
}

// normal is clause A8.
func normal(path string) string {
	var names []string
	for name := range strings.SplitSeq(path, "/") {
		if name != "" && name != "." {
			names = append(names, name)
		}
	}
	return "/" + strings.Join(names, "/")
}

// realOf is a path's second key (A17).
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

// asked is a root set as a client asks for it. A nil additional is left out.
type asked struct {
	cwd        string
	additional []string
}

// spelledWrong is stage 1 of A5.
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

// roots are the set after A7 and A8, and the field that each came from.
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

// disk is stages 4 to 6 of A5.
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
	noticed    bool   // it met a newer generation: the session leaves the process by and by
}

// model is every stored session, and the active ones of each process.
type model struct {
	places      places
	stored      map[string]*record
	seats       []map[string]*seat
	generations int
	touched     map[string]bool // had activity since the last list
}

// answer is what a request is answered.
type answer struct {
	code       int      // 0: no error, or one of several
	reasons    []string // of the error, any of them
	violations []string // all of them
	ended      string   // the prompt that is answered as cancelled before
	said       []part   // what is shown of the session before the answer
	stopReason string
	goesOn     bool // nothing is answered yet
}

func (a answer) isError() bool { return a.code != 0 || a.reasons != nil }

func refused(violations []string) answer { return answer{code: -32602, violations: violations} }

var notFound = answer{code: -32002, reasons: []string{"not_found"}}

// owns reports whether the process has the newest generation of a session (S3).
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

// endTurn ends the turn that runs, and returns its prompt. What a fenced process says is lost.
func (m *model) endTurn(process int, id string) (prompt string) {
	s := m.seats[process][id]
	if s == nil || s.turn == "" {
		return ""
	}
	prompt, s.turn = s.turn, ""
	if !m.owns(process, id) {
		s.noticed = true
		return prompt
	}
	r := m.stored[id]
	r.history = append(r.history, part{"agent", "waiting"}, part{"agent", "last words"})
	r.finished = len(r.history)
	m.touched[id] = true
	return prompt
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

// created stores a new session (A9, A14, A19).
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

// refuseFork is fork's refusal, if any.
func (m *model) refuseFork(id string, a asked) (answer, bool) {
	if wrong := a.shape(); wrong == nil && m.stored[id] == nil {
		return notFound, true
	}
	return m.refuseNew(a)
}

// reopen is load and resume (A10 to A13, A17, A27).
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
	// A load is no activity, but the end of the turn that it ends is, whosever that is (A29).
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

// end is close and delete (A28).
func (m *model) end(process int, id string, deletes bool) answer {
	out := answer{ended: m.endTurn(process, id)}
	delete(m.seats[process], id)
	if deletes {
		delete(m.stored, id)
		delete(m.touched, id)
	}
	return out
}

// prompt is a prompt with text, which the agent answers with answered; nil if it goes on until it is ended.
func (m *model) prompt(process int, id, request, text string, answered *string) answer {
	s, r := m.seats[process][id], m.stored[id]
	switch {
	case s != nil && s.turn != "":
		return answer{code: -32600, reasons: []string{"turn_in_progress"}}
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

// matches is session/list's filter (A16, A17). A nil cwd or additional is absent.
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
