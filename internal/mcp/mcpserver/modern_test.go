package mcpserver

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const modernWithRoots = `{"roots":{}}`

// callAnswered calls a tool and answers the request for roots.
func (p *peer) callAnswered(id int, tool, arguments, answer string) {
	p.t.Helper()
	p.write(callModern(id, modernWithRoots, tool, arguments, ""))
	state, ok := p.answerTo(float64(id)).Result["requestState"].(string)
	require.True(p.t, ok)
	p.write(callModern(id, modernWithRoots, tool, arguments, answered(state, answer)))
}

// answered returns the members of a repeated call that answer the request for roots.
func answered(state, answer string) string {
	return `,"requestState":"` + state + `","inputResponses":{"roots":` + answer + `}`
}

// Clause M8.
func TestModernClient(t *testing.T) {
	a, b := tree(t, map[string]string{"f": "in a"}), tree(t, map[string]string{"f": "in b"})
	p := start(t, Options{})
	for id, dir := range []string{a, b} { // no answer is kept: there is no notice of changes
		p.write(callModern(2*id+1, modernWithRoots, "read_file", `{"path":"f"}`, ""))
		m := p.read()
		require.Equal(t, "input_required", m.Result["resultType"], m.line)
		require.Equal(t, map[string]any{"roots": map[string]any{"method": "roots/list",
			"params": map[string]any{}}}, m.Result["inputRequests"])
		require.NotContains(t, m.line, `"content":null`)
		state, _ := m.Result["requestState"].(string)
		p.write(callModern(2*id+2, modernWithRoots, "read_file", `{"path":"f"}`,
			answered(state, rootsResult(dir))))
		m = p.read()
		require.Equal(t, "complete", m.Result["resultType"], m.line)
		require.Contains(t, m.text(), "in "+string("ab"[id]))
	}
}

// Clause M8.
func TestModernClientWithoutRoots(t *testing.T) {
	p := start(t, Options{})
	p.write(callModern(1, `{}`, "read_file", `{"path":"f"}`, ""))
	m := p.read()
	require.NotNil(t, m.Error, m.line)
	require.Equal(t, -32021, m.Error.Code)
	require.Equal(t, map[string]any{"requiredCapabilities": map[string]any{
		"roots": map[string]any{}}}, m.Error.Data)
	p.write(callModern(2, `{}`, "list_roots", `{}`, ""))
	m = p.read()
	require.Equal(t, "none", structured(m)["source"], "list_roots always answers: %s", m.line)

	a := tree(t, map[string]string{"f": "in a"})
	roots := rootSet(t, a)
	p = start(t, Options{Roots: roots})
	p.write(callModern(1, `{}`, "read_file", `{"path":"f"}`, ""))
	require.Contains(t, p.read().text(), "in a")
}

// Clause M10.
func TestModernInvalidLists(t *testing.T) {
	p := start(t, Options{})
	for _, answer := range []string{`{"roots":[]}`, `{"roots":[null]}`, `{"roots":null}`,
		`{"action":"accept","content":{}}`} {
		p.callAnswered(1, "read_file", `{"path":"f"}`, answer)
		require.Contains(t, p.read().text(), "No files are accessible", answer)
	}
	for _, answer := range []string{`7`, `{}`, `null`, `{"roots":{}}`} {
		p.callAnswered(1, "read_file", `{"path":"f"}`, answer)
		m := p.read()
		require.True(t, m.Error != nil || m.Result["isError"] == true ||
			m.Result["inputRequests"] != nil, "%s: %s", answer, m.line)
	}
}

// Clause M8.
func TestStateOfAnotherRequest(t *testing.T) {
	a := tree(t, map[string]string{"f": "in a"})
	p := start(t, Options{})
	p.write(callModern(1, modernWithRoots, "read_file", `{"path":"f"}`, ""))
	state, _ := p.read().Result["requestState"].(string)
	for _, c := range []string{
		callModern(2, modernWithRoots, "read_file", `{"path":"f"}`,
			answered("made-up", rootsResult(a))),
		callModern(2, modernWithRoots, "read_file", `{"path":"g"}`,
			answered(state, rootsResult(a))),
		callModern(2, modernWithRoots, "write_file", `{"path":"f"}`,
			answered(state, rootsResult(a))),
	} {
		p.write(c)
		m := p.read()
		require.NotNil(t, m.Error, m.line)
		require.Equal(t, -32602, m.Error.Code)
	}
	p.write(callModern(3, modernWithRoots, "read_file", `{"path":"f"}`,
		`,"inputResponses":{"roots":`+rootsResult(a)+`}`))
	require.Equal(t, "input_required", p.read().Result["resultType"],
		"what was not asked is not taken")
	p.write(callModern(4, modernWithRoots, "read_file", `{"path":"f"}`,
		answered(state, rootsResult(a))))
	require.Contains(t, p.read().text(), "in a")
}

// A client that asks for a revision that is not served goes on with initialize.
//
// Clause M7.
func TestInitializeAfterAnUnknownRevision(t *testing.T) {
	a := tree(t, map[string]string{"f": "in a"})
	p := start(t, Options{})
	p.write(strings.Replace(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+meta+`}}`,
		"2026-07-28", "2099-01-01", 1))
	require.NotNil(t, p.answerTo(1).Error, "it is not served")
	p.begin(withRoots)
	p.answer(p.question(), a)
	require.Contains(t, p.ask("read_file", read("f")).text(), "in a")
}

// Clause M7.
func TestModernClientReceivesNoRequests(t *testing.T) {
	a := tree(t, map[string]string{"f": "in a"})
	p := start(t, Options{})
	p.write(
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+meta+`}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{`+meta+`}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}`,
	)
	response := func() message {
		m := p.read()
		require.Empty(t, m.Method, m.line)
		require.Nil(t, m.Error, m.line)
		return m
	}
	response()
	response()
	p.write(callModern(3, modernWithRoots, "list_roots", `{}`, ""))
	state, _ := response().Result["requestState"].(string)
	p.write(callModern(4, modernWithRoots, "list_roots", `{}`, answered(state, rootsResult(a))))
	require.Len(t, structured(response())["roots"], 1)
	require.NoError(t, p.in.Close())
	for m := range p.lines {
		t.Fatal("a line too many: " + m.line)
	}
}

// Clause M7.
func TestInitializeWithAModernRevision(t *testing.T) {
	a := tree(t, map[string]string{"f": "in a"})
	p := start(t, Options{})
	p.write(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2026-07-28","capabilities":{"roots":{}},"clientInfo":{"name":"peer","version":"1"}}}`, initialized)
	require.Equal(t, "2025-11-25", p.answerTo(0).Result["protocolVersion"])
	p.answer(p.question(), a)
	require.Contains(t, p.ask("read_file", read("f")).text(), "in a")
}
