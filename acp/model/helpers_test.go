package model

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

func TestMain(m *testing.M) { proctest.Main(m, playServer) }

// patience is how long to wait for what must happen.
const patience = volume.Patience

// playServer plays an MCP server.
func playServer(role string) int {
	if role == "late" || role == "broken" { // it starts, or fails, when the file LATE exists
		for {
			if _, err := os.Stat(os.Getenv("LATE")); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if role == "broken" {
			return 1
		}
	}
	s := mcptest.New(mcptest.Options{})
	if role == "awkward" {
		addAwkward(s)
	}
	if role == "full" {
		s.AddResource(&mcp.Resource{Name: "n", URI: "mem://note", Description: "A note."}, readNote)
		s.AddResourceTemplate(&mcp.ResourceTemplate{Name: "t", URITemplate: "mem://by/{id}"}, readNote)
		s.AddPrompt(&mcp.Prompt{Name: "review", Description: "Reviews.", Arguments: []*mcp.PromptArgument{
			{Name: "file", Required: true}, {Name: "style"}}}, getPrompt)
	}
	s.Add(&mcp.Tool{Name: "claim", Description: "Claims.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(context.Context, *mcp.CallToolRequest) (string, error) { return "claimed", nil })
	s.Add(&mcp.Tool{Name: "long"}, func(context.Context, *mcp.CallToolRequest) (string, error) {
		return strings.Repeat("A line of a long result.\n", 10_000), nil
	})
	s.Add(&mcp.Tool{Name: "hang"},
		func(ctx context.Context, _ *mcp.CallToolRequest) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		})
	s.AddTool(&mcp.Tool{Name: "picture", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{
				&mcp.ImageContent{MIMEType: "image/png", Data: onePixel}}}, nil
		})
	s.AddTool(&mcp.Tool{Name: "drawing", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{
				&mcp.ImageContent{MIMEType: "image/svg+xml", Data: []byte("<svg/>")}}}, nil
		})
	return s.Play()
}

// addAwkward adds tools that servers of models do not accept as they are.
func addAwkward(s *mcptest.Server) {
	object := func(members string) json.RawMessage {
		return json.RawMessage(`{"type":"object","$schema":"x","additionalProperties":false,` +
			members + `}`)
	}
	text := `{"type":["string","null"],"minLength":1}`
	for name, schema := range map[string]json.RawMessage{
		"either": object(`"properties":{"a":` + text + `},"anyOf":[{"required":["a"]},` +
			`{"properties":{"b":{"const":1}},"required":["b"]}]`),
		"tree": object(`"$defs":{"node":{"type":"object","properties":{"children":` +
			`{"type":"array","items":{"$ref":"#/$defs/node"}}}}},` +
			`"properties":{"root":{"$ref":"#/$defs/node"}},"not":{"required":["x"]}`),
		"0 odd.name/" + strings.Repeat("x", 90): object(`"allOf":[{"properties":{"a":true}}]`),
	} {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: schema, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
			func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{
					&mcp.TextContent{Text: "got " + string(r.Params.Arguments)}}}, nil
			})
	}
	for i := range 130 {
		s.Add(&mcp.Tool{Name: fmt.Sprintf("z%d", i)},
			func(context.Context, *mcp.CallToolRequest) (string, error) { return "", nil })
	}
}

func readNote(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	text := "tangerine of " + r.Params.URI
	if strings.HasSuffix(text, "long") {
		text += strings.Repeat("x", 1<<20)
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{
		{URI: r.Params.URI, Text: text}}}, nil
}

func getPrompt(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	said := fmt.Sprintf("Please review: %v", r.Params.Arguments)
	return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{
		{Role: "user", Content: &mcp.TextContent{Text: said}},
		{Role: "assistant", Content: &mcp.TextContent{Text: "I will."}}}}, nil
}

// onePixel is a PNG image.
var onePixel = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01" +
	"\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89" +
	"\x00\x00\x00\nIDATx\x9cc\x00\x01\x00\x00\x05\x00\x01\r\n-\xb4\x00\x00\x00\x00IEND\xaeB`\x82")

// playedServer returns the configuration of the MCP server that this binary plays.
func playedServer(name string) sdk.McpServer { return serverIn("server", name) }

func serverIn(role, name string, env ...string) sdk.McpServer {
	s := sdk.McpServerStdio{Name: name, Command: proctest.Executable(), Args: []string{}}
	for _, e := range proctest.Env(role, env...) {
		name, value, _ := strings.Cut(e, "=")
		s.Env = append(s.Env, sdk.EnvVariable{Name: name, Value: value})
	}
	return sdk.McpServer{Stdio: &s}
}

// editor is a client whose agent runs in this process, with the scripted model.
type editor struct {
	t      testing.TB
	model  *modelserver.Server
	setup  setup
	client *client.Client
	id     string          // of the session
	opened json.RawMessage // the response that opened it
	stop   func()          // ends the agent

	mu      sync.Mutex
	updates []update
	asked   []question
	// onUpdate, if not nil, is called with each update.
	onUpdate func(update)
	// onAsk answers requests for permission with the kind of the option to select, or
	// cancelQuestion. Nobody may be asked if it is nil.
	onAsk func(context.Context, question) decision
}

// setup says what a session is opened with. The zero value is a session in an empty directory.
type setup struct {
	roots   []string // cwd first
	servers []sdk.McpServer
	// model changes the model's configuration.
	model func(*Model)
	// more are further models.
	more []Model
	// requests serve what the agent asks of the client. If they have terminal/create, the client
	// offers terminals; otherwise commands run as children of this process.
	requests map[string]func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)
	// buffers, if not nil, are the texts that the client has in place of those on the disk, by
	// path.
	buffers *sync.Map
	store   sessionstore.Store
	// consents is acp.Options.ConsentDir, and permissions are the user's rules.
	consents    string
	permissions *acp.Permissions
	// options are the backend's, apart from models.
	options Options
	// serverPatience is that of the backend. Default: patience.
	serverPatience time.Duration
}

// update is an update as a client reads it.
type update struct {
	Kind      string                 `json:"sessionUpdate"`
	ID        string                 `json:"toolCallId"`
	Title     string                 `json:"title"`
	Tool      sdk.ToolKind           `json:"kind"`
	Status    sdk.ToolCallStatus     `json:"status"`
	RawInput  json.RawMessage        `json:"rawInput"`
	RawOutput struct{ Text string }  `json:"rawOutput"`
	Locations []sdk.ToolCallLocation `json:"locations"`
	Content   json.RawMessage        `json:"content"`
	Entries   []sdk.PlanEntry        `json:"entries"`
	Mode      string                 `json:"currentModeId"`
	Used      int                    `json:"used"`
	Size      int                    `json:"size"`
	Meta      struct {
		Agent json.RawMessage `json:"acp-agent"`
	} `json:"_meta"`
	Raw json.RawMessage `json:"-"` // the whole update
}

// text returns the text of a chunk.
func (u update) text() string {
	var content struct{ Text string }
	_ = json.Unmarshal(u.Content, &content)
	return content.Text
}

// decision is the kind of an option of a permission request, or cancelQuestion.
type decision string

const (
	allowOnce      decision = "allow_once"
	allowAlways    decision = "allow_always"
	rejectOnce     decision = "reject_once"
	cancelQuestion decision = "cancelled"
)

// question is a request for permission.
type question struct {
	Call    update                 `json:"toolCall"`
	Options []sdk.PermissionOption `json:"options"`
}

// open opens a new session.
func open(t testing.TB, s setup) *editor {
	t.Helper()
	if len(s.roots) == 0 {
		s.roots = []string{dirtest.New(t)}
	}
	if s.store == nil {
		s.store = memstore.New(t)
	}
	model, err := modelserver.Start()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, model.Close()) })
	e := &editor{t: t, model: model, setup: s}
	e.connect()
	session, err := e.client.NewSession(t.Context(), e.lifecycle())
	require.NoError(t, err)
	e.id, e.opened = session.ID, session.Result
	e.announced()
	return e
}

// announced waits for the slash commands, which follow the response that opens a session.
func (e *editor) announced() {
	e.t.Helper()
	require.Eventually(e.t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return slices.ContainsFunc(e.updates, func(u update) bool {
			return u.Kind == string(sessionstore.AvailableCommandsUpdate)
		})
	}, patience, time.Millisecond)
}

// connect starts an agent.
func (e *editor) connect() {
	e.t.Helper()
	m := Model{ID: "local", API: OpenAI, BaseURL: e.model.URL() + "/v1", Name: modelserver.Model,
		ContextTokens: 128_000} // or the server would be asked
	if e.setup.model != nil {
		e.setup.model(&m)
	}
	toAgent, fromClient := io.Pipe()
	toClient, fromAgent := io.Pipe()
	o := client.Options{
		Permission: e.permission, Requests: e.setup.requests,
		Updates: func(_ context.Context, u client.Update) { e.update(u.Update) },
	}
	if o.Requests["terminal/create"] != nil {
		o.Capabilities = json.RawMessage(`{"terminal":true}`)
	}
	if e.setup.buffers != nil {
		o.ReadTextFile, o.WriteTextFile = e.readBuffer, e.writeBuffer
	}
	e.client = client.New(toClient, fromClient, o)
	var running sync.WaitGroup
	running.Go(func() {
		err := acp.Serve(context.Background(), toAgent, fromAgent, acp.Options{
			Backend: func() backend.Backend {
				o := e.setup.options
				o.Models = append([]Model{m}, e.setup.more...)
				b := New(o).(*modelBackend)
				b.serverPatience = cmp.Or(e.setup.serverPatience, patience)
				return b
			}, Store: e.setup.store, ConsentDir: e.setup.consents,
			Permissions: func(workspace.Dir) *acp.Permissions { return e.setup.permissions },
		})
		if err != nil {
			e.t.Errorf("Serve: %v", err)
		}
		fromAgent.Close()
	})
	running.Go(func() { _ = e.client.Serve(context.Background()) })
	e.stop = sync.OnceFunc(func() {
		fromClient.Close()
		running.Wait()
	})
	e.t.Cleanup(e.stop)
	_, err := e.client.Initialize(e.t.Context())
	require.NoError(e.t, err)
}

func (e *editor) lifecycle() client.Setup {
	roots, err := workspace.NewRoots(e.setup.roots[0], e.setup.roots[1:])
	require.NoError(e.t, err)
	return client.Setup{Roots: roots, MCPServers: e.setup.servers}
}

// restart ends the agent, starts another one and loads the session. It returns the history that is
// replayed.
func (e *editor) restart() []update {
	e.t.Helper()
	e.stop()
	e.connect()
	e.take()
	session, err := e.client.LoadSession(e.t.Context(), e.id, e.lifecycle())
	require.NoError(e.t, err)
	e.opened = session.Result
	updates, _ := e.take()
	return updates
}

func (e *editor) update(raw json.RawMessage) {
	u := update{Raw: raw}
	_ = json.Unmarshal(raw, &u) // members of other kinds may differ
	e.mu.Lock()
	e.updates = append(e.updates, u)
	onUpdate := e.onUpdate
	e.mu.Unlock()
	if onUpdate != nil {
		onUpdate(u)
	}
}

func (e *editor) permission(
	ctx context.Context, r sdk.RequestPermissionRequest,
) (sdk.RequestPermissionResponse, error) {
	var q question
	raw, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(raw, &q)
	}
	if err != nil {
		return sdk.RequestPermissionResponse{}, err
	}
	e.mu.Lock()
	e.asked = append(e.asked, q)
	onAsk := e.onAsk
	e.mu.Unlock()
	outcome := sdk.NewRequestPermissionOutcomeCancelled()
	if onAsk == nil {
		e.t.Errorf("the client was asked for permission: %s", q.Call.Title)
		return sdk.RequestPermissionResponse{Outcome: outcome}, nil
	}
	answer := onAsk(ctx, q)
	for _, o := range q.Options {
		if string(o.Kind) == string(answer) {
			outcome = sdk.NewRequestPermissionOutcomeSelected(o.OptionId)
		}
	}
	return sdk.RequestPermissionResponse{Outcome: outcome}, nil
}

// answer answers all further requests for permission.
func (e *editor) answer(a decision) {
	e.decide(func(context.Context, question) decision { return a })
}

// take returns the updates and requests for permission since the last take.
func (e *editor) take() ([]update, []question) {
	e.mu.Lock()
	defer e.mu.Unlock()
	updates, asked := e.updates, e.asked
	e.updates, e.asked = nil, nil
	return updates, asked
}

// reply is a turn as the client saw it.
type reply struct {
	stop    sdk.StopReason
	result  json.RawMessage
	updates []update
	asked   []question
}

// prompt sends a prompt with orders for the model, and waits for the end of the turn.
func (e *editor) prompt(words string, orders ...modelserver.Order) reply {
	e.t.Helper()
	return e.send(sdk.TextBlock(modelserver.Prompt(words, orders...)))
}

// goOn checks that the model accepts the conversation.
func (e *editor) goOn() {
	e.t.Helper()
	require.Equal(e.t, "Going on.", e.prompt("Go on.", modelserver.Say("Going on.")).text())
}

// send sends a prompt with these blocks.
func (e *editor) send(blocks ...sdk.ContentBlock) reply {
	e.t.Helper()
	e.take()
	end, err := e.client.Prompt(e.t.Context(), e.id, blocks...)
	require.NoError(e.t, err)
	r := reply{stop: end.StopReason, result: end.Result}
	r.updates, r.asked = e.take()
	return r
}

// call sends a request for the session, such as session/set_mode.
func (e *editor) call(method string, members map[string]any) json.RawMessage {
	e.t.Helper()
	params := map[string]any{"sessionId": e.id}
	for name, value := range members {
		params[name] = value
	}
	raw, err := json.Marshal(params)
	require.NoError(e.t, err)
	result, err := e.client.Call(e.t.Context(), method, raw)()
	require.NoError(e.t, err)
	return result
}

// cancel cancels the turn.
func (e *editor) cancel() {
	if err := e.client.Cancel(context.Background(), e.id); err != nil {
		e.t.Errorf("cancel: %v", err)
	}
}

// decide has a function answer all further requests for permission.
func (e *editor) decide(f func(context.Context, question) decision) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.onAsk = f
}

// watch has a function called with each further update, or none if it is nil.
func (e *editor) watch(f func(update)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.onUpdate = f
}

// begin sends a prompt with orders for the model, and returns the error with which the turn ends.
func (e *editor) begin(words string, orders ...modelserver.Order) <-chan error {
	ended, id := make(chan error, 1), e.id
	go func() {
		_, err := e.client.Prompt(context.WithoutCancel(e.t.Context()), id,
			sdk.TextBlock(modelserver.Prompt(words, orders...)))
		ended <- err
	}()
	return ended
}

// cancelAfter cancels the turn after the first update that is one of these.
func (e *editor) cancelAfter(is func(update) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var once sync.Once
	e.onUpdate = func(u update) {
		if is(u) {
			once.Do(func() { go e.cancel() })
		}
	}
}

// text returns what the model said.
func (r reply) text() string {
	var b strings.Builder
	for _, u := range r.of(string(sessionstore.AgentMessageChunk)) {
		b.WriteString(u.text())
	}
	return b.String()
}

// of returns the updates of one kind.
func (r reply) of(kind string) (all []update) {
	for _, u := range r.updates {
		if u.Kind == kind {
			all = append(all, u)
		}
	}
	return all
}

// calls returns the tool calls in the order in which they were announced, with what later updates
// have changed.
func (r reply) calls() []update {
	var all []update
	index := map[string]int{}
	for _, u := range r.updates {
		switch u.Kind {
		case "tool_call":
			index[u.ID] = len(all)
			all = append(all, u)
		case "tool_call_update":
			i, ok := index[u.ID]
			if !ok {
				all = append(all, update{Title: "not announced: " + u.ID})
				continue
			}
			_ = json.Unmarshal(u.Raw, &all[i]) // keeps what is not in it
		}
	}
	return all
}

// results returns the results of tool calls that the model was given in its last request.
func (e *editor) results() []string {
	e.t.Helper()
	return e.last().Of(modelserver.Result)
}

// last returns the last request to the model with tools.
func (e *editor) last() modelserver.Request {
	e.t.Helper()
	requests := e.model.Requests()
	for i := len(requests) - 1; i >= 0; i-- {
		if requests[i].Asks() {
			return requests[i]
		}
	}
	require.Fail(e.t, "the model was not asked")
	return modelserver.Request{}
}

// read returns a file's text.
func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// arguments returns a JSON object from names and values.
func arguments(pairs ...any) string {
	members := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		members[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return string(backend.Encode(members))
}

// records returns the records of a file, without the first, which is a comment. They are separated
// by empty lines.
func records(t testing.TB, path string) (all [][]string) {
	t.Helper()
	for _, record := range strings.Split(strings.TrimSpace(read(t, path)), "\n\n")[1:] {
		all = append(all, strings.Split(record, "\n"))
	}
	return all
}
