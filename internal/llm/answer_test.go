package llm

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/wire/sse"
)

func TestAnswers(t *testing.T) {
	t.Run("arrive at once", func(t *testing.T) {
		next := make(chan bool)
		c := asking(t, OpenAI, func(w http.ResponseWriter, r *http.Request) {
			for range next {
				says(chunk(`{"content":"x"}`))(w, r)
			}
			says(finished)(w, r)
		})
		go func() { next <- true }()
		count := 0
		for e, err := range c.Stream(t.Context(), Request{}) {
			require.NoError(t, err)
			if _, ok := e.(TextDelta); !ok {
				continue
			}
			if count++; count < 20 {
				next <- true // the server waits for this before it sends more
			} else {
				close(next)
			}
		}
		require.Equal(t, 20, count)
	})

	t.Run("breaking out ends the request", func(t *testing.T) {
		ended := make(chan bool)
		c := asking(t, OpenAI, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			says(chunk(`{"content":"x"}`))(w, r)
			<-r.Context().Done()
			close(ended)
		})
		for range c.Stream(t.Context(), Request{}) {
			break
		}
		<-ended
	})

	t.Run("connections are used again", func(t *testing.T) {
		var addresses []string
		c := asking(t, OpenAI, func(w http.ResponseWriter, r *http.Request) {
			addresses = append(addresses, r.RemoteAddr)
			says(chunk(`{"content":"x"}`), finished)(w, r)
		})
		for range 3 {
			_, failed := ask(t, c)
			require.Nil(t, failed)
		}
		require.Equal(t, []string{addresses[0], addresses[0], addresses[0]}, addresses)
	})
}

// Clause B4.
func TestSilence(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
	silent := &Error{Unreachable, 0, "the model's server has sent nothing of an answer for 5 minutes; " +
		"if it needs longer, set the model's silenceMinutes"}
	progress := func(n int) string {
		return sseOf(fmt.Sprintf(`{"choices":[],"prompt_progress":{"total":9000,"processed":%d}}`, n))
	}
	hello, empty := chunk(`{"content":"Hello"}`), chunk(`{"content":""}`)
	call := func(arguments string) string {
		return chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":` +
			arguments + `}}]}`)
	}
	for name, test := range map[string]struct {
		sent   []string // each after four minutes
		want   []Event
		failed *Error
	}{
		"from the start":   {nil, nil, silent},
		"after the status": {[]string{head}, nil, silent},
		"in the stream":    {[]string{head, hello}, []Event{TextDelta("Hello")}, silent},
		"interrupted by answers": {[]string{head, hello, hello, finished},
			[]Event{TextDelta("Hello"), TextDelta("Hello"), Finish{Reason: Stopped}}, nil},
		"ended by an answer": {[]string{head + ": waiting\n\n", finished},
			[]Event{Finish{Reason: Stopped}}, nil},
		"filled with comments": {[]string{head, ": waiting\n\n", ": waiting\n\n", finished},
			nil, silent},
		"filled with progress": {[]string{head, progress(1), progress(2048), progress(4096), finished},
			[]Event{Finish{Reason: Stopped}}, nil},
		"filled with no progress": {[]string{head, progress(1), progress(1), progress(1), finished},
			nil, silent},
		"filled with empty events": {[]string{head, hello, empty, empty, finished},
			[]Event{TextDelta("Hello")}, silent},
		"filled with empty calls": {[]string{head, hello, call(`""`), call(`""`), call(`""`)},
			[]Event{TextDelta("Hello")}, silent},
		"filled with arguments": {
			[]string{head, call(`"["`), call(`"1"`), call(`"]"`), finished},
			[]Event{ToolCall{ID: "a", Name: "f", Arguments: "[1]"}, Finish{Reason: CallsTools}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				var serving sync.WaitGroup
				defer serving.Wait()
				serving.Go(func() {
					defer server.Close()
					request, err := http.ReadRequest(bufio.NewReader(server))
					if err == nil {
						_, err = io.Copy(io.Discard, request.Body)
					}
					if err != nil {
						t.Error(err)
					}
					for _, part := range test.sent {
						time.Sleep(4 * time.Minute)
						_, _ = io.WriteString(server, part)
					}
					_, _ = server.Read(make([]byte, 1)) // until the client closes the connection
				})
				c := New(Model{API: OpenAI, BaseURL: "http://model.test"})
				c.http.Transport.(*http.Transport).DialContext = func(
					context.Context, string, string) (net.Conn, error) {
					return client, nil
				}
				events, failed := ask(t, c)
				require.Equal(t, test.want, events)
				require.Equal(t, test.failed, failed)
			})
		})
	}
	t.Run("of the reader", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			timer := time.AfterFunc(time.Minute, func() { cancel(errSilent) })
			b := &watchedBody{ReadCloser: io.NopCloser(strings.NewReader("hello")), ctx: ctx,
				cancel: cancel, timer: timer, silence: time.Minute}
			b.progress()
			_, err := b.Read(make([]byte, 1))
			require.NoError(t, err)
			time.Sleep(time.Hour)
			require.NoError(t, ctx.Err())
			require.NoError(t, b.Close())
		})
	})
}

// A server that never stops sending, and never says anything, is not waited for.
//
// Clause B4.
func TestEndlessNothing(t *testing.T) {
	wide := strings.Repeat(" ", 1000) // so that there are fewer
	for name, nothing := range map[string]string{
		"comments": ": waiting\n\n", "empty events": "data:" + wide + "\n\n",
		"empty chunks": chunk(`{"content":""` + wide + `}`),
	} {
		t.Run(name, func(t *testing.T) {
			c := asking(t, OpenAI, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, chunk(`{"content":"Hello"}`))
				for many := strings.Repeat(nothing, 100); r.Context().Err() == nil; {
					_, _ = io.WriteString(w, many)
				}
			})
			_, failed := ask(t, c)
			require.Equal(t, Malformed, failed.Kind, failed.Message)
		})
	}
}

// What a server or a model sends without end is stopped.
//
// Clause B4.
func TestEndlessAnswers(t *testing.T) {
	// forever repeats what next returns until the request ends.
	forever := func(start string, next func(n int) string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			says(start)(w, nil)
			for n := 0; ; n++ {
				if _, err := io.WriteString(w, next(n)); err != nil {
					return
				}
			}
		}
	}
	long := strings.Repeat("x", 100_000)
	const tooLong, tooMany = "the model's answer was stopped, because it is longer than 8 " +
		"MiB", "the model's answer was stopped, because it calls more than 128 tools at once"
	stopped := func(t *testing.T, c *Client, want string) {
		var size int
		var failed *Error
		for e, err := range c.Stream(t.Context(), Request{}) {
			switch e := e.(type) {
			case TextDelta:
				size += len(e)
			case ThinkingDelta:
				size += len(e)
			case Finish:
				require.Fail(t, "the answer has ended")
			}
			if err != nil {
				require.ErrorAs(t, err, &failed)
			}
		}
		require.NotNil(t, failed)
		require.Equal(t, want, failed.Message)
		require.LessOrEqual(t, size, maxAnswer)
	}
	for _, record := range records(t, "endless.txt") {
		t.Run(record[0], func(t *testing.T) {
			api, kind, _ := strings.Cut(record[1], " ")
			start := ""
			if record[2] != "-" {
				start = sseOf(record[2])
			}
			repeated := strings.ReplaceAll(sseOf(record[3:]...), "LONG", long)
			stopped(t, asking(t, API(api), forever(start, func(n int) string {
				return strings.ReplaceAll(repeated, "N", strconv.Itoa(n))
			})), map[string]string{"long": tooLong, "many": tooMany}[kind])
		})
	}
	t.Run("calls in one event", func(t *testing.T) {
		stopped(t, asking(t, OpenAI, says(chunk(`{"tool_calls":[`+
			strings.Repeat(`{"index":1,"id":"1","function":{"name":"a"}},{"index":1,"id":"2",`+
				`"function":{"name":"a"}},`, 50_000)+`{}]}`))), tooMany)
	})
	t.Run("compressed", func(t *testing.T) { // nobody has asked for that
		var bomb bytes.Buffer
		zipped := gzip.NewWriter(&bomb)
		for range 1000 {
			_, _ = zipped.Write(make([]byte, 64<<10))
		}
		require.NoError(t, zipped.Close())
		c := asking(t, OpenAI, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept-Encoding") != "" {
				t.Error("asked for compression")
			}
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes())
		})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, failed := ask(t, c)
		require.Equal(t, Malformed, failed.Kind)
		_, err := c.List(t.Context())
		require.Error(t, err)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20))
	})

	t.Run("many small elements", func(t *testing.T) {
		for name, test := range map[string]struct{ begin, element, end string }{
			"choices": {`{"choices":[`, `{},`, `{}]}`},
			"calls":   {`{"choices":[{"delta":{"tool_calls":[`, `{},`, `{}]}}]}`},
			"parts":   {`{"choices":[{"delta":{"content":[`, `{"text":"x"},`, `{}]}}]}`},
			"thought": {`{"choices":[{"delta":{"content":[{"thinking":[`, `{"text":"x"},`,
				`{}]}]}}]}`},
			"message": {`{"type":"message","content":[`, `{},`, `{}]}`},
			"error":   {`{"error":[`, `[],`, `[]]}`},
		} {
			whole := []byte(test.begin + strings.Repeat(test.element, 1<<20/len(test.element)) +
				test.end)
			for _, api := range []API{OpenAI, Anthropic} {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				event := sse.Event{Data: whole}
				require.True(t, reported(event) == nil || name == "error")
				_ = formats[api].decoder(variant{}, new(answer)).decode(event)
				runtime.ReadMemStats(&after)
				require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(6<<20), "%s %s", api,
					name)
			}
		}
	})
	t.Run("nesting", func(t *testing.T) {
		calling := func(depth int) http.HandlerFunc {
			nested := strings.Repeat(`[`, depth-1) + strings.Repeat(`]`, depth-1)
			return says(chunk(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"read",`+
				`"arguments":"{\"a\":`+nested+`}"}}]}`), finished)
		}
		events, failed := ask(t, asking(t, OpenAI, calling(maxNesting)))
		require.Nil(t, failed)
		require.Len(t, events, 2)
		events, failed = ask(t, asking(t, OpenAI, calling(100_000)))
		require.Empty(t, events)
		require.Equal(t,
			"the model's answer was stopped, because the arguments of a tool call have more than "+
				"64 levels", failed.Message)
	})
	t.Run("after the end", func(t *testing.T) {
		events, failed := ask(t, asking(t, OpenAI, func(w http.ResponseWriter, r *http.Request) {
			says(chunk(`{"content":"Hello"}`), finished)(w, r)
			for r.Context().Err() == nil {
				says(" ")(w, r)
				time.Sleep(time.Millisecond)
			}
		}))
		require.Nil(t, failed)
		require.Equal(t, []Event{TextDelta("Hello"), Finish{Reason: Stopped}}, events)
	})
	t.Run("numbers of tokens", func(t *testing.T) {
		events, failed := ask(t, asking(t, OpenAI, says(chunk(`{"content":"x"}`),
			sseOf(`{"choices":[],"usage":{"prompt_tokens":9223372036854775807,`+
				`"completion_tokens":-5,`+
				`"prompt_tokens_details":{"cached_tokens":9223372036854775807}}}`), finished)))
		require.Nil(t, failed)
		require.Equal(t, Usage{Input: maxTokenCount, Cached: maxTokenCount},
			events[len(events)-1].(Finish).Usage)
	})
}

// What stands between the events of an answer, or says that all is well, does not end the answer.
func TestSignsOfLife(t *testing.T) {
	streams := map[API][2]string{
		OpenAI: {chunk(`{"content":"Hello"}`), finished},
		Responses: {sseOf(`{"type":"response.output_text.delta","delta":"Hello"}`),
			sseOf(`{"type":"response.completed","response":{"status":"completed","error":null}}`)},
		Anthropic: {sseOf(`{"type":"content_block_start","content_block":{"type":"text","text":"Hello"}}`),
			sseOf(`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`)},
	}
	want := []Event{TextDelta("Hello"), Finish{Reason: Stopped}}
	for api, stream := range streams {
		for _, sign := range []string{"data:", "data", "data: ", "data: : keepalive", "data: ping",
			"data: null", `data: "ping"`, "data: {}", "id: 1\ndata:", "event: ping\ndata: ping",
			`data: {"code":0,"message":"Success"}`, `data: {"code":200,"message":"ok"}`,
			`data: {"code":"200","msg":"OK"}`, `data: {"error":null}`, `data: {"error":{"code":0}}`,
			`data: {"base_resp":{"status_code":0,"status_msg":"success"}}`} {
			sign += "\n\n"
			events, failed := ask(t, asking(t, api, says(sign, stream[0], sign, stream[1], sign)))
			require.Nil(t, failed, "%s %q", api, sign)
			require.Equal(t, want, events, "%s %q", api, sign)
		}
	}
	for _, end := range []string{"[DONE]", "DONE", " [DONE] ", "[ DONE ]"} {
		events, failed := ask(t, asking(t, OpenAI, says(chunk(`{"content":"Hello"}`), sseOf(end))))
		require.Nil(t, failed, end)
		require.Equal(t, want, events, end)
	}
	_, failed := ask(t, asking(t, OpenAI, says("data: : keepalive\n\n")))
	require.Equal(t, errEmpty, failed)
}
