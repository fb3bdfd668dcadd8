package model

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// poison is what the servers of these tests do not accept, and escaped what the scripted model
// says so that only its answer has it.
const poison, escaped = "POISON", `\u0050OISON`

// poisoned is an image that the servers of these tests do not accept.
var poisoned = base64.StdEncoding.EncodeToString(onePixel)

// rejection is how a server rejects a request.
type rejection struct {
	status int
	body   string
}

// rejecting puts a server in front of the model that rejects requests with the poison, and counts
// them.
func rejecting(t *testing.T, r rejection, count *atomic.Int64) func(*Model) {
	return func(m *Model) {
		to, err := url.Parse(m.BaseURL)
		require.NoError(t, err)
		proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
		handle := func(w http.ResponseWriter, asked *http.Request) {
			body, _ := io.ReadAll(asked.Body)
			if bytes.Contains(body, []byte(poison)) || bytes.Contains(body, []byte(poisoned)) {
				count.Add(1)
				w.Header().Set("Retry-After-Ms", "1")
				w.WriteHeader(r.status)
				_, _ = io.WriteString(w, r.body)
				return
			}
			asked.Body = io.NopCloser(bytes.NewReader(body))
			proxy.ServeHTTP(w, asked)
		}
		server := httptest.NewServer(http.HandlerFunc(handle))
		t.Cleanup(server.Close)
		m.BaseURL = server.URL
	}
}

// contentFilters are answers of servers to a text that they do not want.
var contentFilters = map[string]rejection{
	"Azure": {400, `{"error":{"code":"content_filter","message":"The response was filtered due to ` +
		`the prompt triggering Azure OpenAI's content management policy.",` +
		`"innererror":{"code":"ResponsibleAIPolicyViolation"}}}`},
	"DashScope": {400, `{"error":{"code":"data_inspection_failed","message":"<400> ` +
		`InternalError.Algo.DataInspectionFailed: Input text data may contain inappropriate content."}}`},
	"OpenAI": {400, `{"error":{"type":"invalid_request_error","code":"invalid_prompt","message":` +
		`"Invalid prompt: your prompt was flagged as potentially violating our usage policy."}}`},
	"OpenRouter": {403, `{"error":{"code":403,"message":"m requires moderation on OpenRouter. ` +
		`Your input was flagged for \"violence\"","metadata":{"reasons":["violence"]}}}`},
	"Anthropic": {400, `{"type":"error","error":{"type":"invalid_request_error",` +
		`"message":"Output blocked by content filtering policy"}}`},
	"Z.ai": {400, `{"contentFilter":[{"level":1,"role":"user"}],"error":{"code":"1301","message":` +
		`"系统检测到输入或生成内容可能包含不安全或敏感内容"}}`},
	"DeepSeek": {400, `{"error":{"message":"Content Exists Risk","type":"invalid_request_error"}}`},
	"Moonshot": {400, `{"error":{"message":"The request was rejected because it was considered ` +
		`high risk","type":"content_filter"}}`},
}

// otherRejections have no words that are known, or misleading ones.
var otherRejections = map[string]rejection{
	"no words":                   {400, ""},
	"unknown words":              {400, `{"error":{"message":"Qwfp 17"}}`},
	"not processable":            {422, `{"detail":[{"loc":["body"],"msg":"bad"}]}`},
	"an image":                   {400, `{"error":{"message":"Could not process image"}}`},
	"no image input":             {404, `{"error":{"message":"No endpoints found that support image input"}}`},
	"vLLM, image":                {400, `{"object":"error","message":"m is not a multimodal model","code":400}`},
	"llama.cpp, image":           {500, `{"error":{"code":500,"message":"image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"}}`},
	"DeepSeek, image":            {400, "{\"error\":{\"message\":\"Failed to deserialize the JSON body: unknown variant `image_url`, expected `text`\"}}"},
	"redacted":                   {400, "{\"error\":{\"message\":\"Invalid `data` in `redacted_thinking` block\"}}"},
	"a firewall":                 {403, "<html><title>Request blocked</title></html>"},
	"a broken server":            {500, `{"error":{"message":"internal error"}}`},
	"no such page":               {404, "404 page not found"},
	"a teapot":                   {418, ""},
	"an error in an answer":      {200, `{"error":{"message":"no such luck"}}`},
	"an error without the word":  {200, `{"base_resp":{"status_code":1026,"status_msg":"bad"}}`},
	"an error in a stream":       {200, "data: {\"error\":{\"message\":\"no\"}}\n\ndata: [DONE]\n\n"},
	"something else than events": {200, "data: hello\n\n"},
	"an unreadable call":         {400, `{"error":{"message":"Failed to call a function.","code":"tool_use_failed"}}`},
	"a conflict":                 {409, ""},
	"a region":                   {403, `{"error":{"message":"Country, region, or territory not supported"}}`},
	"an order":                   {400, `{"object":"error","message":"Unexpected role 'user' after role 'tool'","code":"3230"}`},
	"roles":                      {500, `{"error":{"message":"Conversation roles must alternate user/assistant"}}`},
	"no system":                  {500, `{"error":{"message":"System role not supported"}}`},
	"a balance":                  {429, `{"error":{"code":"1113","message":"Insufficient balance"}}`},
	"an event with words":        {200, "event: error\ndata: upstream is gone\n\n"},
}

// tooLongRejections are the words of servers about requests that are too long, also if a part of
// the request is the reason.
var tooLongRejections = map[string]rejection{
	"Vertex": {400, `{"error":{"code":400,"message":"Unable to submit request because the input token count is ` +
		`1196265 but the model only supports up to 1048576."}}`},
	"LiteLLM": {400, `{"error":{"message":"litellm.ContextWindowExceededError: XException - too many tokens"}}`},
	"Z.ai":    {400, `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`},
	"Zhipu":   {400, `{"error":{"code":"1261","message":"Prompt 超长"}}`},
	"Together": {400, "{\"error\":{\"message\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be " +
		"<= 32769. Given: 40000 `inputs` tokens\"}}"},
	"TGI":    {422, "{\"error\":\"Input validation error: `inputs` must have less than 4096 tokens. Given: 5000\"}"},
	"Cohere": {400, `{"message":"too many tokens: size limit exceeded by 1200 tokens."}`},
	"Databricks": {400, `{"error_code":"BAD_REQUEST","message":"Input too long: prompt length 140000 exceeds ` +
		`maximum 131072"}`},
	"OpenAI": {400, `{"error":{"message":"Invalid 'messages[2].content': string too long.",` +
		`"code":"string_above_max_length"}}`},
	"a proxy": {413, "<html><title>413 Request Entity Too Large</title></html>"},
}

// places are where the poison gets into the conversation.
var places = map[string]func(e *editor){
	"prompt": func(e *editor) { e.prompt("Say " + poison) },
	"image": func(e *editor) {
		e.send(sdk.TextBlock("Look."), sdk.ImageBlock(poisoned, "image/png"))
	},
	"result": func(e *editor) { e.prompt("Read.", modelserver.Read("poison.txt")) },
	"result beside others": func(e *editor) {
		e.prompt("Read.", modelserver.Together(modelserver.Read("a.txt"),
			modelserver.Read("poison.txt")))
	},
	"image of a tool": func(e *editor) { e.prompt("Look.", modelserver.UseWith("fs__picture", "{}")) },
	"answer": func(e *editor) {
		e.send(sdk.TextBlock("Say.\nmodel: {\"do\":\"say\",\"text\":\"" + escaped + "\"}"))
	},
	"call": func(e *editor) {
		e.send(sdk.TextBlock("Read.\nmodel: {\"do\":\"read\",\"path\":\"" + escaped + "\"}"))
	},
	"cancelled prompt": func(e *editor) {
		e.cancelAfter(func(u update) bool { return u.Status == sdk.ToolCallStatusCompleted })
		e.prompt("Read.", modelserver.Read("poison.txt"), modelserver.Wait())
		e.mu.Lock()
		e.onUpdate = nil
		e.mu.Unlock()
	},
}

// recovers checks that the model answers one of a few prompts, and from then on each of them, also
// after a restart and in a fork. If an answer of the model is the reason, the user is told to undo
// it. The history keeps what the model is not told.
func (e *editor) recovers(within int, poisonedAnswer bool, count *atomic.Int64) {
	e.t.Helper()
	said := ""
	for i := 0; !strings.Contains(said, "Going on."); i++ {
		require.Less(e.t, i, within, said)
		if poisonedAnswer && i == within-1 {
			require.Contains(e.t, said, "/undo")
			require.Contains(e.t, e.prompt("/undo").text(), "The model has forgotten `Say.")
		}
		said = e.prompt("Go on.", modelserver.Say("Going on.")).text()
		if i == 0 {
			e.restart()
		}
	}
	before := count.Load()
	e.goOn()
	e.restart()
	e.goOn()
	fork, err := e.client.ForkSession(e.t.Context(), e.id, e.lifecycle())
	require.NoError(e.t, err)
	e.id = fork.ID
	e.goOn()
	require.Equal(e.t, "Replaced.", e.summary())
	require.Equal(e.t, before, count.Load(), "requests that were rejected later")
}

// summary lets the model summarise the conversation.
func (e *editor) summary() string {
	e.t.Helper()
	e.prompt("Remember.", modelserver.Say("Replaced.").Aside())
	r := e.prompt("/compact")
	require.Contains(e.t, r.text(), "continues with a summary")
	e.prompt("And?")
	if strings.Contains(e.last().Text(), "Replaced.") {
		return "Replaced."
	}
	return e.last().Text()
}

// stored returns the stored history.
func (e *editor) stored() string {
	e.t.Helper()
	var all strings.Builder
	for u, err := range e.setup.store.History(e.t.Context(), sessionstore.ID(e.id)) {
		require.NoError(e.t, err)
		all.Write(u.Raw)
	}
	return all.String()
}

// A request that the server rejects for its content leaves a session in which a later prompt is
// accepted, wherever the content is and whatever the words.
//
// Clause B6.
func TestNoStuckSession(t *testing.T) {
	ways := slices.Sorted(maps.Keys(places))
	next := 0
	for _, rejections := range []map[string]rejection{
		contentFilters, otherRejections, tooLongRejections,
	} {
		for _, name := range slices.Sorted(maps.Keys(rejections)) {
			for range volume.Of(1, len(ways)) {
				place := ways[next%len(ways)]
				next++
				t.Run(name+", "+place, func(t *testing.T) {
					t.Parallel()
					var count atomic.Int64
					dir := dirtest.New(t, "poison.txt", poison+"\n", "a.txt", "one\n")
					s := setup{roots: []string{dir}, model: rejecting(t, rejections[name], &count)}
					if place == "image of a tool" {
						s.servers = []sdk.McpServer{playedServer("fs")}
					}
					e := open(t, s)
					e.answer(allowOnce)
					e.prompt("First.", modelserver.Say("Done."))
					places[place](e)
					e.recovers(3, place == "answer", &count)
					require.Contains(t, e.stored(), "Done.")
				})
			}
		}
	}
}

// What a content filter rejects is not sent again, and the user reads what was left out.
//
// Clause B6.
func TestContentFilters(t *testing.T) {
	for name, r := range contentFilters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var count atomic.Int64
			e := open(t, setup{model: rejecting(t, r, &count)})
			e.prompt("First.", modelserver.Say("Done."))
			said := e.prompt("Say " + poison)
			require.JSONEq(t, failedResult, string(said.result))
			require.Regexp(t, `^The content filter of the model's server rejected the request: .*`+
				`Later requests leave out your message\. It remains in the history of the `+
				`session\. Send another one to continue, or choose another model\.$`, said.text())
			require.NotContains(t, said.text(), "configuration")
			require.EqualValues(t, 1, count.Load())
			require.Contains(t, e.stored(), poison)
			e.goOn()
			require.Contains(t, e.last().Text(), "First.")
			require.EqualValues(t, 1, count.Load())
		})
	}
}

// Images that the server does not accept are left out at once, and the model answers.
//
// Clause B6.
func TestRejectedMedia(t *testing.T) {
	for _, place := range []string{"image", "image of a tool"} {
		t.Run(place, func(t *testing.T) {
			var count atomic.Int64
			e := open(t, setup{model: rejecting(t, rejection{400, `{"error":{"message":"Bad"}}`}, &count),
				servers: []sdk.McpServer{playedServer("fs")},
				roots:   []string{dirtest.New(t, "poison.txt", poison)}})
			e.answer(allowOnce)
			e.prompt("First.", modelserver.Say("Done."))
			places[place](e)
			require.Contains(t, e.stored(), "The model's server rejected the request: Bad (HTTP status "+
				"400). The model continues without the new images and documents; the history of "+
				"the session keeps them.")
			require.Contains(t, e.last().Text(), "First.")
			before := count.Load()
			e.goOn()
			e.restart()
			e.goOn()
			require.Equal(t, before, count.Load())
		})
	}
}

// A server that rejects everything, because something is configured wrong, does not cost the
// session its history.
//
// Clause B6.
func TestRejectedForTheConfiguration(t *testing.T) {
	t.Parallel()
	e := open(t, setup{roots: []string{dirtest.New(t, "a.txt", "one\n")}})
	e.prompt("First.", modelserver.Read("a.txt"), modelserver.Say("Done."))
	right := e.setup.model
	for _, r := range []rejection{{400, `{"error":{"message":"Bad"}}`}, {404, ""}, {500, ""}} {
		e.setup.model = func(m *Model) {
			server := httptest.NewServer(http.HandlerFunc(
				func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Retry-After-Ms", "1")
					w.WriteHeader(r.status)
					_, _ = io.WriteString(w, r.body)
				}))
			t.Cleanup(server.Close)
			m.BaseURL = server.URL
		}
		e.restart()
		for range 3 {
			require.JSONEq(t, failedResult, string(e.prompt("Go on.").result))
		}
	}
	e.setup.model = right
	e.restart()
	e.goOn()
	require.Len(t, e.results(), 1)
	require.Contains(t, e.results()[0], "one")
	require.Equal(t, "Done.", e.last().Of(modelserver.Said)[0])
}

// The requests of a session are valid by the rules for the order of messages that servers have,
// after cancels, failures, crashes and loads too. A rule that is not known is learned from the
// first rejection.
//
// Clause B6.
func TestOrderOfMessages(t *testing.T) {
	for _, name := range []string{modelserver.Mistral, modelserver.Devstral} {
		for seed := range volume.Of(3, 24) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(uint64(seed), 1))
				dir := dirtest.New(t, "a.txt", "one\ntwo\n", "b.txt", "three\n",
					".claude/commands/greet.md", "Greet $ARGUMENTS.\n")
				e := open(t, setup{roots: []string{dir, dirtest.New(t)},
					servers: []sdk.McpServer{playedServer("fs")}, model: named(name)})
				e.answer(allowOnce)
				restarts := 0
				for range 4 {
					randomTurn(e, r)
					if r.IntN(2) == 0 {
						e.restart()
						restarts++
					}
				}
				e.goOn()
				e.answer(allowOnce)
				require.Equal(t, modelserver.Done, e.prompt("Look.",
					modelserver.UseWith("fs__picture", "{}")).text())
				require.LessOrEqual(t, len(e.model.Rejected()), 1+restarts, e.model.Rejected())
			})
		}
	}
}

// A process that is killed behind the result of a tool leaves a session that Mistral accepts.
//
// Clause B6.
func TestOrderAfterACrash(t *testing.T) {
	e := open(t, setup{roots: []string{dirtest.New(t, "a.txt", "one\n")},
		store: memstore.New(t), model: named(modelserver.Mistral)})
	ended := make(chan error, 1)
	go func() {
		_, err := e.client.Prompt(context.Background(), e.id, sdk.TextBlock(modelserver.Prompt(
			"Read.", modelserver.Read(filepath.Join(e.setup.roots[0], "a.txt")), modelserver.Wait())))
		ended <- err
	}()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	require.NoError(t, e.model.Waiting(ctx))
	require.Eventually(t, func() bool {
		return strings.Contains(e.stored(), `"completed"`)
	}, patience, 10*time.Millisecond, "what is shown is stored a moment later")
	other := &editor{t: t, model: e.model, setup: e.setup, id: e.id}
	other.connect()
	_, err := other.client.LoadSession(t.Context(), e.id, other.lifecycle())
	require.NoError(t, err)
	other.goOn()
	require.Equal(t, []string{"Unexpected role 'user' after role 'tool'"}, e.model.Rejected())
	e.stop()
	<-ended
}

// A budget that is spent is no reason to leave out a prompt.
func TestSpentBudget(t *testing.T) {
	var count atomic.Int64
	e := open(t, setup{model: rejecting(t, rejection{400, `{"error":{"message":"Budget has been exceeded! ` +
		`Max budget: 0.05","type":"budget_exceeded","code":"400"}}`}, &count)})
	said := e.prompt("Say " + poison)
	require.Equal(t, "The model's server rejected the request: Budget has been exceeded! Max budget: 0.05 "+
		"(HTTP status 400). Check your account at the provider, then send another message, or choose "+
		"another model.", said.text())
	require.JSONEq(t, failedResult, string(said.result))
}
