package acp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/listing"
	"github.com/acp-agent/acp-agent/acp/internal/session/access"
	"github.com/acp-agent/acp-agent/acp/internal/session/gate"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/workspace"
)

// published is the schema that the shapes are read off.
const published = "@agentclientprotocol/sdk/schema/v1/schema.json"

// definitions are the schema's $defs by name.
type definitions map[string]*jsonschema.Schema

func readDefinitions(t *testing.T) definitions {
	t.Helper()
	text, err := os.ReadFile(npmtest.File(t, "testdata/node", published))
	require.NoError(t, err)
	var document jsonschema.Schema
	require.NoError(t, json.Unmarshal(text, &document))
	return document.Defs
}

// flatten is d with what it refers to and all of its variants joined, as a shape joins them.
func (all definitions) flatten(d *jsonschema.Schema) *jsonschema.Schema {
	const local = "#/$defs/"
	joined := &jsonschema.Schema{Properties: maps.Clone(d.Properties), Items: d.Items}
	if joined.Properties == nil {
		joined.Properties = definitions{}
	}
	parts := slices.Concat(d.AllOf, d.AnyOf, d.OneOf)
	if d.Ref != "" {
		parts = append(parts, all[d.Ref[len(local):]])
	}
	for _, part := range parts {
		part = all.flatten(part)
		maps.Copy(joined.Properties, part.Properties)
		if part.Items != nil {
			joined.Items = part.Items
		}
	}
	return joined
}

// compare holds a shape against a definition, as deep as that names members. The shape also has ours,
// by place.
func (all definitions) compare(
	t *testing.T, place string, s *strictjson.Shape, d *jsonschema.Schema, ours map[string][]string,
) {
	t.Helper()
	d = all.flatten(d)
	switch {
	case s == nil:
		require.Empty(t, d.Properties, "%s has no shape", place)
		if d.Items != nil {
			all.compare(t, place+"[]", nil, d.Items, ours)
		}
		return
	case s.Fields == nil:
		require.NotNil(t, d.Items, "%s is not an array", place)
		all.compare(t, place+"[]", s.Items, d.Items, ours)
		return
	}
	want := slices.Sorted(maps.Keys(d.Properties))
	want = slices.Compact(slices.Sorted(slices.Values(append(want, ours[place]...))))
	require.Equal(t, want, slices.Sorted(maps.Keys(s.Fields)), "members of %s", place)
	for name, member := range s.Fields {
		if name != "_meta" && d.Properties[name] != nil {
			all.compare(t, place+"."+name, member, d.Properties[name], ours)
		}
	}
}

// The keys whose case is checked are those of the schema, so that none is forgotten when it grows.
//
// Clause W2.
func TestShapes(t *testing.T) {
	all := readDefinitions(t)
	drafts := map[string][]string{ // what they add
		"InitializeRequest.clientCapabilities":                    {"plan", "subagents"},
		"InitializeRequest.clientCapabilities.session":            {"promptSuggestions"},
		"InitializeRequest.clientCapabilities.session.compaction": {"_meta"},
		"InitializeRequest.clientCapabilities.session.notices":    {"_meta"},
		"ListSessionsRequest":                                     {"additionalDirectories", protocol.Archived},
		// It is stable, but not yet in the newest published schema.
		"NewSessionRequest": {protocol.SystemPrompt}, "LoadSessionRequest": {protocol.SystemPrompt},
		"ResumeSessionRequest": {protocol.SystemPrompt},
	}
	for request, shape := range map[string]*strictjson.Shape{
		"InitializeRequest": initializeShape, "NewSessionRequest": newShape,
		"LoadSessionRequest": loadShape, "ResumeSessionRequest": loadShape,
		"PromptRequest": promptShape, "ListSessionsRequest": listShape,
		"CloseSessionRequest": idShape, "DeleteSessionRequest": idShape,
		"AuthenticateRequest":           methodOf("authenticate").shape,
		"LogoutRequest":                 methodOf("logout").shape,
		"SetSessionModeRequest":         methodOf("session/set_mode").shape,
		"SetSessionConfigOptionRequest": methodOf("session/set_config_option").shape,
	} {
		t.Run("W2/"+request, func(t *testing.T) {
			require.Contains(t, all, request)
			all.compare(t, request, shape, all[request], drafts)
		})
	}
}

// namesAPath is how the schema describes a member that holds a path.
var namesAPath = regexp.MustCompile(`(?i)\b(path|directory)\b`)

// Of every request by which an agent reaches files or commands of the client, every member that the
// schema calls a path is checked.
//
// Clause P4.
func TestPaths(t *testing.T) {
	w := roottest.Open(t, t.TempDir())
	outside := t.TempDir()
	var paths []string
	for name, d := range readDefinitions(t) {
		method, _ := d.Extra["x-method"].(string)
		if d.Extra["x-side"] != "client" || !strings.HasSuffix(name, "Request") ||
			!strings.HasPrefix(method, "fs/") && !strings.HasPrefix(method, "terminal/") {
			continue
		}
		for member, p := range d.Properties {
			if member == "_meta" || !namesAPath.MatchString(p.Description) {
				continue
			}
			paths = append(paths, method+" "+member)
			params, err := json.Marshal(
				map[string]string{member: outside, "command": "x", "content": ""})
			require.NoError(t, err)
			require.ErrorContains(t, access.CheckPaths(w, method, backend.Raw(params)), "outside",
				"%s of %s", member, method)
		}
	}
	slices.Sort(paths)
	require.Equal(t,
		[]string{"fs/read_text_file path", "fs/write_text_file path", "terminal/create cwd"}, paths)
}

// The table of methods says what is served, and what roles may send. Whatever else there is needs
// every right.
//
// Clauses A37, N4.
func TestMethods(t *testing.T) {
	needs := map[string]right{
		protocol.Initialize: toSee, protocol.SessionList: toSee, protocol.SessionLoad: toSee,
		protocol.SessionResume: toSee, protocol.SessionClose: toSee, protocol.SessionStatus: toSee,
		protocol.CancelRequest: toSee, protocol.SessionCancel: toAnswer,
	}
	tables, err := os.ReadFile("../internal/wire/protocol/tables.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(tables)) {
		columns := strings.Split(strings.TrimSpace(line), "\t")
		if columns[0] != "method" {
			continue
		}
		side, name, handling, why := columns[1], columns[2], columns[3], columns[4:]
		row := methodOf(name)
		require.Equal(t, cmp.Or(needs[name], toAct), row.needs, name)
		if side != "agent" {
			continue
		}
		served := handling == string(protocol.Served)
		require.Equal(t, served, row.accept != nil, name)
		require.Equal(t, served, len(why) == 0, name)
		if strings.HasPrefix(name, protocol.SessionPrefix) {
			require.NotNil(t, row.shape, "%s has no row", name)
		}
	}
	for _, audited := range []string{protocol.SessionDelete, protocol.SessionArchive,
		protocol.SessionUnarchive, protocol.SessionSetTitle, protocol.Authenticate,
		protocol.Logout} {
		require.NotEmpty(t, methodOf(audited).did, audited)
	}
	for _, need := range []right{toAct, toAnswer, toSee} {
		require.True(t, RoleFull.has(need))
		require.True(t, Role("").has(need))
		require.Equal(t, need != toAct, RoleAnswer.has(need))
		require.Equal(t, need == toSee, RoleWatch.has(need))
		require.False(t, Role("other").has(need))
	}
}

// What the user is told when a session is opened, and what with the next prompt.
//
// Clause A34.
func TestNoticesOfOpening(t *testing.T) {
	cwd, err := workspace.ParseDir(t.TempDir())
	require.NoError(t, err)
	source := func(turns int64, title string) (o listing.Openable) {
		o.Turns, o.Title, o.Keys.Roots = turns, title, workspace.RootsFrom(cwd, workspace.Dirs{})
		return o
	}
	broad := func(known workspace.Roots) string {
		return map[bool]string{true: "all", false: "new"}[known.IsZero()]
	}
	all := findings{moved: "moved ", said: "said ", dropped: "lost ", broad: broad}
	tells := func(o opening, before *pendingNotice, now string, next pendingNotice) {
		told, later := o.notices(before, all)
		require.Equal(t, now, told)
		require.Equal(t, next, later)
	}
	used, unsaid := source(2, "title"), &pendingNotice{"unsaid ", true}
	load := func(of listing.Openable) opening { return opening{cause: backend.Load, source: of} }
	first := pendingNotice{"said lost all", false}
	tells(opening{cause: backend.New}, nil, "moved ", first)
	tells(opening{cause: backend.Fork, source: used}, nil, "moved ", first)
	tells(load(used), unsaid, "moved said ", pendingNotice{"unsaid lost new", true})
	tells(load(used), nil, "moved said ", pendingNotice{"lost new", true})
	tells(load(source(0, "")), nil, "moved said ", pendingNotice{"lost all", false})
	tells(load(source(0, "title")), nil, "moved said ", pendingNotice{"lost all", true})
	tells(opening{cause: backend.Resume, forAll: true}, unsaid, "moved said ", *unsaid)
}

// The title of a notice is never empty, and can stand alone.
//
// Clause A37.
func TestNewNotice(t *testing.T) {
	long := strings.Repeat("word ", 100)
	for said, want := range map[string]string{
		"Gone.":            `"title":"Gone."`,
		"Gone. Go on.":     `"title":"Gone.","description":"Go on."`,
		"Gone\nGo on. Ok.": `"title":"Gone","description":"Go on. Ok."`,
		long:               `"description":"` + long + `"`,
	} {
		raw := newNotice(said).String()
		require.Contains(t, raw, want)
		require.NotContains(t, raw, `"title":""`)
		require.Equal(t, strings.Contains(want, "description"),
			strings.Contains(raw, "description"), raw)
	}
}

// What a client that does not act says of itself and of sessions is left out, however it is
// spelled.
func TestRequestsOfRoles(t *testing.T) {
	for _, name := range []string{"clientCapabilities", "CLIENTCAPABILITIES", "clientcapabilities"} {
		r := &jsonrpc.Request{Method: protocol.Initialize, Params: fmt.Appendf(nil,
			`{"protocolVersion":1,"%s":{"fs":{"readTextFile":true},"terminal":true},"_meta":{}}`, name)}
		RoleFull.narrow(r)
		require.Contains(t, string(r.Params), "terminal")
		RoleAnswer.narrow(r)
		require.JSONEq(t, `{"protocolVersion":1,"clientCapabilities":`+onlyQuestions+`}`, string(r.Params))
	}
	for _, method := range []string{protocol.SessionLoad, protocol.SessionResume} {
		r := &jsonrpc.Request{Method: method, Params: json.RawMessage(`{"sessionId":"s","cwd":"/a",` +
			`"additionalDirectories":["/b"],"ADDITIONALDIRECTORIES":["/c"],"mcpServers":[{"name":"x"}],` +
			`"systemPrompt":{},"_meta":{"a":1}}`)}
		RoleWatch.narrow(r)
		require.JSONEq(t, `{"sessionId":"s","cwd":"/a","mcpServers":[]}`, string(r.Params))
		for _, params := range []string{`[]`, `7`, `{`, ``} {
			r.Params = json.RawMessage(params)
			RoleWatch.narrow(r)
			require.True(t, strictjson.IsObject(r.Params), params)
		}
	}
}

// A request that goes on after its agent has ended opens no session.
func TestEndedAgentTakesNoSlot(t *testing.T) {
	s := NewServer(ServerOptions{})
	owner, err := s.begin(Peer{})
	require.NoError(t, err)
	a := &adapter{home: &home{owner: owner}, uses: newUses()}
	release, err := a.take(sessionSlot)
	require.NoError(t, err)
	a.uses.remove()
	release()
	release()
	<-a.uses.none
	_, err = a.take(sessionSlot)
	require.ErrorIs(t, err, backend.ErrClosed)
	require.Equal(t, Limits{Connections: 1}, s.Used())
}

type foreignAction struct{}

func (foreignAction) IsAction() {}

// No rule can be compared with an action that the adapter does not know, so a question that only
// rules may raise is put to the user.
//
// Clause R5.
func TestForeignActionIsAsked(t *testing.T) {
	w := roottest.Open(t, t.TempDir())
	permits := permission.NewPermits(permission.NewSessionGrants("s"), w, consent.NewStore(""), worktree.Origins{},
		func(workspace.Dir) *permission.Permissions {
			return &permission.Permissions{Deny: []string{"run touch"}}
		})
	h := &host{common: &common{access: access.New(access.Options{Permits: permits}),
		gate: gate.New((*session).storeState)}}
	h.gate.Advance(gate.Closed) // so that asking fails
	denied := permission.Action{Verb: permission.Run, Command: permission.Command{Line: "touch x"}}
	for _, action := range []backend.Action{foreignAction{}, &denied, denied} {
		_, err := h.Ask(t.Context(), backend.Question{OnlyByRule: true, Action: action})
		require.ErrorIs(t, err, backend.ErrClosed, "%T", action)
	}
	_, err := h.Ask(t.Context(), backend.Question{OnlyByRule: true})
	require.NoError(t, err, "no rule decides about nothing")
}
