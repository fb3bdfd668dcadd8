package mcpclient

//lint:file-ignore SA1019 the MCP SDK deprecates roots and log messages (SEP-2577); they are supported for existing clients and servers

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
)

// served is a server of the SDK and a client's session with it.
type served struct {
	server     *mcp.ServerSession
	connection *connection
	wire       *logtest.Text // messages between client and server
}

// serve connects a client to a server that speaks one revision. Its tool "roots" asks for the roots
// and returns their URIs.
func serve(t testing.TB, revision string, roots mcproots.Snapshot) served {
	t.Helper()
	s := served{connection: newTestConnection(roots), wire: &logtest.Text{}}
	server := mcp.NewServer(&mcp.Implementation{Name: "server"},
		&mcp.ServerOptions{SupportedProtocolVersions: []string{revision}})
	tool := &mcp.Tool{Name: "roots", InputSchema: map[string]any{"type": "object"}}
	server.AddTool(tool,
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			list, ok := r.Params.InputResponses["where"].(*mcp.ListRootsResult)
			if !ok {
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{
					"where": &mcp.ListRootsParams{}}, RequestState: "as it was"}, nil
			}
			if r.Params.RequestState != "as it was" {
				return nil, errors.New("the state was changed")
			}
			var uris []string
			for _, root := range list.Roots {
				uris = append(uris, root.URI)
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Join(uris,
				"\n")}}}, nil
		})
	theirs, ours := mcp.NewInMemoryTransports()
	var err error
	s.server, err = server.Connect(t.Context(), theirs, nil)
	require.NoError(t, err)
	session, err := s.connection.client.Connect(t.Context(),
		&mcp.LoggingTransport{Transport: ours, Writer: s.wire}, nil)
	require.NoError(t, err)
	s.connection.session = session
	s.connection.connected.Store(true)
	t.Cleanup(func() {
		_ = session.Close()
		_ = s.server.Wait()
	})
	require.Equal(t, revision, session.InitializeResult().ProtocolVersion)
	return s
}

// newTestConnection returns a connection of a set with roots that has no transport.
func newTestConnection(roots mcproots.Snapshot) *connection {
	set := NewSet(nil, Options{})
	set.folders.roots, set.visible = roots, roots
	return set.newServer(Config{Name: "s", Transport: acpmcp.Stdio}, "s").newConnection(set.folders)
}

// take returns the roots of a workspace with these directories.
func take(t testing.TB, cwd string, additional ...string) mcproots.Snapshot {
	t.Helper()
	s, err := mcproots.Take(roottest.Open(t, cwd, additional...))
	require.NoError(t, err)
	return s
}

// Clause M7.
func TestModernServer(t *testing.T) {
	s := serve(t, "2026-07-28", take(t, dirtest.New(t)))
	require.True(t, s.connection.modern())
	s.connection.announceRoots()
	r, err := s.connection.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "roots"})
	require.NoError(t, err)
	require.False(t, r.IsError)
	require.NoError(t, s.connection.session.Close())
	sent := 0
	for line := range strings.Lines(s.wire.String()) {
		text, ours := strings.CutPrefix(line, "write: ")
		if !ours {
			continue
		}
		sent++
		var m struct {
			ID     any
			Method string
			Params struct {
				Meta map[string]json.RawMessage `json:"_meta"`
			}
			Result, Error json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(text), &m))
		require.NotEmpty(t, m.Method, "a response: %s", text)
		require.NotContains(t, []string{"initialize", "notifications/initialized",
			"notifications/roots/list_changed", "ping"}, m.Method)
		if m.ID != nil {
			require.JSONEq(t, `{"roots":{}}`, string(m.Params.Meta[mcp.MetaKeyClientCapabilities]),
				text)
		}
	}
	require.GreaterOrEqual(t, sent, 3)
}

// Clause M2.
func TestRootsFail(t *testing.T) {
	s := serve(t, "2025-11-25", mcproots.Snapshot{})
	s.connection.readiness = nil // so that it panics
	_, err := s.server.ListRoots(t.Context(), nil)
	requireCode(t, err, jsonrpc.CodeInternalError)
}

// Clause M13.
func TestSamplingAndElicitation(t *testing.T) {
	s := serve(t, "2025-11-25", mcproots.Snapshot{})
	require.NotContains(t, s.wire.String(), `"sampling"`)
	require.NotContains(t, s.wire.String(), `"elicitation"`)
	p := newRaw(t)
	for _, method := range []string{"sampling/createMessage", "elicitation/create",
		"completion/complete", "who/knows"} {
		p.write(`{"jsonrpc":"2.0","id":"q","method":"` + method +
			`","params":{"messages":[],"maxTokens":1,"message":"m","ref":{"type":"ref/prompt"},"argument":{}}}`)
		require.Contains(t, p.read(), `-32601`, method)
	}
}

func requireCode(t testing.TB, err error, code int64) {
	t.Helper()
	var failed *jsonrpc.Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, code, failed.Code)
}

// rawServer is a server controlled by a test, line by line.
type rawServer struct {
	t       *testing.T
	lines   *bufio.Scanner
	in      io.Writer
	session *mcp.ClientSession
}

// newRaw connects a client to a legacy server.
func newRaw(t *testing.T) *rawServer {
	t.Helper()
	fromUs, toPeer := io.Pipe()
	fromPeer, toUs := io.Pipe()
	p := &rawServer{t: t, lines: bufio.NewScanner(fromUs), in: toUs}
	connected := make(chan error, 1)
	go func() {
		var err error
		p.session, err = newTestConnection(mcproots.Snapshot{}).client.Connect(t.Context(),
			&mcp.IOTransport{Reader: fromPeer, Writer: toPeer},
			&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		connected <- err
	}()
	require.Contains(t, p.read(), `"initialize"`)
	p.write(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`)
	require.Contains(t, p.read(), `notifications/initialized`)
	require.NoError(t, <-connected)
	t.Cleanup(func() {
		_ = toUs.Close()
		_ = p.session.Close()
	})
	return p
}

func (p *rawServer) write(line string) {
	p.t.Helper()
	_, err := io.WriteString(p.in, line+"\n")
	require.NoError(p.t, err)
}

func (p *rawServer) read() string {
	p.t.Helper()
	require.True(p.t, p.lines.Scan(), "no line: %v", p.lines.Err())
	return p.lines.Text()
}

func TestMalformedNotifications(t *testing.T) {
	p := newRaw(t)
	for _, method := range []string{"elicitation/complete", "message", "progress", "cancelled",
		"resources/updated", "tools/list_changed", "roots/list_changed", "unknown"} {
		p.write(`{"jsonrpc":"2.0","method":"notifications/` + method + `"}`)
		p.write(`{"jsonrpc":"2.0","method":"notifications/` + method + `","params":null}`)
		p.write(`{"jsonrpc":"2.0","method":"notifications/` + method + `","params":{}}`)
	}
	p.write(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	require.JSONEq(t, `{"jsonrpc":"2.0","id":1,"result":{}}`, p.read())
}

// Clause M7.
func TestServerThatNeverCompletes(t *testing.T) {
	p := newRaw(t)
	for _, requests := range []string{`{}`, `{"a":{"method":"roots/list","params":{}}}`,
		`{"a":null}`} {
		failed := make(chan error, 1)
		go func() {
			_, err := p.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "x"})
			failed <- err
		}()
		for range mcproots.MaxRounds {
			var m struct{ ID int }
			require.NoError(t, json.Unmarshal([]byte(p.read()), &m))
			p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"resultType":"input_required","content":[],"inputRequests":%s}}`, m.ID, requests))
			if requests == `{"a":null}` {
				break // the SDK cannot read it
			}
		}
		err := <-failed
		if requests == `{"a":null}` {
			require.ErrorContains(t, err, "malformed")
			continue
		}
		require.ErrorContains(t, err, "asked for input 10 times")
	}
}

// resultAsking calls a tool, and answers as a server that asks for the roots a number of times in
// one result.
func resultAsking(t *testing.T, p *rawServer, times int) <-chan error {
	t.Helper()
	failed := make(chan error, 1)
	go func() {
		_, err := p.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "x"})
		failed <- err
	}()
	var m struct{ ID int }
	require.NoError(t, json.Unmarshal([]byte(p.read()), &m))
	var all []string
	for i := range times {
		all = append(all, fmt.Sprintf(`"%d":{"method":"roots/list","params":{}}`, i))
	}
	p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"resultType":"input_required","content":[],"inputRequests":{%s}}}`, m.ID, strings.Join(all, ",")))
	return failed
}

func TestInputRequestsAreLimited(t *testing.T) {
	p := newRaw(t)
	require.ErrorContains(t, <-resultAsking(t, p, mcproots.MaxInputRequests+1), "101 inputs")
	failed := resultAsking(t, p, mcproots.MaxInputRequests)
	again := p.read()
	require.Equal(t, mcproots.MaxInputRequests, strings.Count(again, `{"roots":[]}`))
	var m struct{ ID int }
	require.NoError(t, json.Unmarshal([]byte(again), &m))
	p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}`, m.ID))
	require.NoError(t, <-failed)
}

func TestPromptArguments(t *testing.T) {
	p := &mcp.Prompt{Arguments: []*mcp.PromptArgument{{Name: "city", Required: true}, nil,
		{Name: "state"}}}
	require.Equal(t, "city [state]", argumentsHint(p))
	for typed, want := range map[string]map[string]string{
		"Bern":                             {"city": "Bern"},
		" Bern  canton of Bern ":           {"city": "Bern", "state": "canton of Bern"},
		"city=Bern":                        {"city": "Bern"},
		`state="canton of Bern" city=Bern`: {"city": "Bern", "state": "canton of Bern"},
		"country=CH":                       {"city": "country=CH"},
		`city=Bern a state`:                {"city": "city=Bern", "state": "a state"},
		`city="a=b" state=c=d`:             {"city": "a=b", "state": "c=d"},
	} {
		given, err := promptArguments(p, typed)
		require.NoError(t, err, typed)
		require.Equal(t, want, given, typed)
	}
	for _, typed := range []string{"", " ", "state=Bern"} {
		_, err := promptArguments(p, typed)
		require.ErrorContains(t, err, `needs the argument "city"`, typed)
	}
	given, err := promptArguments(&mcp.Prompt{}, " ")
	require.NoError(t, err)
	require.Empty(t, given)
	_, err = promptArguments(&mcp.Prompt{}, "x")
	require.ErrorContains(t, err, "takes no arguments")
}

func TestIsServed(t *testing.T) {
	var answer func(w http.ResponseWriter, r *http.Request)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r) }))
	defer server.Close()
	address := server.URL + "/client.json"
	document := fmt.Sprintf(`{"client_id": %q}`, address)
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		served bool
	}{
		"served":    {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, document) }, true},
		"missing":   {http.NotFound, false},
		"of others": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"client_id": "x"}`) }, false},
		"a page":    {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, false},
		"error": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, document)
		}, false},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/moved" {
				http.Redirect(w, r, "/moved", http.StatusFound)
				return
			}
			fmt.Fprint(w, document)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			answer = c.answer
			require.Equal(t, c.served, isServed(t.Context(), server.Client(), address))
		})
	}
	server.Close()
	require.False(t, isServed(t.Context(), server.Client(), address))
}
