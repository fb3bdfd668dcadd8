package modelserver_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type object = map[string]any

// format is how an agent that speaks one of the formats asks.
type format struct {
	path string
	// ask is the body for a conversation. At even places are the user's texts and the tools'
	// results, in between what the model did: a text, or "call".
	ask func(items []string, stream bool, tools ...any) object
	// tool is a tool with a schema.
	tool func(name string, schema object) object
}

// prompted is a conversation that begins with words and orders, and went on with others.
func prompted(orders []modelserver.Order, more ...string) []string {
	return append([]string{modelserver.Prompt("Please.", orders...)}, more...)
}

var formats = map[string]format{
	"chat": {
		path: "/v1/chat/completions",
		ask: func(items []string, stream bool, tools ...any) object {
			messages := []any{object{"role": "system", "content": "Be good."}}
			for i, item := range items {
				switch {
				case i == 0:
					messages = append(messages,
						object{"role": "user",
							"content": []any{object{"type": "text", "text": item}}})
				case item == "call":
					messages = append(messages, object{"role": "assistant", "content": nil,
						"tool_calls": []any{
							object{"id": "x", "type": "function", "function": object{"name": "read",
								"arguments": "{}"}}}})
				default:
					messages = append(messages, object{"role": "tool", "tool_call_id": "x",
						"content": item})
				}
			}
			return object{"model": "m", "stream": stream, "messages": messages, "tools": tools}
		},
		tool: func(name string, schema object) object {
			return object{"type": "function", "function": object{"name": name,
				"parameters": schema}}
		},
	},
	"responses": {
		path: "/v1/responses",
		ask: func(items []string, stream bool, tools ...any) object {
			var input []any
			for i, item := range items {
				switch {
				case i == 0:
					input = append(input, object{"role": "user",
						"content": []any{object{"type": "input_text", "text": item}}})
				case item == "call":
					input = append(input, object{"type": "function_call", "call_id": "x",
						"name": "read", "arguments": "{}"})
				default:
					input = append(input, object{"type": "function_call_output", "call_id": "x",
						"output": item})
				}
			}
			return object{"model": "m", "stream": stream, "instructions": "Be good.",
				"input": input, "tools": tools}
		},
		tool: func(name string, schema object) object {
			return object{"type": "function", "name": name, "parameters": schema}
		},
	},
	"messages": {
		path: "/v1/messages",
		ask: func(items []string, stream bool, tools ...any) object {
			var messages []any
			for i, item := range items {
				switch {
				case i == 0:
					messages = append(messages, object{"role": "user", "content": item})
				case item == "call":
					messages = append(messages, object{"role": "assistant", "content": []any{
						object{"type": "tool_use", "id": "x", "name": "read", "input": object{}}}})
				default:
					messages = append(messages, object{"role": "user", "content": []any{
						object{"type": "tool_result", "tool_use_id": "x",
							"content": []any{object{"type": "text", "text": item}}},
						object{"type": "text", "text": "a reminder of the agent's"}}})
				}
			}
			return object{"model": "m", "max_tokens": 100, "stream": stream,
				"system":   []any{object{"type": "text", "text": "Be good."}},
				"messages": messages, "tools": tools}
		},
		tool: func(name string, schema object) object {
			return object{"name": name, "input_schema": schema}
		},
	},
	"gemini": {
		path: "/v1beta/models/m:generateContent",
		ask: func(items []string, _ bool, tools ...any) object {
			var contents []any
			for i, item := range items {
				switch {
				case i == 0:
					contents = append(contents,
						object{"role": "user", "parts": []any{object{"text": item}}})
				case item == "call":
					contents = append(contents,
						object{"role": "model",
							"parts": []any{object{"functionCall": object{"name": "read",
								"args": object{}}}}})
				default:
					contents = append(contents, object{"role": "user", "parts": []any{
						object{"functionResponse": object{"name": "read",
							"response": object{"output": item}}}}})
				}
			}
			return object{"systemInstruction": object{"parts": []any{object{"text": "Be good."}}},
				"contents": contents,
				"tools":    []any{object{"functionDeclarations": tools}}}
		},
		tool: func(name string, schema object) object {
			return object{"name": name, "parametersJsonSchema": schema}
		},
	},
}

// post asks a server and returns what it answers.
func post(t *testing.T, s *modelserver.Server, path string, body any) string {
	t.Helper()
	text, err := json.Marshal(body)
	require.NoError(t, err)
	answer, err := http.Post(s.URL()+path, "application/json", strings.NewReader(string(text)))
	require.NoError(t, err)
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode, "%s", read)
	return string(read)
}

func start(t *testing.T) *modelserver.Server {
	t.Helper()
	s, err := modelserver.Start()
	require.NoError(t, err)
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		require.NoError(t, s.Close())
	})
	return s
}

func properties(names ...string) object {
	all := object{}
	for _, name := range names {
		all[name] = object{"type": "string"}
	}
	return object{"type": "object", "properties": all}
}

func TestOrdersInEveryFormat(t *testing.T) {
	orders := []modelserver.Order{modelserver.Read("/a"), modelserver.Edit("/a", "old", "new"),
		modelserver.Say("Said it.")}
	for name, f := range formats {
		for _, streamed := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", streamed"}[streamed], func(t *testing.T) {
				s, path := start(t), f.path
				if streamed {
					path = strings.Replace(path, ":generateContent", ":streamGenerateContent", 1)
				}
				ask := func(more ...string) string {
					return post(t, s, path, f.ask(prompted(orders, more...), streamed,
						f.tool("Read", properties("filePath")), f.tool("edit",
							properties("path", "old_string", "newText"))))
				}
				// Some formats have a call's arguments as a text in JSON.
				plain := func(text string) string { return strings.ReplaceAll(text, `\"`, `"`) }
				require.Contains(t, plain(ask()), `{"filePath":"/a"}`)
				require.Contains(t, plain(ask("call", "a result")),
					`{"newText":"new","old_string":"old","path":"/a"}`)
				require.Contains(t, ask("call", "a result", "call", ""), "Said it.")
				require.Contains(t, ask("call", "one", "call", "two", "call", "three"),
					modelserver.Done)

				r := s.Requests()[1]
				require.Equal(t, "Be good.", r.Instructions)
				require.Equal(t, "a result", r.Of(modelserver.Result)[0])
				require.Contains(t, r.Text(), "Please.")
				require.True(t, r.Asks())
			})
		}
	}
}

func TestToolArguments(t *testing.T) {
	f := formats["messages"]
	for _, c := range []struct {
		name  string
		order modelserver.Order
		tools []any
		want  string
	}{
		{"a required reason is made up", modelserver.Write("/a", "text"),
			[]any{f.tool("write_file", with(properties("absolute_path", "content", "why", "other"),
				"required", []string{"why"}))},
			`"input":{"absolute_path":"/a","content":"text","why":"as ordered"}`},
		{"a list of edits", modelserver.Edit("/a", "old", "new"),
			[]any{f.tool("edit", properties("path", "edits"))},
			`"input":{"edits":[{"newText":"new","oldText":"old"}],"path":"/a"}`},
		{"a list of files", modelserver.Read("/a"),
			[]any{f.tool("read_files", properties("files"))}, `"input":{"files":[{"path":"/a"}]}`},
		{"shorter names", modelserver.Edit("/a", "old", "new"),
			[]any{f.tool("edit", properties("path", "old_str", "new_str"))},
			`"input":{"new_str":"new","old_str":"old","path":"/a"}`},
		{"before and after", modelserver.Edit("/a", "old", "new"),
			[]any{f.tool("edit", properties("path", "before", "after"))},
			`"input":{"after":"new","before":"old","path":"/a"}`},
		{"a list of commands", modelserver.Read("/a"),
			[]any{f.tool("run_commands", properties("commands"))},
			`"input":{"commands":["cat '/a'"]}`},
		{"a shell to read", modelserver.Read("/a"),
			[]any{f.tool("exec_command", properties("cmd"))}, `"input":{"cmd":"cat '/a'"}`},
		{"a shell to edit", modelserver.Edit("/it's", "old", "new"),
			[]any{f.tool("shell", properties("command"))},
			`"input":{"command":"sed -i 's|old|new|' '/it'\\''s'"}`},
		{"a shell to write", modelserver.Write("/a", "text"),
			[]any{f.tool("shell", properties("command"))},
			`"input":{"command":"printf %s 'text' \u003e '/a'"}`},
		{"an invented tool", modelserver.Invent("sing", `{"loud":true}`),
			[]any{f.tool("dance", properties())}, `"input":{"loud":true},"name":"sing"`},
		{"no such tool", modelserver.Read("/a"), []any{f.tool("dance", properties())},
			`no tool for \"read\" among dance`},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Contains(t,
				post(t, start(t), f.path, f.ask(prompted([]modelserver.Order{c.order}), false,
					c.tools...)), c.want)
		})
	}
}

func with(o object, name string, value any) object {
	o[name] = value
	return o
}

func TestLastOrdersApply(t *testing.T) {
	f := formats["chat"]
	s, tool := start(t), f.tool("read", properties("path"))
	older := modelserver.Prompt("The conversation so far:", modelserver.Say("older"))
	text := older + "\nend of it\n" + modelserver.Prompt("Now.", modelserver.Say("newer"))
	require.Contains(t, post(t, s, f.path, f.ask([]string{text}, false, tool)), "newer")
	require.Contains(t, post(t, s, f.path, f.ask([]string{"no orders"}, false, tool)),
		modelserver.Done)
	require.Contains(t, post(t, s, f.path, f.ask([]string{text}, false)), modelserver.Title,
		"no tools, so a side errand")
}

func TestSeveralThingsInOneAnswer(t *testing.T) {
	together := modelserver.Together(modelserver.Think("Hmm."), modelserver.Say("Both.").In(3),
		modelserver.Read("/a"), modelserver.Read("/b"))
	orders := []modelserver.Order{together, modelserver.Say("Seen.").Ending("length"),
		modelserver.Say("No.").Ending("refusal")}
	for name, want := range map[string][][]string{
		"chat": {
			{`"reasoning_content":"Hmm."`, `"content":"B"`, `"content":"ot"`, `"content":"h."`,
				`"index":0`, `{\"path\":\"/a\"}`, `"index":1`, `{\"path\":\"/b\"}`,
				`"finish_reason":"tool_calls"`, `"prompt_tokens"`, "[DONE]"},
			{`"content":"Seen."`, `"finish_reason":"length"`}, {`"content":"No."`,
				`"finish_reason":"content_filter"`},
		},
		"messages": {
			{`"thinking":"Hmm."`, `"signature":"signed 4"`, `"text":"B"`, `"text":"ot"`,
				`"text":"h."`, `{\"path\":\"/a\"}`, `"index":3`, `{\"path\":\"/b\"}`,
				`"stop_reason":"tool_use"`},
			{`"text":"Seen."`, `"stop_reason":"max_tokens"`}, {`"text":"No."`,
				`"stop_reason":"refusal"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, f := start(t), formats[name]
			given := prompted(orders)
			for _, order := range want {
				streamed := post(t, s, f.path,
					f.ask(given, true, f.tool("read", properties("path"))))
				for _, part := range order {
					_, rest, found := strings.Cut(streamed, part)
					require.True(t, found, "%s in %s", part, streamed)
					streamed = rest
				}
				given = append(given, "call", "seen")
			}
			whole := post(t, s, f.path, f.ask(prompted(orders), false,
				f.tool("read", properties("path"))))
			for _, part := range []string{"Hmm.", "Both.", "/a", "/b"} {
				require.Contains(t, whole, part)
			}
		})
	}
	f := formats["gemini"]
	require.Contains(t, post(t, start(t), f.path, f.ask(prompted(orders), false,
		f.tool("read", properties("path")))), "not for Gemini")
}

func TestPace(t *testing.T) {
	f := formats["chat"]
	answer := post(t, start(t), f.path, f.ask(prompted([]modelserver.Order{modelserver.Stamps(5,
		time.Microsecond)}), true, f.tool("read", properties())))
	require.Equal(t, 5, strings.Count(answer, `"content":"at `))
}

func TestUsageGrowsWithTheConversation(t *testing.T) {
	f, s := formats["messages"], start(t)
	input := func(words string) float64 {
		var answer struct{ Usage map[string]float64 }
		require.NoError(t, json.Unmarshal([]byte(post(t, s, f.path,
			f.ask([]string{words}, false, f.tool("read", properties())))), &answer))
		return answer.Usage["input_tokens"]
	}
	require.InDelta(t, 1000, input(strings.Repeat("word", 1001))-input("word"), 1)
}

func TestOrdersForRequestsWithoutTools(t *testing.T) {
	f, s := formats["chat"], start(t)
	given := prompted([]modelserver.Order{modelserver.Say("A summary.").Aside(),
		modelserver.Say("An answer.")})
	require.Contains(t, post(t, s, f.path, f.ask(given, false)), "A summary.")
	require.Contains(t, post(t, s, f.path, f.ask(given, false, f.tool("read", properties()))),
		"An answer.")
}

func TestFaults(t *testing.T) {
	for _, name := range []string{"chat", "messages"} {
		t.Run(name, func(t *testing.T) {
			s, f := start(t), formats[name]
			ask := func(fault modelserver.Fault) (*http.Response, string, error) {
				orders := []modelserver.Order{modelserver.Say("Said it.").Failing(fault)}
				text, err := json.Marshal(f.ask(prompted(orders), true, f.tool("read", properties())))
				require.NoError(t, err)
				answer, err := http.Post(s.URL()+f.path, "application/json",
					strings.NewReader(string(text)))
				require.NoError(t, err)
				defer answer.Body.Close()
				body, err := io.ReadAll(answer.Body)
				return answer, string(body), err
			}
			busy := modelserver.Fault{Times: 2, Status: 429,
				Header: map[string]string{"Retry-After": "3"}, Body: "<p>later</p>"}
			for range busy.Times {
				answer, text, err := ask(busy)
				require.NoError(t, err)
				require.Equal(t, 429, answer.StatusCode)
				require.Equal(t, "3", answer.Header.Get("Retry-After"))
				require.Equal(t, "<p>later</p>", text)
			}
			_, text, err := ask(busy)
			require.NoError(t, err)
			require.Contains(t, text, "Said it.", "the third time")

			_, text, err = ask(modelserver.Fault{Events: 2})
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			require.Equal(t, 2, strings.Count(text, "data: "))
			_, text, err = ask(modelserver.Fault{Events: 1, Then: "end"})
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(text, "data: "))

			ctx, hangUp := context.WithCancel(t.Context())
			defer hangUp()
			silence := modelserver.Fault{Events: 1, Then: "silence"}
			orders := []modelserver.Order{modelserver.Say("x").Failing(silence)}
			body, err := json.Marshal(f.ask(prompted(orders), true, f.tool("read", properties())))
			require.NoError(t, err)
			asked, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+f.path,
				strings.NewReader(string(body)))
			require.NoError(t, err)
			answer, err := http.DefaultClient.Do(asked)
			require.NoError(t, err)
			defer answer.Body.Close()
			require.NoError(t, s.Waiting(ctx))
			hangUp()
			_, err = io.ReadAll(answer.Body)
			require.ErrorIs(t, err, context.Canceled)
		})
	}
}

func TestConversationsThatDoNotMatch(t *testing.T) {
	chatCall := object{"role": "assistant", "tool_calls": []any{object{"id": "a",
		"function": object{"name": "read", "arguments": "{}"}}}}
	message := func(role string, blocks ...any) object {
		return object{"role": role, "content": blocks}
	}
	use, result := object{"type": "tool_use", "id": "a", "name": "read",
		"input": object{}}, object{"type": "tool_result", "tool_use_id": "a", "content": "x"}
	text := object{"type": "text", "text": "x"}
	for _, c := range []struct {
		path, want string
		messages   []any
	}{
		{"/v1/chat/completions", "no results follow", []any{chatCall}},
		{"/v1/chat/completions", "no results follow",
			[]any{chatCall, object{"role": "user", "content": "x"}}},
		{"/v1/chat/completions", "does not follow",
			[]any{chatCall, object{"role": "tool", "tool_call_id": "b", "content": "x"}}},
		{"/v1/messages", "no results follow", []any{message("assistant", use)}},
		{"/v1/messages", "no results follow", []any{message("assistant", use),
			message("user", text, result)}},
		{"/v1/messages", "does not follow", []any{message("user", result)}},
		{"/v1/messages", "non-empty", []any{message("user", object{"type": "text", "text": ""})}},
		{"/v1/messages", "invalid signature",
			[]any{message("assistant", object{"type": "thinking", "thinking": "Hmm.",
				"signature": "x"})}},
	} {
		body, err := json.Marshal(object{"model": "m", "max_tokens": 100, "messages": c.messages})
		require.NoError(t, err)
		answer, err := http.Post(start(t).URL()+c.path, "application/json",
			strings.NewReader(string(body)))
		require.NoError(t, err)
		read, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusBadRequest, answer.StatusCode)
		require.Contains(t, string(read), c.want)
	}
}

func TestWaitEndsWithTheConnection(t *testing.T) {
	f, s := formats["messages"], start(t)
	text, err := json.Marshal(f.ask(prompted([]modelserver.Order{modelserver.Wait()}), true,
		f.tool("read", properties("path"))))
	require.NoError(t, err)
	ctx, hangUp := context.WithCancel(t.Context())
	asked, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+f.path,
		strings.NewReader(string(text)))
	require.NoError(t, err)
	failed := make(chan error)
	go func() {
		_, err := http.DefaultClient.Do(asked)
		failed <- err
	}()
	bounded, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	require.NoError(t, s.Waiting(bounded))
	hangUp()
	require.ErrorIs(t, <-failed, context.Canceled)
	require.ErrorIs(t, s.Waiting(ctx), context.Canceled)
}

func TestOtherRequests(t *testing.T) {
	s := start(t)
	for _, path := range []string{"/v1/models", "/v1beta/models"} {
		answer, err := http.Get(s.URL() + path)
		require.NoError(t, err)
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Contains(t, string(text), modelserver.Model)
	}
	require.Contains(t, post(t, s, "/v1/messages/count_tokens", object{}), "input_tokens")
	require.Contains(t, post(t, s, "/v1beta/models/m:countTokens", object{}), "totalTokens")
	for _, path := range []string{"/v2/elsewhere", "/v1beta/models/m:dance"} {
		answer, err := http.Post(s.URL()+path, "application/json", nil)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusNotFound, answer.StatusCode)
	}
	require.Equal(t, []string{"POST /v2/elsewhere", "POST /v1beta/models/m:dance"}, s.Unknown())
	answer, err := http.Post(s.URL()+"/v1/messages", "application/json", strings.NewReader("{"))
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusBadRequest, answer.StatusCode)
	require.Empty(t, s.Requests())
}

func TestProxyRejectsOtherHosts(t *testing.T) {
	s := start(t)
	address, err := url.Parse(s.URL())
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(address),
		DisableKeepAlives: true}}
	_, err = client.Get("https://example.test/secure")
	require.Error(t, err)
	answer, err := client.Get("http://example.test/plain")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
	require.Equal(t, []string{"CONNECT example.test:443", "GET example.test"}, s.Unknown())
}

// Agents put a server's name before that of its tool; Codex has a namespace for it.
func TestToolsOfMCPServers(t *testing.T) {
	chat, responses := formats["chat"], formats["responses"]
	order := []modelserver.Order{modelserver.Use("list_files", "/a").By("fs")}
	for _, name := range []string{"fs_list_files", "mcp__fs__list_files", "fs-list_files"} {
		answer := post(t, start(t), chat.path, chat.ask(prompted(order), false,
			chat.tool("list_files", properties("path")), chat.tool(name, properties("path"))))
		require.Contains(t, answer, `"name":"`+name+`"`)
		require.Contains(t, answer, `{\"path\":\"/a\"}`)
	}
	namespace := func(name string, tools ...any) object {
		return object{"type": "namespace", "name": name, "tools": tools}
	}
	for _, streamed := range []bool{false, true} {
		answer := post(t, start(t), responses.path, responses.ask(prompted(order), streamed,
			namespace("mcp__other", responses.tool("list_files",
				properties())), namespace("mcp__fs", responses.tool("list_files", properties()))))
		require.Contains(t, answer, `"name":"list_files","namespace":"mcp__fs"`)
	}
	own := prompted([]modelserver.Order{modelserver.Read("/a")})
	answer := post(t, start(t), responses.path,
		responses.ask(own, false, namespace("mcp__fs", responses.tool("read", properties("path")))))
	require.Contains(t, answer, `no tool for \"read\" among mcp__fsread`,
		"a server's tool is not the agent's own")
	answer = post(t, start(t), chat.path, chat.ask(prompted(order), false,
		chat.tool("exec_command", properties("cmd"))))
	require.Contains(t, answer, `no tool for \"fs use list_files\"`, "a shell does not replace it")
	bare := object{"type": "function", "function": object{"name": "fs_list_files"}}
	answer = post(t, start(t), chat.path, chat.ask(prompted(order), false, bare))
	require.Contains(t, answer, `"arguments":"{}"`, "a tool that takes none may have no schema")
}
