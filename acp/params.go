package acp

import (
	"context"
	"encoding/json"
	"strings"
	"unicode"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/mcpclient"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"

	"github.com/acp-agent/acp-agent/workspace"
)

// sessionParams are the params of new, load, resume and fork, checked as far as that goes without
// the store and the file system (stage 1 of A5).
type sessionParams struct {
	id      sessionstore.ID // of load, resume and fork
	roots   workspace.Roots
	servers []mcpclient.Config
	rest    backend.Raw // without sessionId
}

// sessionFields says what a lifecycle method's params hold.
type sessionFields struct {
	shape   *strictjson.Shape
	id      presence // sessionId
	servers presence // mcpServers
}

// presence says whether a member has to be there.
type presence int

const (
	absent presence = iota // not a member of the method
	optional
	required
)

var (
	newFields    = sessionFields{shape: newShape, servers: required}
	loadFields   = sessionFields{shape: loadShape, id: required, servers: required}
	resumeFields = sessionFields{shape: loadShape, id: required, servers: optional}
	forkFields   = sessionFields{shape: loadShape, id: required, servers: optional}
)

// decodeSession reads the params of a lifecycle method, and reports everything that is wrong with them. It waits
// for an initialize that is at work, which says what MCP transports are advertised.
func (a *agent) decodeSession(ctx context.Context, params json.RawMessage, f sessionFields) (sessionParams, error) {
	if err := a.initialized(ctx); err != nil {
		return sessionParams{}, err
	}
	object, wrong := readParams(params, f.shape)
	if len(wrong) > 0 {
		return sessionParams{}, strictjson.Refuse(wrong...)
	}
	var p sessionParams
	if f.id == required {
		id, bad := object.Field("sessionId").Text()
		p.id, wrong = sessionstore.ID(id), bad
	}
	var bad []strictjson.Violation
	p.roots, bad = decodeRoots(object)
	wrong = append(wrong, bad...)
	p.servers, bad = decodeServers(object.Field("mcpServers"), f.servers, a.init.transports())
	wrong = append(wrong, bad...)
	if len(wrong) > 0 {
		return sessionParams{}, strictjson.Refuse(wrong...)
	}
	_, rest, err := takeSession(params)
	p.rest = rest
	return p, err
}

// decodeRoots reads cwd and additionalDirectories, and reports all that is wrong with either (A3, A4).
func decodeRoots(object strictjson.Object) (workspace.Roots, []strictjson.Violation) {
	cwd, wrongCwd := object.Field("cwd").Text()
	additional, wrong := directories(object.Field("additionalDirectories"))
	if wrongCwd == nil && wrong == nil {
		roots, err := workspace.NewRoots(cwd, additional)
		return roots, strictjson.ViolationsOf(err)
	}
	if wrongCwd == nil {
		_, err := workspace.ParseDir(cwd)
		wrongCwd = strictjson.ViolationsOf(err)
	}
	return workspace.Roots{}, append(wrongCwd, wrong...)
}

// directories reads additionalDirectories, which may be left out. If an entry is no string, the others are
// still checked.
func directories(field strictjson.Field) ([]string, []strictjson.Violation) {
	if !field.Present() {
		return nil, nil
	}
	paths, wrong := field.Texts()
	if wrong == nil {
		_, err := workspace.ParseDirs(paths)
		return paths, strictjson.ViolationsOf(err)
	}
	items, notArray := field.Items()
	if notArray != nil {
		return nil, notArray
	}
	wrong = nil
	for i, item := range items {
		if len(wrong) >= strictjson.MaxViolations {
			break
		}
		path, bad := item.Text()
		if bad == nil {
			_, err := workspace.ParseDirs([]string{path})
			bad = strictjson.ViolationsOf(err)
		}
		for _, v := range bad {
			wrong = append(wrong, v.At(i))
		}
	}
	return nil, wrong
}

// promptParams are the params of session/prompt.
type promptParams struct {
	id     sessionstore.ID
	blocks []json.RawMessage
	rest   backend.Raw // without sessionId
}

func decodePrompt(params json.RawMessage) (promptParams, error) {
	object, wrong := readParams(params, promptShape)
	if len(wrong) > 0 {
		return promptParams{}, strictjson.Refuse(wrong...)
	}
	id, wrong := object.Field("sessionId").Text()
	blocks, bad := object.Field("prompt").Items()
	wrong = append(wrong, bad...)
	p := promptParams{id: sessionstore.ID(id)}
	for _, block := range blocks {
		if len(wrong) >= strictjson.MaxViolations {
			break
		}
		p.blocks = append(p.blocks, block.Raw())
		wrong = append(wrong, checkBlock(block)...)
	}
	if len(wrong) > 0 {
		return promptParams{}, strictjson.Refuse(wrong...)
	}
	var err error
	_, p.rest, err = takeSession(params)
	return p, err
}

// checkBlock refuses a prompt entry that is no content block.
func checkBlock(block strictjson.Field) []strictjson.Violation {
	object, wrong := block.Object()
	if wrong != nil {
		return wrong
	}
	kind, wrong := object.Field("type").Text()
	if kind == "text" {
		_, wrong = object.Field("text").Text()
	}
	return wrong
}

// updates are the prompt as the history keeps it.
func (p promptParams) updates() []sessionstore.Update {
	updates := make([]sessionstore.Update, len(p.blocks))
	for i, block := range p.blocks {
		updates[i] = sessionstore.Update(`{"update":{"sessionUpdate":"user_message_chunk","content":` + string(block) + `}}`)
	}
	return updates
}

// maxTitle bounds a title, in characters.
const maxTitle = 80

// title is the first line of the prompt's text, bounded (A29).
func (p promptParams) title() string {
	for _, block := range p.blocks {
		var text struct{ Type, Text string }
		if json.Unmarshal(block, &text) != nil || text.Type != "text" {
			continue
		}
		for line := range strings.Lines(text.Text) {
			if title := cutTitle(line); title != "" {
				return title
			}
		}
	}
	return ""
}

// cutTitle makes one bounded line of s.
func cutTitle(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	runes := []rune(s)
	if len(runes) > maxTitle {
		return strings.TrimSpace(string(runes[:maxTitle-1])) + "…"
	}
	return s
}

func decodeSessionID(params json.RawMessage) (sessionstore.ID, error) {
	object, wrong := readParams(params, sessionShape)
	if len(wrong) > 0 {
		return "", strictjson.Refuse(wrong...)
	}
	id, wrong := object.Field("sessionId").Text()
	return sessionstore.ID(id), strictjson.Refuse(wrong...)
}

// listParams are the params of session/list.
type listParams struct {
	cwd        workspace.Dir // zero for no filter
	additional workspace.Dirs
	filtered   bool // by additional, which may be empty
	cursor     sessionstore.Cursor
}

// query looks up the real paths of the filters, and so takes its time.
func (p listParams) query(owner sessionstore.Agent) sessionstore.Query {
	q := sessionstore.Query{Agent: owner, Cursor: p.cursor}
	if !p.cwd.IsZero() {
		q.Cwd = sessionstore.FilterDir(p.cwd)
	}
	if p.filtered {
		q.Additional = sessionstore.FilterDirs(p.additional)
	}
	return q
}

// decodeList reads session/list's filters and cursor (A16).
func decodeList(params json.RawMessage) (listParams, error) {
	object, wrong := readParams(params, listShape)
	if len(wrong) > 0 {
		return listParams{}, strictjson.Refuse(wrong...)
	}
	var p listParams
	if path, given, bad := optionalText(object.Field("cwd")); bad != nil {
		wrong = append(wrong, bad...)
	} else if given {
		var err error
		p.cwd, err = workspace.ParseDir(path)
		wrong = append(wrong, strictjson.ViolationsOf(err)...)
	}
	if field := object.Field("additionalDirectories"); field.Present() {
		paths, bad := directories(field)
		wrong = append(wrong, bad...)
		dirs, _ := workspace.ParseDirs(paths) // checked by directories
		p.additional, p.filtered = dirs.Without(p.cwd), true
	}
	if cursor, given, bad := optionalText(object.Field("cursor")); bad != nil {
		wrong = append(wrong, bad...)
	} else if p.cursor = sessionstore.Cursor(cursor); given && cursor == "" {
		wrong = append(wrong, object.Field("cursor").Refuse(strictjson.InvalidCursor))
	}
	return p, strictjson.Refuse(wrong...)
}

// optionalText reads a string that may be absent, or null, which means the same.
func optionalText(field strictjson.Field) (text string, given bool, bad []strictjson.Violation) {
	if !field.Present() || field.IsNull() {
		return "", false, nil
	}
	text, bad = field.Text()
	return text, bad == nil, bad
}
