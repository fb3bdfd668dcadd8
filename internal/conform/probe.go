package conform

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
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
	lines  []rawrpc.Line
	before []rawrpc.Message // what came before the answer to the request of the row
}

// errUnlisted is the error of a check that needs a session to be listed.
var errUnlisted = notTried(
	"session/list does not show the session, which may be because it has no message")

// unknown is a method of which every agent says that it does not have it: a way to see whether it
// still answers.
const unknown = "_conform/alive"

// opening are the methods that open a stored session.
var opening = []string{protocol.SessionLoad, protocol.SessionResume, protocol.SessionFork}

// prepare starts the agent if the check needs it. The error says why it is not carried out.
func (t *trial) prepare() error {
	c, first := t.row, t.row.ID == "W10.version-1"
	switch {
	case c.Draft && !t.Draft:
		return notTried("only the draft demands it: --draft")
	case c.Prompt && !t.Prompt:
		return notTried("it needs a prompt: --prompt")
	case t.ctx.Err() != nil:
		return notTried("%v", context.Cause(t.ctx))
	case c.Phase == "all" && (t.failed == nil || t.judged[c.ID].reasons != nil):
		return nil // it needs no process
	}
	if err := t.alive(t.ctx); err != nil && first {
		return err
	} else if err != nil {
		return notTried("%v", err)
	}
	if c.Phase == "start" || first {
		return nil
	}
	if version := string(t.intro.ProtocolVersion); version != "1" {
		return notTried("it speaks version %s", version)
	}
	for _, capability := range c.Needs {
		if !t.intro.offers(capability) {
			return untried{NotOffered, capability + " is not advertised"}
		}
	}
	if c.After != "" {
		earlier, tried := t.results[c.After]
		if !tried {
			is := func(r row) bool { return r.ID == c.After }
			earlier = t.attempt(t.ctx, t.rows[slices.IndexFunc(t.rows, is)])
		}
		if earlier.Verdict != Pass {
			return notTried("%s does not pass", c.After)
		}
	}
	if strings.HasPrefix(c.Send, protocol.SessionPrefix) && c.Offers == "" && c.Makes == "" {
		_, err := t.session("PLAIN")
		return err
	}
	return nil
}

// session returns the id of a session that the checks share. It is made if it is not.
func (t *trial) session(name string) (string, error) {
	is := func(r row) bool { return r.Makes == name }
	maker := t.rows[slices.IndexFunc(t.rows, is)]
	if t.sessions[name] == "" && t.phase == "main" && !t.asked[name] {
		t.attempt(t.ctx, maker)
	}
	if id := t.sessions[name]; id != "" {
		return id, nil
	}
	return "", notTried("session/new made no session: %s", t.results[maker.ID].Reason)
}

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
	case t.row.Phase == "all":
		return t.judge()
	}
	return checks[t.row.ID](t)
}

// call sends a request and returns the response, which may be an error response. The session that
// it makes is noted.
func (t *trial) call(method string, params any) (rawrpc.Message, error) {
	from := t.Count()
	m, err := t.ask(t.ctx, method, params)
	isAnswer := func(other rawrpc.Message) bool { return other.IsResponse(string(m.ID)) }
	before := t.Messages()[from:]
	before = before[:max(0, slices.IndexFunc(before, isAnswer))]
	if method == t.row.Send {
		t.before = before
	}
	made := method == protocol.SessionNew || method == protocol.SessionFork
	if id := sessionID(m.Result); made && id != "" {
		names := func(m rawrpc.Message) bool { return strings.Contains(string(m.Params), id) }
		t.early = t.early || slices.ContainsFunc(before, names)
		if t.made[id] {
			return m, errors.New("two sessions have the same id")
		}
		t.made[id] = true
	}
	return m, err
}

// sessionID returns the member sessionId of an object, "" without one.
func sessionID(object json.RawMessage) string {
	var has struct{ SessionID string }
	_ = json.Unmarshal(object, &has) // then it has none
	return has.SessionID
}

// result sends a request and decodes the result into v.
func (t *trial) result(method string, params, v any) error {
	m, err := t.call(method, params)
	if err := refusal(m, err); err != nil {
		return err
	}
	if err := json.Unmarshal(m.Result, v); err != nil {
		return fmt.Errorf("the result of %s is unreadable: %w", method, err)
	}
	return nil
}

// params returns the params of the row. If they name a session that could not be made, the check
// cannot be tried.
func (t *trial) params() (params map[string]any, err error) {
	params = map[string]any{}
	if t.row.Send == protocol.SessionNew || slices.Contains(opening, t.row.Send) {
		params = t.setup()
	}
	for name, value := range t.row.Params {
		params[name] = json.RawMessage(os.Expand(string(value), func(name string) string {
			text, folder := t.folders[name]
			if !folder {
				var missing error
				text, missing = t.session(name)
				err = cmp.Or(err, missing)
			}
			quoted, _ := json.Marshal(text) // a text
			return strings.Trim(string(quoted), `"`)
		}))
	}
	for _, name := range t.row.Without {
		delete(params, name)
	}
	return params, err
}

// setup returns the params of every request that opens a session.
func (t *trial) setup() map[string]any {
	return map[string]any{"cwd": t.folders["A"], protocol.MCPServers: []any{}}
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
		return t.accepted(params, m)
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

// accepted looks at the answer to a request that must be accepted, and at the session that it has
// opened. Many agents store none without a message.
func (t *trial) accepted(params map[string]any, m rawrpc.Message) error {
	opens := slices.Contains(opening, t.row.Send)
	id := sessionID(m.Result)
	switch err := refusal(m, nil); {
	case m.Error != nil && m.Error.Code == protocol.CodeAuthRequired:
		return notTried("the agent wants you to sign in first")
	case err != nil && opens && t.row.After == "" && !t.Prompt:
		return notTried("%v, which may be because it has no message: --prompt", err)
	case err != nil:
		return err
	case id == "" && (t.row.Send == protocol.SessionNew || t.row.Send == protocol.SessionFork):
		return errors.New("the answer has no sessionId")
	case opens && id == "":
		_ = json.Unmarshal(params[protocol.SessionID].(json.RawMessage), &id) // the id of a session
	}
	if t.row.Makes != "" {
		t.sessions[t.row.Makes] = id
		if t.Prompt {
			_, _ = t.call(protocol.SessionPrompt, prompt(id, "Reply with one word."))
		}
	}
	if opens {
		defer t.close(id)
	}
	if t.row.Shows == nil {
		return nil
	}
	if !t.intro.offers("list") {
		return notTried("without session/list, the folders cannot be observed")
	}
	found, err := t.list(map[string]any{"cwd": t.folders["A"]})
	if err != nil {
		return err
	}
	return t.shows(found, id)
}

func prompt(session, text string) map[string]any {
	block := map[string]any{"type": "text", "text": text}
	return map[string]any{"sessionId": session, "prompt": []any{block}}
}

// close closes a session if the agent offers that: some open none that is open.
func (t *trial) close(id string) {
	if t.intro.offers("close") && t.usable() {
		_, _ = t.call(protocol.SessionClose, map[string]any{"sessionId": id})
	}
}

// listed is a session in a list.
type listed struct {
	SessionID, Cwd        string
	AdditionalDirectories []string // nil without such a member
}

// list returns the sessions of a list, from at most 20 pages.
func (t *trial) list(filter map[string]any) (all []listed, err error) {
	for range 20 {
		var page struct {
			Sessions   []listed
			NextCursor *string
		}
		if err := t.result(protocol.SessionList, filter, &page); err != nil {
			return nil, err
		}
		if page.Sessions == nil {
			return nil, errors.New("the result has no list of sessions")
		}
		if all = append(all, page.Sessions...); page.NextCursor == nil {
			return all, nil
		}
		filter["cursor"] = *page.NextCursor
	}
	return all, nil
}

// shows compares the folders that a list shows of a session. Only the draft demands that it shows
// them.
func (t *trial) shows(found []listed, id string) error {
	at := slices.IndexFunc(found, func(l listed) bool { return l.SessionID == id })
	if at < 0 {
		return errUnlisted
	}
	var want []string
	for _, folder := range t.row.Shows {
		want = append(want, t.folders[strings.TrimPrefix(folder, "$")])
	}
	switch has := found[at].AdditionalDirectories; {
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
			return name == "*" || l.SessionID == t.sessions[name]
		})
	}
	if i := slices.IndexFunc(t.row.Lacks, has); i >= 0 {
		return fmt.Errorf("it shows %d sessions, with one that it should not show", len(found))
	}
	if slices.ContainsFunc(t.row.Has, func(name string) bool { return !has(name) }) {
		return errUnlisted
	}
	if t.row.Of != "" {
		return t.shows(found, t.sessions[t.row.Of])
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
	from, id, answered := t.Count(), t.NextID(), t.row.Expect == "error"
	line := strings.ReplaceAll(t.row.Line, "$FF", "\xff")
	alive := rawrpc.Request(id, unknown, map[string]any{})
	if _, err := t.exchange(t.ctx, unknown, responseTo(id), line, alive); err != nil {
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
		return got.Method == "" && !responseTo(id)(got) && (got.Error != nil || got.Result != nil)
	})
	switch {
	case answered && err != nil:
		return errors.New("it was not answered")
	case !answered && err == nil:
		return fmt.Errorf("it was answered with %s", outcome(answer))
	}
	return nil
}

// echo sends a request with the id of the row.
func (t *trial) echo() error {
	var want any
	_ = json.Unmarshal(t.row.Echo, &want) // it is one of checks.json
	_, err := t.exchange(t.ctx, unknown, func(m rawrpc.Message) bool {
		var id any
		return m.Method == "" && json.Unmarshal(m.ID, &id) == nil && reflect.DeepEqual(id, want)
	}, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{}}`, t.row.Echo, unknown))
	return err
}
