package acp_test

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

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
		a.cwd = rapid.SampledFrom([]string{r.cwd, r.real[0], m.places.path("alias")}).Draw(t, "its cwd")
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
	require.Empty(t, parts(t, c.messages()[before:at], result.SessionID), "a fork shows nothing of its history")
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
	s := m.request(process, id, "session/prompt", map[string]any{"prompt": []any{map[string]string{"type": "text", "text": text}}})
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
	method := rapid.SampledFrom([]string{"session/close", "session/close", "session/delete"}).Draw(t, "method")
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

// actBurst sends several requests of a session in one write: they take effect in arrival order (A32,
// W5, W7). A cancel comes first if at all, and a prompt last, for neither waits for what is before it.
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

// actFilter lists with random filters (A16, A17).
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
	all = slices.DeleteFunc(all, func(s listed) bool { return !m.stored[s.SessionID].matches(cwd, additional) })
	require.Equal(t, all, c.list(encode(params)), "%v", params)
}

// actRelink makes the alias lead elsewhere, perhaps where no root may be.
func (m *machine) actRelink(t *rapid.T) {
	m.places.link(t, rapid.SampledFrom([]string{"a", "b", "c", deniedDir}).Draw(t, "target"))
}

// actRestart ends a process at the end of its input (W9) and starts another.
func (m *machine) actRestart(t *rapid.T) {
	process := m.drawProcess(t)
	c := m.clients[process]
	begun := m.begin()
	var ended []string
	for _, id := range m.known {
		if prompt := m.endTurn(process, id); prompt != "" {
			ended = append(ended, prompt)
		}
	}
	c.leave()
	for _, prompt := range ended {
		require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	}
	m.seats[process] = map[string]*seat{}
	m.clients[process] = m.serve[process]()
	m.listed(t, process, begun)
}
