package servers_test

//lint:file-ignore SA1019 the MCP SDK deprecates sampling (SEP-2577); it is supported for existing servers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
)

// model answers "It is 42." to everything.
type model struct {
	mu       sync.Mutex
	requests []backend.SampleRequest
	fail     error
	answer   string        // "" for "It is 42."
	context  string        // "" for the server's name
	wait     chan struct{} // if not nil, the model is closed this when it is asked, and waits for the end of the context
}

func (*model) SamplingModel(hints []string) string {
	if slices.Contains(hints, "small") {
		return "small"
	}
	return "large"
}

func (m *model) SamplingContext(server string) string {
	if m.context != "" {
		return m.context
	}
	if server == "" {
		return "all of it"
	}
	return "about " + server + "\n```\nI am fenced."
}

func (m *model) Sample(ctx context.Context, r backend.SampleRequest) (backend.SampleResult, error) {
	m.mu.Lock()
	m.requests = append(m.requests, r)
	m.mu.Unlock()
	if m.wait != nil {
		close(m.wait)
		<-ctx.Done()
		return backend.SampleResult{}, context.Cause(ctx)
	}
	return backend.SampleResult{Text: cmp.Or(m.answer, "It is 42."), Model: r.Model + "-1", StopReason: "endTurn", Input: 5, Output: 3}, m.fail
}

func (m *model) asked() []backend.SampleRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// reviewer is a session whose user allows tools, and reviews what is sent to and from the model.
type reviewer struct {
	*host
	reviews chan review
}

// review is what the user was shown, and takes the id of an option.
type review struct {
	Title, Text string
	Options     []string // labels
	answer      chan<- string
	ended       <-chan struct{}
}

func (r *reviewer) Ask(ctx context.Context, q backend.Question) (backend.Answer, error) {
	return q.Ask(ctx, r)
}

func (r *reviewer) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	var p struct {
		ToolCall struct {
			ToolCallID, Title string
			Content           []struct {
				Content struct{ Type, Text, MimeType string }
			}
		}
		Options []struct{ Name string }
	}
	if json.Unmarshal(params, &p) != nil || !strings.HasPrefix(p.ToolCall.ToolCallID, "sampling-") {
		return r.host.Call(ctx, method, params)
	}
	var shown []string
	for _, c := range p.ToolCall.Content {
		shown = append(shown, c.Content.Text+c.Content.MimeType)
	}
	answer := make(chan string)
	one := review{Title: p.ToolCall.Title, Text: strings.Join(shown, "\n"), answer: answer, ended: ctx.Done()}
	for _, o := range p.Options {
		one.Options = append(one.Options, o.Name)
	}
	return func() (backend.Raw, error) {
		r.reviews <- one
		select {
		case id := <-answer:
			return backend.Raw(fmt.Sprintf(`{"outcome":{"outcome":"selected","optionId":%q}}`, id)), nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// next returns the next thing that the user is asked.
func (r *reviewer) next(t *testing.T) review {
	t.Helper()
	select {
	case one := <-r.reviews:
		return one
	case <-t.Context().Done():
		return review{}
	}
}

const (
	allow  = "allow-once"
	reject = "reject-once"
)

// sampling is a set with a server of one era, m, in a session with a model.
type sampling struct {
	*fixture
	user  *reviewer
	model *model
}

func newSampling(t *testing.T, server mcpclient.Config) *sampling {
	t.Helper()
	s := &sampling{newFixture(t, mcpclient.Options{}), &reviewer{&host{}, make(chan review, 100)}, &model{}}
	s.user.workspace = roottest.Open(t, folder(t))
	change, err := s.Prepare(s.user.workspace, []mcpclient.Config{server})
	require.NoError(t, err)
	s.Commit(change, s.user, s.model)
	return s
}

// ask has the server send requests, and answers the user's reviews. It returns what the server got,
// and the reviews.
func (s *sampling) ask(answers []string, requests ...string) (string, []review) {
	s.t.Helper()
	got, err := "", error(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		got, err = s.try("m.sample", `{"requests":[`+strings.Join(requests, ",")+`]}`)
	}()
	var shown []review
	for _, answer := range answers {
		select {
		case one := <-s.user.reviews:
			shown = append(shown, one)
			one.answer <- answer
		case <-done:
			require.Fail(s.t, "not asked", "%d: %s %v\n%s", len(shown), got, err, s.logs)
		}
	}
	<-done
	require.Empty(s.t, s.user.reviews)
	if err != nil {
		got = err.Error()
	}
	return got, shown
}

const question = `{"messages":[{"role":"user","content":{"type":"text","text":"How many?` + "\\n```\\n" + `Sent by acp-agent"}}],"maxTokens":7}`

// Clause M13.
func TestUserReviewsRequestAndAnswer(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			s := newSampling(t, mcptest.Self("m", "sdk", "REVISION="+era))
			got, shown := s.ask([]string{allow, allow}, `{"messages":[{"role":"user","content":[{"type":"text","text":"How many?\n`+"```"+`\nSent by us."},`+
				`{"type":"image","mimeType":"image/png","data":"`+pixel(t)+`"}]},{"role":"assistant","content":{"type":"text","text":"Of what?"}}],`+
				`"maxTokens":7,"systemPrompt":"Be short.","temperature":0.5,"stopSequences":["END"],"modelPreferences":{"hints":[{"name":"small"}],"costPriority":1}}`)
			require.JSONEq(t, `{"role":"assistant","content":{"type":"text","text":"It is 42."},"model":"small-1","stopReason":"endTurn"}`, got)

			imageData, err := base64.StdEncoding.DecodeString(pixel(t))
			require.NoError(t, err)
			imageSize := strconv.Itoa(len(imageData)) + " bytes"
			require.Equal(t, `MCP server "m" asks the model small`, shown[0].Title)
			require.Equal(t, "MCP server \"m\" wants an answer of up to 7 tokens from the model small. If you allow it, the model is sent what follows. "+
				"You see the answer before the server gets it. The temperature is 0.5. The answer ends before `\"END\"`.\n\nSystem prompt:\n\n```\nBe short.\n```\n"+
				"As the user:\n\n````\nHow many?\n```\nSent by us.\n````\nAs the user: an image (image/png, "+imageSize+")\nimage/png\nAs the model:\n\n```\nOf what?\n```", shown[0].Text)
			require.Contains(t, shown[1].Text, "MCP server \"m\" gets this answer:\n\n```\nIt is 42.\n```")

			asked := s.model.asked()
			require.Len(t, asked, 1)
			require.Equal(t, "Be short.", asked[0].System)
			require.Empty(t, asked[0].Context)
			require.Equal(t, 7, asked[0].MaxTokens)
			require.Equal(t, []string{"END"}, asked[0].Stop)
			require.InDelta(t, 0.5, *asked[0].Temperature, 0)
			require.Equal(t, "user", asked[0].Messages[0].Role)
			require.Equal(t, pixel(t), asked[0].Messages[0].Content[1].Image.Data)
			require.Equal(t, "assistant", asked[0].Messages[1].Role)

			s.ask([]string{allow, allow}, question)
			require.Equal(t, 1, strings.Count(s.logs.String(), "asks the session's model, which MCP deprecates"))
			require.Regexp(t, `msg="MCP server asked the model" server=m model=small outcome=answered inputTokens=5 outputTokens=3 duration=`, s.logs.String())
			require.NotContains(t, s.logs.String(), "How many?")
			require.NotContains(t, s.logs.String(), "It is")
			require.Contains(t, s.user.updates.String(), `"status":"completed"`)
		})
	}
}

// What the user is shown is what the model and the server get.
//
// Clause M13.
func TestSamplingSendsWhatIsShown(t *testing.T) {
	s := newSampling(t, mcptest.Self("m", "sdk", "REVISION="+eras[0]))
	s.model.answer, s.model.context = "4\u200b2\r\nor\u202e24", "its\u2060 answers"
	request := `{"messages":[{"role":"user","content":{"type":"text","text":"one\r\ntwo"}}],"maxTokens":7,"temperature":1.25,` +
		`"metadata":{"user":"tangerine"},"stopSequences":["\n\u200b"],"modelPreferences":{"speedPriority":1},"includeContext":"thisServer"}`
	got, shown := s.ask([]string{allow, allow, allow}, request)
	require.Contains(t, shown[0].Text, "The temperature is 1.25. The answer ends before `\"\\n\\u200b\"`.")
	require.Contains(t, shown[0].Text, "one\ntwo")
	require.Contains(t, shown[1].Text, "its\ufffd answers")
	require.Contains(t, shown[2].Text, "4\ufffd2\nor\ufffd24")
	require.Contains(t, got, "4\ufffd2\\nor\ufffd24")
	sent := s.model.asked()[0]
	require.Equal(t, "one\ntwo", sent.Messages[0].Content[0].Text.Text)
	require.Equal(t, "its\ufffd answers", sent.Context)
	require.NotContains(t, fmt.Sprintf("%+v", sent), "tangerine")
}

func pixel(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))))
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// Clause M13.
func TestRemoteServers(t *testing.T) {
	for _, c := range []struct {
		kind     acpmcp.Transport
		revision string
		handler  func(func(*http.Request) *mcp.Server) http.Handler
	}{
		{acpmcp.HTTP, eras[0], func(s func(*http.Request) *mcp.Server) http.Handler { return mcp.NewStreamableHTTPHandler(s, nil) }},
		{acpmcp.HTTP, eras[1], func(s func(*http.Request) *mcp.Server) http.Handler {
			return mcp.NewStreamableHTTPHandler(s, &mcp.StreamableHTTPOptions{Stateless: true})
		}},
	} {
		t.Run(string(c.kind)+" "+c.revision, func(t *testing.T) {
			s := newSampling(t, remote(t, "m", c.kind, c.handler(mcptest.ToolServers(c.revision, new(atomic.Int64)))))
			got, _ := s.ask([]string{allow, allow}, question)
			require.Contains(t, got, "It is 42.")
			got, _ = s.ask([]string{reject}, question)
			require.Contains(t, got, "User rejected sampling request")
		})
	}
}

// Clause M13.
func TestUserRejects(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			s := newSampling(t, mcptest.Self("m", "sdk", "REVISION="+era))
			got, _ := s.ask([]string{reject}, question)
			require.Contains(t, got, "User rejected sampling request")
			require.Empty(t, s.model.asked(), "nothing is sent")
			got, _ = s.ask([]string{allow, reject}, question)
			require.Contains(t, got, "User rejected sampling request")
			require.NotContains(t, got, "42")
			require.Len(t, s.model.asked(), 1)
			if era == eras[0] {
				require.True(t, strings.HasPrefix(got, "-1 "), got)
			}
			require.Equal(t, 2, strings.Count(s.logs.String(), "outcome=rejected"))
			require.Equal(t, 2, strings.Count(s.user.updates.String(), `"status":"failed"`))
		})
	}
}

// Clause M13.
func TestContextNeedsConsent(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			s := newSampling(t, mcptest.Self("m", "sdk", "REVISION="+era))
			with := func(include string) string {
				return strings.Replace(question, "{", `{"includeContext":"`+include+`",`, 1)
			}
			got, shown := s.ask([]string{allow, allow, allow}, with("thisServer"))
			require.Contains(t, got, "42")
			require.Contains(t, shown[0].Text, "You are asked about that next.")
			require.Contains(t, shown[1].Text, "what this conversation says about its tools too")
			require.Contains(t, shown[1].Text, "````\nabout m\n```\nI am fenced.\n````")
			require.Equal(t, []string{"Add it to the request", "Send the request without it"}, shown[1].Options)
			got, shown = s.ask([]string{allow, reject, allow}, with("allServers"))
			require.Contains(t, got, "42")
			require.Contains(t, shown[1].Text, "about this conversation too")
			s.ask([]string{allow, allow}, with("none"))
			var added []string
			for _, r := range s.model.asked() {
				added = append(added, r.Context)
			}
			require.Equal(t, []string{"about m\n```\nI am fenced.", "", ""}, added)
		})
	}
}

// Clause M13.
func TestInvalidRequests(t *testing.T) {
	s := newSampling(t, mcptest.Self("m", "sdk", "REVISION="+eras[0]))
	message := func(content string) string {
		return `{"maxTokens":1,"messages":[{"role":"user","content":` + content + `}]}`
	}
	text := func(s string) string { return message(`{"type":"text","text":"` + s + `"}`) }
	for request, want := range map[string]string{
		`{"maxTokens":0,"messages":[{"role":"user","content":{"type":"text","text":"a"}}]}`: "maxTokens must be positive",
		`{"maxTokens":1,"messages":[]}`: "between 1 and 100 messages",
		`{"maxTokens":1,"messages":[{"role":"system","content":{"type":"text","text":"a"}}]}`: "user or assistant",
		message(`[]`): "and content",
		message(`{"type":"audio","mimeType":"audio/wav","data":"AAAA"}`):                         "text or images",
		message(`{"type":"tool_use","id":"a","name":"b","input":{}}`):                            "text or images",
		message(`{"type":"image","mimeType":"image/svg+xml","data":"AAAA"}`):                     "images are PNG",
		message(`{"type":"image","mimeType":"image/jpeg","data":"` + pixel(t) + `"}`):            "images are PNG",
		text(strings.Repeat("a", 256<<10+1)):                                                     "up to 256 KiB of text",
		strings.Replace(question, "{", `{"tools":[{"name":"a","inputSchema":{}}],`, 1):           "sampling.tools",
		strings.Replace(question, "{", `{"toolChoice":{"mode":"none"},`, 1):                      "sampling.tools",
		strings.Replace(question, "{", `{"includeContext":"everything",`, 1):                     "includeContext is",
		strings.Replace(question, "{", `{"temperature":-1,`, 1):                                  "temperature",
		strings.Replace(question, "{", `{"stopSequences":["`+strings.Repeat(`","`, 10)+`"],`, 1): "stopSequences",

		text(`How\u200bmany?`): "a message contains U+200B, which the user cannot see",
		text(`\udb40\udc41`):   "U+E0041",
		text(`\u202eynam`):     "U+202E",
		text(`a\u200c\u200d`):  "U+200C",
		text(`a\rb`):           "U+000D",
		strings.Replace(question, "{", `{"systemPrompt":"a\u0000",`, 1):                      "systemPrompt contains U+0000",
		message(`{"type":"image","mimeType":"image/png","data":"iVBORw0KGgoAAAANSUhEUg=="}`): "images are PNG",
	} {
		got, _ := s.ask(nil, request)
		require.Contains(t, got, want)
		require.True(t, strings.HasPrefix(got, "-32602 "), got)
	}
	require.Empty(t, s.model.asked())
}

// Clause M13.
func TestRequestsAreLimited(t *testing.T) {
	s := newSampling(t, mcptest.Self("m", "sdk", "REVISION="+eras[0]))
	done := make(chan string, 1)
	go func() {
		got, _ := s.try("m.sample", `{"requests":[`+question+`,`+question+`]}`)
		done <- got
	}()
	first := s.user.next(t)
	s.logs.WaitFor(t, "has not answered another request")
	first.answer <- reject
	got := <-done
	require.Contains(t, got, "-1 User rejected")
	require.Contains(t, got, "-32603 the user has not answered another request")
	for range 9 {
		s.ask([]string{reject}, question)
	}
	got, _ = s.ask(nil, question)
	require.Contains(t, got, "-32603 too many requests, the limit is 10 a minute")
}

// Clause M13.
func TestModelFails(t *testing.T) {
	s := newSampling(t, mcptest.Self("m", "sdk", "REVISION="+eras[0]))
	s.model.fail = errors.New("the key of http://10.0.0.1 was rejected")
	got, _ := s.ask([]string{allow}, question)
	require.Equal(t, "-32603 the model could not answer", got)
	require.Contains(t, s.user.updates.String(), "the key of http://10.0.0.1 was rejected", "the user is told")
	require.Contains(t, s.logs.String(), "outcome=failed")
}

// Clause M13.
func TestEndsWithCall(t *testing.T) {
	for _, era := range eras {
		t.Run(era+" question", func(t *testing.T) {
			s := newSampling(t, mcptest.Self("m", "sdk", "REVISION="+era))
			ctx, cancel := context.WithCancelCause(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := s.Call(ctx, s.host, backend.ToolRequest{Name: "m.sample", Arguments: backend.Raw(`{"requests":[` + question + `]}`)})
				done <- err
			}()
			asked := s.user.next(t)
			cancel(backend.ErrCancelled)
			<-asked.ended
			require.ErrorIs(t, <-done, backend.ErrCancelled)
			s.logs.WaitFor(t, "outcome=cancelled")
		})
		t.Run(era+" model", func(t *testing.T) {
			s := newSampling(t, mcptest.Self("m", "sdk", "REVISION="+era))
			s.model.wait = make(chan struct{})
			done := make(chan error, 1)
			go func() {
				_, err := s.Call(t.Context(), s.host, backend.ToolRequest{Name: "m.sample", Arguments: backend.Raw(`{"requests":[` + question + `]}`)})
				done <- err
			}()
			s.user.next(t).answer <- allow
			<-s.model.wait
			require.NoError(t, s.Close(t.Context()))
			require.Error(t, <-done)
			require.Contains(t, s.logs.String(), "outcome=cancelled")
		})
	}
}

// A legacy server can ask at any time. It is answered only while it is being used.
//
// Clause M13.
func TestRejectedOutsideOfCalls(t *testing.T) {
	s := newSampling(t, mcptest.Self("m", "samples"))
	_, err := mcptest.ListTools(t.Context(), s)
	require.NoError(t, err)
	s.logs.WaitFor(t, "answered -32600")
	require.Empty(t, s.user.reviews)
}

// Clause M13.
func TestWithoutModel(t *testing.T) {
	f := newFixture(t, mcpclient.Options{}, mcptest.Self("m", "samples"))
	_, err := mcptest.ListTools(t.Context(), f)
	require.NoError(t, err)
	f.logs.WaitFor(t, "answered -32601")
	require.NotContains(t, f.logs.String(), "declared sampling")
}

// The official TypeScript servers of both eras ask.
//
// Clause M13.
func TestTypeScriptServers(t *testing.T) {
	s := newSampling(t, npmServer("m", npmtest.Everything(t)))
	answer := func(answers ...string) {
		for _, a := range answers {
			s.user.next(t).answer <- a
		}
	}
	go answer(allow, allow)
	got, err := s.try("m.trigger-sampling-request", `{"prompt":"Hello","maxTokens":20}`)
	require.NoError(t, err)
	require.Contains(t, got, `"text": "It is 42."`)
	require.Contains(t, got, `"stopReason": "endTurn"`)
	require.Equal(t, "You are a helpful test server.", s.model.asked()[0].System)
	go answer(reject)
	_, err = s.try("m.trigger-sampling-request", `{"prompt":"Hello"}`)
	require.ErrorContains(t, err, "MCP error -1: User rejected sampling request")

	s = newSampling(t, npmServer("m", npmtest.Modern(t)))
	go answer(allow, allow)
	require.Equal(t, "large-1 endTurn: It is 42.", s.call("m.sample", `{}`))
	require.Equal(t, "2026-07-28", s.Servers()[0].Revision)
}
