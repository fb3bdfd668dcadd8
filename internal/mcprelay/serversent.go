package mcprelay

import (
	"encoding/json"
	"fmt"

	"github.com/acp-agent/acp-agent/internal/strictjson"
)

const rootsList = "roots/list"

// serverSent is what the client is given of a line from the server.
func (r *relay) serverSent(line []byte) (pass []byte, after func()) {
	m := read(line)
	switch {
	case m.method == rootsList && m.id != nil:
		if !r.server.send(answer(m.id, r.roots())) {
			r.server.warned.Do(func() { r.log.Warn("the MCP server does not read: its questions for the roots are not answered") })
		}
		return nil, nil
	case m.method == "" && m.id != nil:
		return r.response(line, m), nil
	}
	return line, nil
}

// response is a server's answer as the client is given it.
func (r *relay) response(line []byte, m message) []byte {
	held, ours := r.calls.find(m.id)
	switch {
	case held == nil && ours:
		return nil // of a call that was cancelled
	case held == nil:
		return line
	}
	all := at(m.result, "inputRequests")
	asked, _ := strictjson.ParseObject(all) // what is no object asks nothing
	if n, most := asked.Len(), r.options.MaxQuestions; n > most {
		r.calls.finish(held)
		return append(refusal(held.id, fmt.Sprintf("the server asked %d questions in one result, and %d are the limit", n, most)), '\n')
	}
	keys, others := questions(all, asked)
	switch {
	case len(keys) == 0:
	case others == nil:
		return r.repeat(held, m.result, keys)
	default:
		line = r.without(line, m.result, keys, others)
	}
	r.calls.finish(held)
	if ours {
		line = edited(line, held.id, "id")
	}
	return line
}

// questions are the keys of those that are for the roots, and the other questions, nil if there are none.
func questions(all json.RawMessage, asked strictjson.Object) (keys []string, others json.RawMessage) {
	for key, question := range asked.All() {
		if method, _ := textOf(at(question, "method")); method != rootsList {
			continue
		}
		keys = append(keys, key)
		if _, left, err := strictjson.Take(all, key); err == nil {
			all = left
		}
	}
	if len(keys) == asked.Len() {
		return keys, nil
	}
	return keys, all
}

// repeat calls again, with the roots. The client gets what the server answers then.
func (r *relay) repeat(held *call, result json.RawMessage, keys []string) []byte {
	if held.rounds >= r.options.MaxRounds {
		r.calls.finish(held)
		return append(refusal(held.id, fmt.Sprintf("the server asked for the roots %d times and gave no result", held.rounds)), '\n')
	}
	id, ok := r.calls.again(held)
	if !ok {
		return nil // it was cancelled
	}
	line := repeated(held.line, r.answered(nil, keys), at(result, "requestState"))
	line = edited(line, id, "id")
	if !r.server.send(withoutEnd(line)) {
		r.calls.finish(held)
		return append(refusal(held.id, "the server asks for the roots and does not read the answers"), '\n')
	}
	return nil
}

// withoutEnd is a line without its end.
func withoutEnd(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	return line
}

// without is a result that asks for what the client can answer, and not for the roots.
func (r *relay) without(line []byte, result json.RawMessage, keys []string, others json.RawMessage) []byte {
	state, err := r.seal(envelope{Keys: keys, State: at(result, "requestState")})
	if err != nil {
		return line
	}
	line = edited(line, others, "result", "inputRequests")
	return edited(line, state, "result", "requestState")
}
