package mcpserver

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/internal/mcproots"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

const (
	// modern is the first revision in which a server asks within results, and nobody sends initialize.
	modern = "2026-07-28"
	// legacy is the last revision before.
	legacy = "2025-11-25"
)

// asking says when a client that sent initialize may be asked for its roots.
type asking int

const (
	// atOnce: whenever they may have changed, as a stdio client can be.
	atOnce asking = iota
	// withinCalls: only while it waits for the answer of a call, since else nobody may be listening.
	withinCalls
)

// client is one connection, or over HTTP one session, or one request of a client that has none.
type client struct {
	server *Server
	ask    asking

	mu       sync.Mutex
	begun    bool                       // initialize came
	follower *mcproots.Follower[*scope] // from then on, if the client has roots and they are used
}

// receive looks at what the client says of itself and its roots, before the SDK serves it.
func (c *client) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (_ mcp.Result, err error) {
		defer c.server.recovered(method, &err)
		switch method {
		case "initialize":
			if err := c.begin(r); err != nil {
				return nil, err
			}
		case "notifications/initialized":
			if f := c.following(); f != nil && c.ask == atOnce {
				f.AskNow(ctx)
			}
		case "notifications/roots/list_changed":
			if f := c.following(); f != nil && c.ask == atOnce {
				f.AskNow(ctx)
			} else if f != nil {
				f.Changed()
			}
		case "prompts/list":
			return c.listPrompts(ctx, r)
		case "prompts/get":
			ctx = promptNamed(ctx, r)
		}
		return next(ctx, method, r)
	}
}

// begin notes what an initialize says. The error is that there are too many sessions.
func (c *client) begin(r mcp.Request) error {
	params, ok := r.GetParams().(*mcp.InitializeParams)
	session, connected := r.GetSession().(*mcp.ServerSession)
	if !ok || params == nil || !connected {
		return nil
	}
	if params.ProtocolVersion >= modern {
		params.ProtocolVersion = legacy // else the SDK would take who sends initialize for one that is asked within results
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun {
		return nil // the SDK refuses it
	}
	if err := c.server.watch(session, c); err != nil {
		return err
	}
	c.begun = true
	if c.server.fixed != nil || params.Capabilities == nil || params.Capabilities.RootsV2 == nil {
		return nil
	}
	o := mcproots.FollowOptions[*scope]{
		Timeout: c.server.options.Timeout,
		Ask:     func(ctx context.Context) (*scope, error) { return c.server.asked(ctx, session) },
		Drop:    (*scope).close,
	}
	if !params.Capabilities.RootsV2.ListChanged {
		o.MaxAge = c.server.options.MaxAge
	}
	c.follower = mcproots.NewFollower(o)
	return nil
}

// following is the client's follower, nil if its roots are not used.
func (c *client) following() *mcproots.Follower[*scope] {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.follower
}

// gone says that the client will not answer any more.
func (c *client) gone() {
	if f := c.following(); f != nil {
		f.Gone()
	}
}

// asked asks a client that sent initialize for its roots, and opens them.
func (s *Server) asked(ctx context.Context, session *mcp.ServerSession) (*scope, error) {
	list, err := session.ListRoots(ctx, nil)
	if err != nil {
		if ctx.Err() == nil {
			s.log.Warn("the client does not say its roots", "error", err)
		}
		return nil, fmt.Errorf("the client does not say its roots: %w", err)
	}
	return s.listed(ctx, list)
}

// listed opens the roots of a client's list.
func (s *Server) listed(ctx context.Context, list *mcp.ListRootsResult) (*scope, error) {
	offers, err := mcproots.Offers(list)
	if err != nil {
		s.log.Warn("a client's list of roots is too long", "error", err)
	}
	return s.offered(ctx, offers)
}

// rootsKey names the question for the roots in a result.
const rootsKey = "roots"

// needed says what a request needs of the scope.
type needed int

const (
	// files: some that can be reached.
	files needed = iota
	// anything: also one that says why nothing can be.
	anything
)

// errQuestion: the client is to be asked for its roots within the result.
var errQuestion = errors.New("the client is asked for its roots first")

// asker is a request in the course of which a client can be asked for its roots.
type asker struct {
	revision     string
	capabilities *mcp.ClientCapabilities
	responses    mcp.InputResponseMap
	state        string   // what came back with the responses
	parts        [][]byte // what the request is, as it was when the question was asked
}

// within calls use with the scope of a request. It returns errQuestion if the client is to be asked first, and a
// *[jsonrpc.Error] for a client that is to be told by one.
func (c *client) within(ctx context.Context, a asker, n needed, use func(*scope) error) error {
	switch s := c.server; {
	case s.fixed != nil:
		return use(s.fixed)
	case a.revision >= modern:
		return c.withinModern(ctx, a, n, use)
	default:
		f := c.following()
		if f == nil {
			return c.withoutRoots(use)
		}
		used := false
		err := f.Use(ctx, func(sc *scope) error {
			used = true
			return use(sc)
		})
		if used || ctx.Err() != nil {
			return err
		}
		return use(closed(fromClient, err.Error(), nil))
	}
}

// withinModern is within for a client that is asked within results.
func (c *client) withinModern(ctx context.Context, a asker, n needed, use func(*scope) error) error {
	s := c.server
	if a.capabilities == nil || a.capabilities.RootsV2 == nil {
		if s.fallback == nil && n == files {
			return errNoRoots()
		}
		return c.withoutRoots(use)
	}
	if a.state != "" && !s.seal.matches(a.state, a.parts...) {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState is not that of the question for this request: call again without it"}
	}
	answer, answered := a.responses[rootsKey]
	if !answered || a.state == "" {
		return errQuestion
	}
	s.warnDeprecated(a.revision)
	list, ok := answer.(*mcp.ListRootsResult)
	if !ok {
		return use(closed(fromClient, "the client's answer is not a list of roots", nil))
	}
	sc, err := s.listed(ctx, list)
	if err != nil {
		return err
	}
	defer sc.close()
	return use(sc)
}

// withoutRoots is the scope of a client without the roots capability.
func (c *client) withoutRoots(use func(*scope) error) error {
	if sc := c.server.fallback; sc != nil {
		return use(sc)
	}
	return use(closed(fromNowhere, "the client has no roots capability, and the server was started without --root or --fallback-root", nil))
}

// errNoRoots tells a modern client what it would have to be capable of.
func errNoRoots() error {
	return &jsonrpc.Error{
		Code:    mcp.CodeMissingRequiredClientCapabilities,
		Message: "this needs the client's roots: declare the roots capability, or start the server with --root DIR",
		Data:    []byte(`{"requiredCapabilities":{"roots":{}}}`),
	}
}

// source says where a scope comes from.
type source string

const (
	configured  source = "configured"
	fromClient  source = "client"
	fallback    source = "fallback"
	fromNowhere source = "none"
)

// scope is what one call, or the calls of one client, can reach. It is safe for concurrent use.
type scope struct {
	source  source
	entries []entry
	note    string               // why nothing is accessible, "" if something is
	ws      *workspace.Workspace // nil if nothing is accessible
	tools   *tools.Set
}

// entry is a root that was named, and what became of it.
type entry struct {
	offered mcproots.Offered
	opened  *workspace.Root
}

// closed is a scope in which nothing is accessible.
func closed(from source, note string, entries []entry) *scope {
	return &scope{source: from, note: note, entries: entries, tools: tools.New(nil, tools.Options{})}
}

// configured opens roots that the user named. All are opened, or none.
func (s *Server) configured(ctx context.Context, from source, roots workspace.Roots) (*scope, error) {
	ws, err := workspace.Open(ctx, roots, s.options.Workspace)
	if err != nil {
		return nil, err
	}
	sc := &scope{source: from, ws: ws, tools: tools.New(ws, s.options.Tools)}
	for _, root := range ws.Opened() {
		sc.entries = append(sc.entries, entry{offered: mcproots.Offered{URI: mcproots.FromDir(root.Real), Dir: root.Dir}, opened: &root})
	}
	return sc, nil
}

// offered opens what a client offers: each entry that is a directory that may be a root. The others say why not.
// The error is the context's.
func (s *Server) offered(ctx context.Context, offers []mcproots.Offered) (*scope, error) {
	entries := make([]entry, len(offers))
	var dirs []string
	for i, o := range offers {
		if o.Err == nil {
			o.Err = s.judge(ctx, o.Dir, len(dirs))
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if o.Err == nil {
			dirs = append(dirs, o.Dir.String())
		} else {
			s.options.Logger.Warn("a root of the client is left out", "uri", shorten(o.URI), "reason", o.Err)
		}
		entries[i].offered = o
	}
	if len(dirs) == 0 {
		return closed(fromClient, "the client's list of roots has no valid entry", entries), nil
	}
	roots, err := workspace.NewRoots(dirs[0], dirs[1:])
	if err != nil {
		return nil, err
	}
	ws, err := workspace.Open(ctx, roots, s.options.Workspace)
	if err != nil {
		return closed(fromClient, "the client's roots could not be opened: "+err.Error(), entries), context.Cause(ctx)
	}
	for i := range entries {
		for _, root := range ws.Opened() {
			if entries[i].offered.Err == nil && entries[i].offered.Dir == root.Dir {
				entries[i].opened = &root
			}
		}
	}
	return &scope{source: fromClient, entries: entries, ws: ws, tools: tools.New(ws, s.options.Tools)}, nil
}

// judge says why a directory cannot be one more root, nil if it can.
func (s *Server) judge(ctx context.Context, dir workspace.Dir, already int) error {
	limit := s.options.Workspace.MaxRoots
	if limit == 0 {
		limit = workspace.DefaultMaxRoots
	}
	if already >= limit {
		return fmt.Errorf("there are %d roots before it, which is the limit", limit)
	}
	ws, err := workspace.Open(ctx, workspace.RootsFrom(dir, workspace.Dirs{}), s.options.Workspace)
	if err != nil {
		return plain(err)
	}
	return ws.Close()
}

// plain is the reason in an error of one root.
func plain(err error) error {
	if bad := (workspace.RootErrors)(nil); errors.As(err, &bad) && len(bad) == 1 {
		switch bad[0].Reason {
		case workspace.ReasonMissing:
			return errors.New("there is no such directory")
		case workspace.ReasonNotDirectory:
			return errors.New("it is not a directory")
		case workspace.ReasonUnreadable:
			return errors.New("it cannot be read")
		case workspace.ReasonDenied:
			return errors.New("it lies outside of what this server is allowed to serve")
		}
	}
	return err
}

// close frees the scope's directories.
func (sc *scope) close() {
	if sc.ws != nil {
		_ = sc.ws.Close()
	}
}

// shorten cuts a client's text for a log or an answer.
func shorten(text string) string {
	const most = 256
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// seal signs what a question was asked for, so that an answer to another one is told from the right one. Nothing is
// kept between a question and its answer.
type seal struct{ key [32]byte }

func newSeal() *seal {
	s := &seal{}
	_, _ = rand.Read(s.key[:]) // it never fails
	return s
}

// of is the seal of the parts of a request, in this order.
func (s *seal) of(parts ...[]byte) string {
	mac := hmac.New(sha256.New, s.key[:])
	for _, part := range parts {
		_ = binary.Write(mac, binary.BigEndian, uint64(len(part)))
		_, _ = mac.Write(part)
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// matches reports whether a seal that came back is that of the parts.
func (s *seal) matches(given string, parts ...[]byte) bool {
	return hmac.Equal([]byte(given), []byte(s.of(parts...)))
}

const listRootsName = "list_roots"

// declaredListRoots is the one tool that is not that of the workspace: it also tells where the roots come from, and
// what was left out.
func declaredListRoots() *mcp.Tool {
	return declared(tools.Tool{
		Name: listRootsName, Title: "List the roots",
		Description: "The folders that can be accessed, in order, with where they come from; and those that were named but cannot, with why. Relative paths start in the first.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
		OutputSchema: json.RawMessage(`{"type":"object","required":["source","roots","left_out"],"properties":{
			"source":{"type":"string","enum":["configured","client","fallback","none"],"description":"who named the roots"},
			"roots":{"type":"array","description":"what can be accessed, in order","items":{"type":"object","required":["path","real","uri"],"properties":{
				"path":{"type":"string"},"real":{"type":"string","description":"with links followed"},"uri":{"type":"string"},"name":{"type":"string"}}}},
			"left_out":{"type":"array","items":{"type":"object","required":["uri","reason"],"properties":{
				"uri":{"type":"string"},"name":{"type":"string"},"reason":{"type":"string"}}}},
			"note":{"type":"string","description":"why nothing can be accessed"}}}`),
		Annotations: tools.Annotations{ReadOnly: true, Idempotent: true},
	})
}

// listing is the structured answer of list_roots.
type listing struct {
	Source  source       `json:"source"`
	Roots   []listedRoot `json:"roots"`
	LeftOut []leftOut    `json:"left_out"`
	Note    string       `json:"note,omitempty"`
}

type listedRoot struct {
	Path string `json:"path"`
	Real string `json:"real"`
	URI  string `json:"uri"`
	Name string `json:"name,omitempty"`
}

type leftOut struct {
	URI    string `json:"uri"`
	Name   string `json:"name,omitempty"`
	Reason string `json:"reason"`
}

// maxLeftOut is the most entries that list_roots shows of those left out.
const maxLeftOut = 100

// listRoots serves list_roots, which answers whatever the scope is.
func (c *client) listRoots(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return c.inScope(ctx, r, anything, func(sc *scope) (*mcp.CallToolResult, error) {
		l := sc.list()
		structured, err := json.Marshal(l)
		if err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: l.String()}}, StructuredContent: json.RawMessage(structured)}, nil
	})
}

// list is what there is to say of a scope.
func (sc *scope) list() listing {
	l := listing{Source: sc.source, Roots: []listedRoot{}, LeftOut: []leftOut{}, Note: sc.note}
	shown := map[int]bool{}
	for _, e := range sc.entries {
		switch {
		case e.opened == nil && len(l.LeftOut) < maxLeftOut:
			reason := "it could not be opened"
			if uri := (*mcproots.URIError)(nil); errors.As(e.offered.Err, &uri) {
				reason = string(uri.Reason)
			} else if e.offered.Err != nil {
				reason = e.offered.Err.Error()
			}
			l.LeftOut = append(l.LeftOut, leftOut{shorten(e.offered.URI), shorten(e.offered.Name), reason})
		case e.opened != nil && !shown[e.opened.Index]:
			shown[e.opened.Index] = true
			l.Roots = append(l.Roots, listedRoot{e.opened.Dir.String(), e.opened.Real.String(), mcproots.FromDir(e.opened.Real), shorten(e.offered.Name)})
		}
	}
	return l
}

// String is the listing for a model.
func (l listing) String() string {
	var b strings.Builder
	if len(l.Roots) == 0 {
		fmt.Fprintf(&b, "No folder is accessible: %s.\n", l.Note)
	} else {
		fmt.Fprintf(&b, "The roots (%s), in order; relative paths start in the first:\n", l.Source)
	}
	for _, r := range l.Roots {
		b.WriteString(text.Printable(r.Path))
		if r.Real != r.Path {
			b.WriteString(" -> " + text.Printable(r.Real))
		}
		b.WriteByte('\n')
	}
	for _, e := range l.LeftOut {
		fmt.Fprintf(&b, "left out: %q: %s\n", e.URI, e.Reason)
	}
	return b.String()
}
