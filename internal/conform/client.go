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
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// clientJSON has the checks of [ServeClient] before they are tried. Their reason is what a person
// does so that they are.
//
//go:embed client.json
var clientJSON []byte

// The ids of our requests: one that no editor knows, and a question.
const (
	unknownID  = 1
	questionID = 2
)

// editor is the connection to an editor, for which we are the agent.
type editor struct {
	*rawrpc.Conn
	report  Report
	show    func(Report) string
	turn    json.RawMessage // the id of the running prompt, which waits for an answer
	session string          // in which it runs
	about   string          // the check that the answer is about
}

// ServeClient is an agent that checks its editor until in ends. It answers a prompt with what show
// returns of the report so far.
func ServeClient(
	ctx context.Context, in io.Reader, out io.Writer, version string, show func(Report) string,
) (Report, error) {
	e := &editor{Conn: rawrpc.New(in, out, 0), report: newReport(version), show: show}
	if err := json.Unmarshal(clientJSON, &e.report.Checks); err != nil {
		return Report{}, err
	}
	err := e.Each(ctx, e.serve)
	e.report.count()
	if errors.Is(err, rawrpc.ErrEnded) {
		err = nil
	}
	return e.report, err
}

// note records what a check came to because of a message. One failure is enough.
func (e *editor) note(id string, m rawrpc.Message, err error) {
	at := slices.IndexFunc(e.report.Checks, func(r Result) bool { return r.ID == id })
	if r := &e.report.Checks[at]; r.Verdict != Fail {
		r.Verdict, r.Reason = r.verdict(err)
		r.Received = nil
		if err != nil {
			r.Received = []string{masked(m.Raw)}
		}
	}
}

// serve answers a message of the editor.
func (e *editor) serve(m rawrpc.Message) error {
	var params struct {
		ProtocolVersion       json.RawMessage
		ClientInfo            info
		SessionID, Cwd        string
		AdditionalDirectories []string
		Prompt                []struct{ Text string }
	}
	_ = json.Unmarshal(m.Params, &params) // a member of another type is as if it were missing
	roots := append([]string{params.Cwd}, params.AdditionalDirectories...)
	result := "{}"
	switch m.Method {
	case "":
		return e.answered(m)
	case protocol.Initialize:
		var err error
		if string(params.ProtocolVersion) != "1" {
			err = fmt.Errorf("it asks for %s", params.ProtocolVersion)
		}
		e.note("W10.client", m, err)
		e.report.AgentInfo, e.report.ProtocolVersion = params.ClientInfo, params.ProtocolVersion
		result = `{"protocolVersion":1,"agentInfo":{"name":"acp-agent conform","version":"1"},` +
			`"agentCapabilities":{"loadSession":true,"sessionCapabilities":` +
			`{"additionalDirectories":{},"close":{},"fork":{},"resume":{}}}}`
	case protocol.SessionNew, protocol.SessionFork:
		e.judgeFolders(m, roots)
		had, _ := json.Marshal(roots) // texts
		result = fmt.Sprintf(`{"sessionId":"%d-%s"}`, time.Now().UnixNano(),
			base64.RawURLEncoding.EncodeToString(had))
	case protocol.SessionLoad, protocol.SessionResume:
		e.judgeFolders(m, roots)
		e.note("P3.load", m, compareFolders(params.SessionID, roots))
	case protocol.SessionClose:
	case protocol.SessionPrompt:
		if e.turn != nil {
			e.note(e.about, m, errors.New("it was not answered"))
		}
		e.turn, e.session, e.about = m.ID, params.SessionID, "W4.client"
		if len(params.Prompt) > 0 && strings.TrimSpace(params.Prompt[0].Text) == "ask" {
			e.about = "W6.client"
			return e.ask()
		}
		return e.Send(e.update(map[string]any{"sessionUpdate": "conform_unknown"}),
			rawrpc.Request(unknownID, unknown, map[string]any{}))
	default:
		if m.ID == nil {
			return nil
		}
		return e.Send(fmt.Sprintf(
			`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}`, m.ID))
	}
	return e.Send(response(m.ID, result))
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
		err = fmt.Errorf("it had %q, and is opened with %q", had, roots)
	}
	return err
}

// ask asks the user a question, whose answer ends the turn.
func (e *editor) ask() error {
	option := map[string]string{
		"optionId": "no", "name": "Do not choose this", "kind": "reject_once",
	}
	call := map[string]string{"toolCallId": "1", "title": "Stop the turn while this is open"}
	return e.Send(rawrpc.Request(questionID, protocol.RequestPermission, map[string]any{
		"sessionId": e.session, "toolCall": call, "options": []any{option},
	}))
}

func (e *editor) update(u map[string]any) string {
	params := map[string]any{"sessionId": e.session, "update": u}
	return rawrpc.Notification(protocol.SessionUpdate, params)
}

// answered looks at the editor's answer to one of our requests, and ends the turn.
func (e *editor) answered(m rawrpc.Message) error {
	var err error
	reason := "end_turn"
	switch {
	case e.turn == nil:
		return nil
	case m.IsResponse(fmt.Sprint(unknownID)):
		if m.Error == nil || m.Error.Code != jsonrpc.CodeMethodNotFound {
			err = fmt.Errorf("it was answered with %s", outcome(m))
		}
		e.note("W4.client", m, err)
		e.note("A37.client", m, nil) // it has read the update before
	case m.IsResponse(fmt.Sprint(questionID)):
		var result struct{ Outcome struct{ Outcome string } }
		if m.Decode(&result) != nil || result.Outcome.Outcome != "cancelled" {
			err = fmt.Errorf("it was answered with %s", outcome(m))
		}
		e.note("W6.client", m, err)
		reason = "cancelled"
	}
	e.report.count()
	content := map[string]string{"type": "text", "text": e.show(e.report)}
	turn := e.turn
	e.turn = nil
	return e.Send(
		e.update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": content}),
		response(turn, fmt.Sprintf(`{"stopReason":%q}`, reason)))
}

// judgeFolders looks at the folders of a session.
func (e *editor) judgeFolders(m rawrpc.Message, roots []string) {
	var absolute, unique error
	for i, root := range roots {
		if !filepath.IsAbs(root) {
			absolute = fmt.Errorf("%q is not absolute", root)
		}
		if slices.Contains(roots[:i], root) {
			unique = fmt.Errorf("%q is repeated", root)
		}
	}
	e.note("P2.absolute", m, absolute)
	e.note("P2.unique", m, unique)
	if len(roots) > 1 {
		e.note("P1.folders", m, nil)
	}
}
