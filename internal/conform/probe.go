package conform

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// trial is a check that is being tried.
type trial struct {
	*run
	ctx  context.Context
	row  row
	from int    // the number of lines before it
	note string // what is odd, although it passes
	// lines are what was sent and received, if it is not what the process has since then.
	lines []rawrpc.Line
}

// errUnlisted is the error of a check that needs a session to be listed.
var errUnlisted = notTried(
	"session/list does not show the session, which may be because it has no message")

// unknown is a method of which every agent says that it does not have it: a way to see whether it
// still answers.
const unknown = "_conform/alive"

// carryOut does what the row says. It returns nil if the agent passes.
func (t *trial) carryOut() error {
	switch {
	case t.row.Send == protocol.SessionList && t.row.Expect == "":
		return t.lists()
	case t.row.Send != "":
		return t.request()
	case t.row.Line != "":
		return t.line()
	case t.row.Echo != nil:
		return t.echo()
	case t.row.Of != "":
		id, err := t.session(t.row.Of)
		if err != nil {
			return err
		}
		return t.shows(id)
	}
	return checks[t.row.ID](t)
}

// call sends a request and returns the response, which may be an error response. The session that
// it makes is noted.
func (t *trial) call(method string, params any) (rawrpc.Message, error) {
	m, err := t.ask(t.ctx, method, params)
	if err == nil && (method == protocol.SessionNew || method == protocol.SessionFork) {
		t.created(m)
	}
	return m, err
}

// result sends a request and decodes the result into v, which may be nil.
func (t *trial) result(method string, params, v any) error {
	m, err := t.call(method, params)
	if err := refusal(m, err); err != nil || v == nil {
		return err
	}
	if err := json.Unmarshal(m.Result, v); err != nil {
		return fmt.Errorf("the result of %s is unreadable: %w", method, err)
	}
	return nil
}

// setup returns the params of a request about a session in the first folder.
func (t *trial) setup(more map[string]any) map[string]any {
	params := map[string]any{"cwd": t.fill.Replace("$A"), protocol.MCPServers: []any{}}
	maps.Copy(params, more)
	return params
}

// params returns the params of the row. If they name a session that could not be made, or not be
// opened by the method, the check cannot be tried.
func (t *trial) params() (map[string]any, error) {
	params, opens := map[string]any{}, false
	switch t.row.Send {
	case protocol.SessionLoad, protocol.SessionResume, protocol.SessionFork:
		opens = true
		fallthrough
	case protocol.SessionNew:
		params = t.setup(nil)
	}
	for name, value := range t.row.Params {
		filled := t.fill.Replace(string(value))
		for _, session := range []string{"plain", "two", "other"} {
			variable := "$" + strings.ToUpper(session)
			if !strings.Contains(filled, variable) {
				continue
			}
			id, err := t.session(session)
			if err != nil {
				return nil, err
			}
			if opens && t.opens(t.row.Send) != nil {
				return nil, notTried("%s of the session does not succeed", t.row.Send)
			}
			filled = strings.ReplaceAll(filled, variable, id)
		}
		params[name] = json.RawMessage(filled)
	}
	for _, name := range t.row.Without {
		delete(params, name)
	}
	return params, nil
}

// opens opens the session plain by a method, once, and closes it. The error says why that fails.
func (t *trial) opens(method string) error {
	id, err := t.session("plain")
	o, known := t.loaded[method]
	if known || err != nil {
		return cmp.Or(err, o.err)
	}
	from := t.Count()
	answer, err := t.call(method, t.setup(map[string]any{"sessionId": id}))
	o = opened{err: refusal(answer, err), before: before(t.Messages()[from:], answer)}
	t.loaded[method] = o
	t.close(id)
	return o.err
}

// close closes a session if the agent offers that: some open none that is open.
func (t *trial) close(id string) {
	if t.intro.offers("close") && t.usable() {
		_, _ = t.call(protocol.SessionClose, map[string]any{"sessionId": id})
	}
}

// refusal returns err, or an error for an answer that is one.
func refusal(m rawrpc.Message, err error) error {
	if err == nil && m.Error != nil {
		return fmt.Errorf("it was refused with %d: %s", m.Error.Code, m.Error.Message)
	}
	return err
}

// request sends the request of the row.
func (t *trial) request() error {
	params, err := t.params()
	if err != nil {
		return err
	}
	m, err := t.call(t.row.Send, params)
	if err != nil {
		return err
	}
	unknown := m.Error != nil && m.Error.Code == jsonrpc.CodeMethodNotFound
	offered := t.intro.offers(t.row.Offers)
	switch t.row.Expect {
	case "accepted":
		if m.Error == nil && t.row.Shows != nil {
			return t.showsAfter(params, m)
		}
		return refusal(m, nil)
	case "refused":
		want := cmp.Or(t.row.Code, jsonrpc.CodeInvalidParams)
		if m.Error == nil {
			return errors.New("it was accepted")
		}
		if m.Error.Code != want {
			t.note = fmt.Sprintf("it was refused with %d; %d is recommended", m.Error.Code, want)
		}
	case "unknown":
		if !unknown {
			return fmt.Errorf("it was answered with %s", outcome(m))
		}
	case "served":
		if offered && unknown {
			return errors.New("it is advertised, but not known")
		}
		if !offered && !unknown {
			t.note = "it is not advertised, and answered with " + outcome(m)
		}
	}
	return nil
}

// showsAfter looks at the folders of the session that a request has opened, and closes it.
func (t *trial) showsAfter(params map[string]any, answer rawrpc.Message) error {
	var id string
	_ = json.Unmarshal(params[protocol.SessionID].(json.RawMessage), &id) // the id of a session
	if t.row.Send == protocol.SessionFork {
		source := id
		if id = t.created(answer); id == source || id == "" {
			return errors.New("the fork has no id of its own")
		}
	}
	defer t.close(id)
	if !t.intro.offers("list") {
		return notTried("without session/list, the folders cannot be observed")
	}
	return t.shows(id)
}

// shows compares the folders that session/list shows of a session. Only the draft demands that it
// shows them.
func (t *trial) shows(id string) error {
	all, err := t.list(map[string]any{"cwd": t.fill.Replace("$A")})
	if err != nil {
		return err
	}
	at := slices.IndexFunc(all, func(l listed) bool { return l.SessionID == id })
	if at < 0 {
		return errUnlisted
	}
	var want []string
	for _, folder := range t.row.Shows {
		want = append(want, t.fill.Replace(folder))
	}
	switch has := all[at].AdditionalDirectories; {
	case has == nil && t.row.Draft:
		return errors.New("session/list does not show the additional folders")
	case has == nil:
		return notTried("session/list does not show the additional folders")
	case !slices.Equal(has, want):
		return fmt.Errorf("session/list shows the additional folders %q", has)
	}
	return nil
}

// lists lists sessions and looks for those that the row names.
func (t *trial) lists() error {
	params, err := t.params()
	if err != nil {
		return err
	}
	found, err := t.list(params)
	if err != nil {
		return err
	}
	has := func(name string) bool {
		return slices.ContainsFunc(found, func(l listed) bool {
			return name == "*" || l.SessionID == t.opened[name].id
		})
	}
	if i := slices.IndexFunc(t.row.Lacks, has); i >= 0 {
		return fmt.Errorf("it shows %d sessions, with one that it should not show", len(found))
	}
	if slices.ContainsFunc(t.row.Has, func(name string) bool { return !has(name) }) {
		return errUnlisted
	}
	return nil
}

func outcome(m rawrpc.Message) string {
	if m.Error == nil {
		return "a result"
	}
	return fmt.Sprintf("the error %d", m.Error.Code)
}

// line sends the line of the row, and then a request to see whether the agent goes on.
func (t *trial) line() error {
	from, answered := t.Count(), t.row.Expect == "error"
	if err := t.write(strings.ReplaceAll(t.row.Line, "$FF", "\xff")); err != nil {
		return err
	}
	m, err := t.call(unknown, map[string]any{})
	if err != nil {
		return err
	}
	// An answer comes before that to the later request, or soon.
	soon := 500 * time.Millisecond
	if !answered {
		soon = 0
	}
	ctx, cancel := context.WithTimeout(t.ctx, soon)
	defer cancel()
	answer, _, err := t.Await(ctx, from, func(got rawrpc.Message) bool {
		return got.Method == "" && string(got.ID) != string(m.ID) &&
			(got.Error != nil || got.Result != nil)
	})
	switch {
	case answered && err != nil:
		return errors.New("it was not answered")
	case !answered && err == nil:
		return fmt.Errorf("it was answered with %s", outcome(answer))
	}
	return nil
}

// write sends a line.
func (t *trial) write(lines ...string) error {
	_, cancel := t.within(t.ctx, unknown)
	defer cancel()
	return t.explain(t.Send(lines...))
}

// echo sends a request with the id of the row.
func (t *trial) echo() error {
	from := t.Count()
	line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{}}`, t.row.Echo, unknown)
	if err := t.write(line); err != nil {
		return err
	}
	var want any
	_ = json.Unmarshal(t.row.Echo, &want) // it is one of checks.json
	ctx, cancel := t.within(t.ctx, unknown)
	defer cancel()
	_, _, err := t.Await(ctx, from, func(m rawrpc.Message) bool {
		var id any
		return m.Method == "" && json.Unmarshal(m.ID, &id) == nil && reflect.DeepEqual(id, want)
	})
	return t.explain(err)
}
