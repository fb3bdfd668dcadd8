package conform

import (
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// clientJSON has the checks of [ServeClient].
//
//go:embed client.json
var clientJSON []byte

// clientCheck is a question about an editor, with what a person does so that it can be answered.
type clientCheck struct {
	Check
	Step string
}

// The ids of our requests: one that no editor knows, and a question.
const (
	unknownID  = 1
	questionID = 2
)

// editor is the connection to an editor, for which we are the agent.
type editor struct {
	*rawrpc.Conn
	checks  []clientCheck
	results map[string]error // of checks that were tried, by id
	turn    json.RawMessage  // the id of the running prompt, which waits for an answer
	session string           // in which it runs
	about   string           // the check that the answer is about
}

// ServeClient is an agent that checks its editor until in ends. Its answer to a prompt says what
// came out so far, and what to do next.
func ServeClient(ctx context.Context, in io.Reader, out io.Writer) error {
	e := &editor{results: map[string]error{}}
	if err := json.Unmarshal(clientJSON, &e.checks); err != nil {
		return err
	}
	e.Conn = rawrpc.New(in, out, 0)
	for from := 0; ; from++ {
		m, _, err := e.Await(ctx, from, func(rawrpc.Message) bool { return true })
		if errors.Is(err, rawrpc.ErrEnded) {
			return nil
		}
		if err != nil {
			return err
		}
		if lines := e.serve(m); lines != nil {
			if err := e.Send(lines...); err != nil {
				return err
			}
		}
	}
}

// note records what a check came to. One failure is enough.
func (e *editor) note(id string, err error) {
	if e.results[id] == nil {
		e.results[id] = err
	}
}

// serve returns the lines that answer a message of the editor.
func (e *editor) serve(m rawrpc.Message) []string {
	var params struct {
		ProtocolVersion       json.RawMessage
		SessionID, Cwd        string
		AdditionalDirectories []string
		Prompt                []struct{ Text string }
	}
	_ = json.Unmarshal(m.Params, &params) // a member of another type is as if it were missing
	roots := append([]string{params.Cwd}, params.AdditionalDirectories...)
	switch m.Method {
	case "":
		return e.answered(m)
	case protocol.Initialize:
		var err error
		if string(params.ProtocolVersion) != "1" {
			err = fmt.Errorf("it asks for %s", params.ProtocolVersion)
		}
		e.note("W10.client", err)
		return []string{response(m.ID, `{"protocolVersion":1,`+
			`"agentInfo":{"name":"acp-agent conform","version":"1"},"agentCapabilities":`+
			`{"loadSession":true,"sessionCapabilities":{"additionalDirectories":{}}}}`)}
	case protocol.SessionNew:
		e.judgeFolders(roots)
		had, _ := json.Marshal(roots) // texts
		id := fmt.Sprintf("%d-%s", time.Now().UnixNano(), base64.RawURLEncoding.EncodeToString(had))
		return []string{response(m.ID, fmt.Sprintf(`{"sessionId":%q}`, id))}
	case protocol.SessionLoad:
		e.judgeFolders(roots)
		e.note("P3.load", compareFolders(params.SessionID, roots))
		return []string{response(m.ID, `{}`)}
	case protocol.SessionPrompt:
		if e.turn != nil {
			e.note(e.about, errors.New("it was not answered"))
		}
		e.turn, e.session, e.about = m.ID, params.SessionID, "W4.client"
		if len(params.Prompt) > 0 && strings.TrimSpace(params.Prompt[0].Text) == "ask" {
			e.about = "W6.client"
			return []string{e.question()}
		}
		return []string{e.update(map[string]any{"sessionUpdate": "conform_unknown"}),
			rawrpc.Request(unknownID, unknown, map[string]any{})}
	}
	if m.ID == nil {
		return nil
	}
	return []string{fmt.Sprintf(
		`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}`, m.ID)}
}

func response(id json.RawMessage, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// compareFolders compares the folders of a session with those that it was made with, which are part
// of its id.
func compareFolders(id string, roots []string) error {
	var had []string
	_, encoded, _ := strings.Cut(id, "-")
	decoded, err := base64.RawURLEncoding.DecodeString(encoded)
	if err == nil {
		err = json.Unmarshal(decoded, &had)
	}
	if err == nil && !slices.Equal(had, roots) {
		err = fmt.Errorf("it had %q, and is loaded with %q", had, roots)
	}
	return err
}

// question returns a question to the user, whose answer ends the turn.
func (e *editor) question() string {
	option := map[string]string{
		"optionId": "no", "name": "Do not choose this", "kind": "reject_once",
	}
	call := map[string]string{"toolCallId": "1", "title": "Stop the turn while this is open"}
	return rawrpc.Request(questionID, protocol.RequestPermission, map[string]any{
		"sessionId": e.session, "toolCall": call, "options": []any{option},
	})
}

func (e *editor) update(u map[string]any) string {
	params := map[string]any{"sessionId": e.session, "update": u}
	return rawrpc.Notification(protocol.SessionUpdate, params)
}

// answered looks at the editor's answer to one of our requests, and ends the turn.
func (e *editor) answered(m rawrpc.Message) []string {
	var err error
	reason := "end_turn"
	switch {
	case e.turn == nil:
		return nil
	case m.IsResponse(fmt.Sprint(unknownID)):
		if m.Error == nil || m.Error.Code != jsonrpc.CodeMethodNotFound {
			err = fmt.Errorf("it was answered with %s", outcome(m))
		}
		e.note("W4.client", err)
		e.note("A37.client", nil) // it has read the update before
	case m.IsResponse(fmt.Sprint(questionID)):
		var result struct{ Outcome struct{ Outcome string } }
		if m.Decode(&result) != nil || result.Outcome.Outcome != "cancelled" {
			err = fmt.Errorf("it was answered with %s", text.Line(string(m.Result), 100))
		}
		e.note("W6.client", err)
		reason = "cancelled"
	}
	content := map[string]string{"type": "text", "text": e.report()}
	lines := []string{
		e.update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": content}),
		response(e.turn, fmt.Sprintf(`{"stopReason":%q}`, reason)),
	}
	e.turn = nil
	return lines
}

// judgeFolders looks at the folders of a session.
func (e *editor) judgeFolders(roots []string) {
	var absolute, unique error
	for i, root := range roots {
		if !filepath.IsAbs(root) {
			absolute = fmt.Errorf("%q is none", root)
		}
		if slices.Contains(roots[:i], root) {
			unique = fmt.Errorf("%q is", root)
		}
	}
	e.note("P2.absolute", absolute)
	e.note("P2.unique", unique)
	if len(roots) > 1 {
		e.note("P1.folders", nil)
	}
}

// report returns what came out so far, in Markdown.
func (e *editor) report() string {
	var b strings.Builder
	var steps []string
	for _, c := range e.checks {
		err, tried := e.results[c.ID]
		mark, why := "✓", ""
		switch {
		case !tried && c.Step != "" && !slices.Contains(steps, c.Step):
			steps = append(steps, c.Step)
			fallthrough
		case !tried:
			mark = "–"
		case err != nil:
			mark, why = "✗", ": "+err.Error()
		}
		fmt.Fprintf(&b, "- %s %s (%s): %s%s\n", mark, c.ID, c.Level, c.Sentence, why)
	}
	if steps != nil {
		b.WriteString("\nNext:\n\n1. " + strings.Join(steps, "\n1. ") + "\n")
	}
	return b.String()
}
