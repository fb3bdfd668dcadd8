package llm

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acp-agent/acp-agent/internal/wire/sse"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "sk-test-0123456789"

// asking returns a client of a server with this handler. It does not wait long.
func asking(t *testing.T, api API, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return impatient(t, Model{API: api, BaseURL: server.URL, Name: "m",
		Key: func(context.Context, string) (string, error) {
			return testKey, nil
		}})
}

func impatient(t *testing.T, m Model) *Client {
	c := New(m)
	c.silence, c.delay = time.Minute, time.Millisecond
	t.Cleanup(c.Close)
	return c
}

// ask returns all events of an answer and its error, none of which may contain the key.
func ask(t *testing.T, c *Client) (events []Event, failed *Error) {
	t.Helper()
	for e, err := range c.Stream(t.Context(), Request{Messages: []Message{UserText("Hi")}}) {
		if err != nil {
			require.ErrorAs(t, err, &failed)
			require.NotContains(t, err.Error(), testKey)
			require.NotContains(t, err.Error(), "\n")
			require.LessOrEqual(t, len([]rune(failed.Message)), 300)
			continue
		}
		if r, ok := e.(Retry); ok {
			require.NotContains(t, r.Err.Error(), testKey)
		}
		switch from := e.(type) {
		case CallDelta:
			continue // the call follows
		case ToolCall:
			require.Equal(t, c.model.Origin(), from.From)
			from.From = ""
			e = from
		case Thinking:
			require.Equal(t, c.model.Origin(), from.From)
			from.From = ""
			e = from
		}
		events = append(events, e)
	}
	return events, failed
}

// chunk returns an event of a chat completion with this delta.
func chunk(delta string) string {
	return `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":` + delta +
		`,"finish_reason":null}]}` + "\n\n"
}

const finished = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` +
	"\n\ndata: [DONE]\n\n"

// says returns a handler that answers with a stream.
func says(parts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, part := range parts {
			_, _ = io.WriteString(w, part)
			w.(http.Flusher).Flush()
		}
	}
}

// fails returns a handler that fails some requests before it passes the others on.
func fails(times int32, fail, then http.HandlerFunc) http.HandlerFunc {
	var count atomic.Int32
	return func(w http.ResponseWriter, r *http.Request) {
		if count.Add(1) <= times {
			fail(w, r)
		} else {
			then(w, r)
		}
	}
}

// status returns a handler that answers with an error. Header is pairs of names and values.
func status(code int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func cut(w http.ResponseWriter, _ *http.Request) {
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// retries counts the retries, and returns the other events.
func retries(events []Event) (n int, others []Event) {
	for _, e := range events {
		if _, ok := e.(Retry); ok {
			n++
		} else {
			others = append(others, e)
		}
	}
	return n, others
}

// Clause B4.
func TestRetry(t *testing.T) {
	hello := []Event{TextDelta("Hello"), Finish{Reason: Stopped}}
	good := says(chunk(`{"content":"Hello"}`), finished)
	overloaded := `{"error":{"message":"overloaded","type":"server_error"}}`
	for name, fail := range map[string]http.HandlerFunc{
		"408":                     status(408, ""),
		"429":                     status(429, overloaded),
		"429 with Retry-After":    status(429, overloaded, "Retry-After", "0.01"),
		"429 with Retry-After-Ms": status(429, overloaded, "Retry-After-Ms", "5"),
		"500":                     status(500, overloaded),
		"502 with HTML": status(502, "<html><title>Bad gateway</title></html>",
			"Content-Type", "text/html"),
		"503": status(503, overloaded),
		"504": status(504, ""),
		"529": status(529,
			`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`),
		"cut before the answer": cut,
		"cut before the response": func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		},
		"closed before the answer": says(),
		"closed after a comment":   says(": waiting\n\n"),
		"cut after an empty chunk": func(w http.ResponseWriter, r *http.Request) {
			says(chunk(`{"role":"assistant"}`))(w, r)
			cut(w, r)
		},
		"error in the stream": says(chunk(`{"role":"assistant"}`),
			`data: {"error":{"message":"overloaded","code":502}}`+"\n\n"),
	} {
		t.Run(name, func(t *testing.T) {
			events, failed := ask(t, asking(t, OpenAI, fails(3, fail, good)))
			require.Nil(t, failed)
			n, others := retries(events)
			require.Equal(t, 3, n)
			require.Equal(t, hello, others)

			most := int32(attempts)
			for _, busy := range []string{"429", "503", "529", "error in the stream"} {
				if strings.HasPrefix(name, busy) {
					most = patientAttempts
				}
			}
			events, failed = ask(t, asking(t, OpenAI, fails(most, fail, good)))
			n, others = retries(events)
			require.EqualValues(t, most-1, n)
			require.Empty(t, others)
			require.NotNil(t, failed)
			require.Contains(t, []Kind{Overloaded, Unreachable, Malformed}, failed.Kind)
		})
	}

	for name, test := range map[string]struct {
		fail http.HandlerFunc
		want Error
	}{
		"a long Retry-After": {
			status(429, `{"error":{"message":"Slow down."}}`, "Retry-After", "120"),
			Error{Overloaded, 429, "Slow down; try again in 2 minutes"},
		},
		"a long delay": {
			status(429, `[{"error":{"message":"Quota.","details":[{"retryDelay":"3600s"}]}}]`),
			Error{Overloaded, 429, "Quota; try again in 60 minutes"},
		},
		"no money": {
			status(429,
				`{"error":{"message":"You exceeded your current quota.",`+
					`"code":"insufficient_quota"}}`),
			Error{Unpaid, 429, "You exceeded your current quota"},
		},
		"told not to": {status(500, "", "X-Should-Retry", "false"),
			Error{Overloaded, 500, "Internal Server Error"}},
		"not implemented": {status(501, ""), Error{Rejected, 501, "Not Implemented"}},
	} {
		t.Run("not: "+name, func(t *testing.T) {
			events, failed := ask(t, asking(t, OpenAI, fails(1, test.fail, good)))
			n, _ := retries(events)
			require.Zero(t, n)
			require.Equal(t, &test.want, failed)
		})
	}

	t.Run("after text", func(t *testing.T) {
		half := says(chunk(`{"content":"Hel"}`))
		for name, fail := range map[string]http.HandlerFunc{
			"an error": says(chunk(`{"content":"Hel"}`),
				`data: {"error":{"message":"overloaded","code":502}}`+"\n\n"),
			"a lost connection":   func(w http.ResponseWriter, r *http.Request) { half(w, r); cut(w, r) },
			"a closed connection": half,
		} {
			events, failed := ask(t, asking(t, OpenAI, fails(1, fail, good)))
			require.Nil(t, failed, name)
			require.Equal(t, TextDelta("Hel"), events[0])
			require.IsType(t, Retry{}, events[1])
			require.Equal(t, hello, events[2:])
		}
	})
	t.Run("ends with the context", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		c := asking(t, OpenAI, status(503, ""))
		c.delay = time.Hour
		cause := errors.New("the user has pressed stop")
		var last error
		for e, err := range c.Stream(ctx, Request{}) {
			if last = err; err == nil {
				require.GreaterOrEqual(t, e.(Retry).After, time.Hour)
				cancel(cause)
			}
		}
		require.Equal(t, cause, last)
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "30": 30 * time.Second, "1.5": 1500 * time.Millisecond, "-1": 0,
		"NaN": 0, "soon": 0, "1e300": 1e6 * time.Second,
		"Sun, 22 Nov 2026 08:00:20 GMT": 20 * time.Second, "Sun, 22 Nov 2026 07:00:00 GMT": 0,
	} {
		require.Equal(t, want, retryAfter(http.Header{"Retry-After": {value}}, now), value)
	}
	require.Equal(t, 250*time.Millisecond, retryAfter(http.Header{"Retry-After-Ms": {"250"},
		"Retry-After": {"1"}}, now))
	for body, want := range map[string]time.Duration{
		`[{"error":{"details":[{"retryDelay": "34.4s"}]}}]`: 34400 * time.Millisecond,
		`{"retryDelay":"soon"}`:                             0,
		`{"retryDelay":"-1s"}`:                              0,
		`{"retryDelay":5}`:                                  5 * time.Second,
		`{"error":{"resets_in_seconds":7200}}`:              2 * time.Hour,
		`{"resets_at": 1795334460}`:                         time.Minute,
		`{"headers":{"X-RateLimit-Reset":"1795334430000"}}`: 30 * time.Second,
		`{"retry_after":1.5}`:                               1500 * time.Millisecond,
		`{}`:                                                0,
	} {
		require.Equal(t, want, askedDelay([]byte(body), now), body)
	}
}

// A connection that is lost after any event, or within one, ends in an error or a retry, and yields
// no half tool call.
//
// Clause B4.
func TestCutConnections(t *testing.T) {
	for _, name := range []string{"openai-text", "openai-tools", "openai-reasoning", "ollama-tools",
		"vllm-tools", "anthropic-text", "anthropic-tools"} {
		t.Run(name, func(t *testing.T) {
			stream, err := os.ReadFile(filepath.Join("testdata", name+".sse"))
			require.NoError(t, err)
			api := OpenAI
			if strings.HasPrefix(name, "anthropic") {
				api = Anthropic
			}
			whole, failed := ask(t, asking(t, api, says(string(stream))))
			require.Nil(t, failed)
			events := bytes.SplitAfter(stream, []byte("\n\n"))
			at := 0
			for i, event := range events {
				for _, part := range []int{0, len(event) / 2} {
					first := stream[:at+part]
					got, failed := ask(t,
						asking(t, api, func(w http.ResponseWriter, r *http.Request) {
							says(string(first))(w, r)
							cut(w, r)
						}))
					n, got := retries(got)
					if failed != nil {
						require.Equal(t, 3, n)
						each := len(got) / attempts
						for attempt := range attempts {
							require.Equal(t, whole[:each],
								append([]Event{}, got[attempt*each:(attempt+1)*each]...))
						}
					}
					if failed == nil { // everything but the usage had arrived
						last := len(whole) - 1
						require.Equal(t, whole[:last], got[:len(got)-1], "cut in event %d", i)
						require.Equal(t, whole[last].(Finish).Reason,
							got[len(got)-1].(Finish).Reason)
						continue
					}
					require.Contains(t, []*Error{errCut, errEmpty}, failed)
				}
				at += len(event)
			}
		})
	}
}

// recordedError is an error of a server, and what the client makes of it.
type recordedError struct {
	status int
	body   string
	want   Error
}

// recordedErrors returns those of testdata/errors.txt by name.
func recordedErrors(t *testing.T) map[string]recordedError {
	t.Helper()
	all := map[string]recordedError{}
	records, err := os.ReadFile("testdata/errors.txt")
	require.NoError(t, err)
	for _, record := range strings.Split(strings.TrimSpace(string(records)), "\n\n")[1:] {
		lines := strings.Split(record, "\n")
		code, body, _ := strings.Cut(lines[1], " ")
		kind, message, _ := strings.Cut(lines[2], ": ")
		r := recordedError{body: strings.ReplaceAll(body, "␤", "\n"),
			want: Error{Kind: Kind(kind), Message: message}}
		r.status, err = strconv.Atoi(code)
		require.NoError(t, err)
		if r.status != http.StatusOK {
			r.want.Status = r.status
		}
		all[lines[0]] = r
	}
	return all
}

// Clause B4.
func TestErrors(t *testing.T) {
	type test struct {
		answer http.HandlerFunc
		want   Error
	}
	tests := map[string]test{
		"redirect": {status(307, "", "Location",
			"https://user:pw@elsewhere.example/v2/chat?key=1"),
			Error{Misconfigured, 307,
				"the server redirects to https://elsewhere.example/v2/chat, and redirects are not " +
					"followed; set the model's baseURL to where the API is"}},
		"compressed": {status(200, "x", "Content-Encoding", "gzip"),
			Error{Malformed, 0, "the server sent a compressed answer (gzip), which it was not " +
				"asked for; check the server and what is in front of it"}},
		"long": {status(400, strings.Repeat("word ", 1000)),
			Error{Rejected, 400, "Bad Request: " + strings.TrimSpace(strings.Repeat("word ",
				200)[:199-len("Bad Request: ")]) + "…"}},
		"empty":         {status(200, ""), *errEmpty},
		"only the end":  {says("data: [DONE]\n\n"), *errEmpty},
		"only comments": {says(": waiting\n\n", ": waiting\n\n"), *errEmpty},
		"no JSON": {says("data: hello\n\n"),
			Error{Malformed, 0,
				"the model's server sent something that is not an answer: hello"}},
		"huge line": {says("data: ", strings.Repeat("x", 2*maxEvent+1)),
			Error{Malformed, 0,
				"the model's server sent something that is not an answer: an event of the stream is " +
					"too long"}},
		"huge event": {says(strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 9)),
			Error{Malformed, 0,
				"the model's server sent something that is not an answer: an event of the stream is " +
					"too long"}},
	}
	for name, r := range recordedErrors(t) {
		tests[name] = test{status(r.status, r.body), r.want}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, api := range []API{OpenAI, Anthropic} {
				if api == Anthropic &&
					strings.Contains("empty, only the end, only comments, no JSON", name) {
					continue // the words differ
				}
				events, failed := ask(t, asking(t, api, test.answer))
				_, events = retries(events)
				require.Empty(t, events)
				require.Equal(t, &test.want, failed, api)
			}
		})
	}
}

// Clause B4.
func TestWrongAddress(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"404":       status(404, "404 page not found"),
		"405":       status(405, ""),
		"LM Studio": status(200, `{"error":"Unexpected endpoint or method. (POST /chat/completions)"}`),
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(answer)
			defer server.Close()
			_, failed := ask(t, impatient(t, Model{BaseURL: server.URL, Name: "m"}))
			require.Contains(t, failed.Message, "the server does not know this address: ")
			require.Contains(t, failed.Message, "; check the model's baseURL, "+server.URL+
				", which usually ends with /v1")
			_, failed = ask(t, impatient(t, Model{BaseURL: server.URL + "/v1", Name: "m"}))
			require.NotContains(t, failed.Message, "usually")
		})
	}
}

// Clause B4.
func TestUnreachable(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.NoError(t, listener.Close())
		where := "http://" + listener.Addr().String() + "/v1"
		events, failed := ask(t, impatient(t, Model{API: OpenAI,
			BaseURL: strings.Replace(where, "//", "//user:"+testKey+"@", 1), Name: "m"}))
		require.Len(t, events, 3)
		require.Equal(t, &Error{Unreachable, 0, "cannot reach the model's server at " + where +
			": connection refused; check that it is running"}, failed)
	})
	t.Run("unknown host", func(t *testing.T) {
		c := impatient(t, Model{API: OpenAI, BaseURL: "http://model.invalid", Name: "m"})
		c.http.Transport.(*http.Transport).DialContext = func(
			context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host",
				Name: "model.invalid", IsNotFound: true}}
		}
		events, failed := ask(t, c)
		require.Empty(t, events)
		require.Equal(t,
			"cannot reach the model's server at http://model.invalid: dial tcp: lookup "+
				"model.invalid: no such host; check the model's baseURL", failed.Message)
	})
	t.Run("not a URL", func(t *testing.T) {
		for _, address := range []string{"localhost:11434", "127.0.0.1:11434", "::", "http://%zz"} {
			events, failed := ask(t, impatient(t, Model{API: OpenAI, BaseURL: address, Name: "m"}))
			require.Empty(t, events)
			require.Contains(t, failed.Message,
				"not an address that begins with http:// or https://")
		}
	})
	t.Run("certificate", func(t *testing.T) {
		server := httptest.NewUnstartedServer(says(finished))
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.StartTLS()
		defer server.Close()
		events, failed := ask(t, impatient(t, Model{API: OpenAI, BaseURL: server.URL, Name: "m"}))
		require.Empty(t, events)
		require.Contains(t, failed.Message, "certificate")
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
			b := &watchedBody{idle: maxIdle, ReadCloser: io.NopCloser(strings.NewReader("hello")), ctx: ctx,
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
	for name, nothing := range map[string]string{
		"comments": ": waiting\n\n", "empty events": "data:\n\n",
		"empty chunks": chunk(`{"content":""}`), "empty lines": "\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := asking(t, OpenAI, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, chunk(`{"content":"Hello"}`))
				for many := strings.Repeat(nothing, 100); r.Context().Err() == nil; {
					_, _ = io.WriteString(w, many)
				}
			})
			c.idle = 64 << 10
			_, failed := ask(t, c)
			require.Equal(t, Malformed, failed.Kind, failed.Message)
		})
	}
}

// Clause B1.
func TestKey(t *testing.T) {
	t.Run("is not sent elsewhere", func(t *testing.T) {
		elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			t.Error("asked")
		}))
		defer elsewhere.Close()
		for _, api := range []API{OpenAI, Anthropic} {
			_, failed := ask(t, asking(t, api, status(302, "", "Location", elsewhere.URL)))
			require.Equal(t, Misconfigured, failed.Kind)
			_, err := asking(t, api, status(308, "", "Location", elsewhere.URL)).List(t.Context())
			require.ErrorContains(t, err, "redirects")
			asking(t, api, status(307, "", "Location", elsewhere.URL)).AskWindow(t.Context())
		}
	})
	t.Run("is in the header", func(t *testing.T) {
		check := func(header, want string) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				if got := r.Header.Get(header); got != want {
					t.Errorf("got %q", got)
				}
				body, _ := io.ReadAll(r.Body)
				if r.Header.Del(header); strings.Contains(fmt.Sprint(r.URL, r.Header, string(body)),
					testKey) {
					t.Error("the key is also somewhere else")
				}
			}
		}
		ask(t, asking(t, OpenAI, check("Authorization", "Bearer "+testKey)))
		ask(t, asking(t, Anthropic, check("X-Api-Key", testKey)))
	})
	t.Run("can be replaced", func(t *testing.T) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer new" {
				status(401, "")(w, r)
				return
			}
			says(finished)(w, r)
		}))
		defer server.Close()
		var rejected []string
		events, failed := ask(t, impatient(t, Model{API: OpenAI, BaseURL: server.URL,
			Key: func(_ context.Context, r string) (string, error) {
				if rejected = append(rejected, r); r == "" {
					return "old\n", nil
				}
				return "new", nil
			}}))
		require.Nil(t, failed)
		require.Len(t, events, 1)
		require.Equal(t, []string{"", "old"}, rejected)
	})
	for name, rejects := range map[string]http.HandlerFunc{
		"in a body":  status(200, `{"code":401,"message":"token expired"}`),
		"in a event": says(`data: {"error":{"message":"invalid_api_key","code":401}}` + "\n\n"),
		"forbidden":  status(403, `{"message":"the token is expired"}`),
	} {
		t.Run("is replaced that is rejected "+name, func(t *testing.T) {
			c := asking(t, OpenAI, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") == "Bearer new" {
					says(chunk(`{"content":"Hi"}`), finished)(w, r)
				} else {
					rejects(w, r)
				}
			})
			keys := []string{"old", "new", "unused"}
			c.model.Key = func(context.Context, string) (key string, _ error) {
				key, keys = keys[0], keys[1:]
				return key, nil
			}
			events, failed := ask(t, c)
			require.Nil(t, failed)
			require.Equal(t, []Event{TextDelta("Hi"), Finish{Reason: Stopped}}, events)
			require.Equal(t, []string{"unused"}, keys)
		})
	}
	t.Run("is missing", func(t *testing.T) {
		c := asking(t, OpenAI, status(401, "Missing key"))
		c.model.Key = nil
		_, failed := ask(t, c)
		require.Equal(t,
			"the server wants a key, and none is configured for the model m: Unauthorized: "+
				"Missing key", failed.Message)
	})
	t.Run("cannot be had", func(t *testing.T) {
		c := asking(t, OpenAI, nil)
		c.model.Key = func(context.Context, string) (string, error) {
			return "", errors.New("the vault is locked")
		}
		events, failed := ask(t, c)
		require.Empty(t, events)
		require.Equal(t,
			&Error{KeyRejected, 0, "there is no key for the model m: the vault is locked"}, failed)
	})
}

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
	const most = 64 << 10
	long := strings.Repeat("x", 5000)
	event := func(data string) string { return "data: " + data + "\n\n" }
	started := func(block string) string {
		return event(`{"type":"content_block_start","index":0,"content_block":` + block + `}`)
	}
	added := func(delta string) func(int) string {
		return func(int) string {
			return event(`{"type":"content_block_delta","index":0,"delta":` + delta + `}`)
		}
	}
	call := `{"tool_calls":[{"index":%d,"id":"%[1]d","function":{"name":"read","arguments":"{}"}}]}`
	const tooLong, tooMany = "the model's answer was stopped, because it is longer than 64 " +
		"KiB", "the model's answer was stopped, because it calls more than 128 tools at once"
	for name, test := range map[string]struct {
		api    API
		answer http.HandlerFunc
		want   string
	}{
		"text": {OpenAI, forever("", func(int) string {
			return chunk(`{"content":"` + long + `"}`)
		}), tooLong},
		"thoughts": {OpenAI, forever("", func(int) string {
			return chunk(`{"reasoning_content":"` + long + `"}`)
		}), tooLong},
		"arguments": {OpenAI, forever(chunk(fmt.Sprintf(call, 0)), func(int) string {
			return chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"` + long + `"}}]}`)
		}), tooLong},
		"calls": {OpenAI, forever("", func(n int) string {
			return chunk(fmt.Sprintf(call, n))
		}), tooMany},
		"calls in one event": {OpenAI, says(chunk(`{"tool_calls":[` +
			strings.Repeat(`{"index":1,"id":"1","function":{"name":"a"}},{"index":1,"id":"2",`+
				`"function":{"name":"a"}},`, 50_000) + `{}]}`)), tooMany},
		"messages: text": {Anthropic, forever(started(`{"type":"text"}`),
			added(`{"text":"`+long+`"}`)), tooLong},
		"messages: thoughts": {Anthropic, forever(started(`{"type":"thinking"}`),
			added(`{"thinking":"`+long+`"}`)), tooLong},
		"messages: signature": {Anthropic, forever(started(`{"type":"thinking"}`),
			added(`{"signature":"`+long+`"}`)), tooLong},
		"messages: arguments": {Anthropic, forever(started(`{"type":"tool_use","name":"a"}`),
			added(`{"partial_json":"`+long+`"}`)), tooLong},
		"messages: blocks": {Anthropic, forever("", func(n int) string {
			return event(fmt.Sprintf(`{"type":"content_block_start","index":%d,`+
				`"content_block":{"type":"text"}}`, n))
		}), tooLong},
		"messages: calls": {Anthropic, forever("", func(n int) string {
			return started(fmt.Sprintf(`{"type":"tool_use","id":"%d","name":"a","input":{}}`, n)) +
				event(`{"type":"content_block_stop","index":0}`)
		}), tooMany},
		"responses: text": {Responses, forever("", func(int) string {
			return event(`{"type":"response.output_text.delta","delta":"` + long + `"}`)
		}), tooLong},
		"responses: thoughts": {Responses, forever("", func(int) string {
			return event(`{"type":"response.reasoning_text.delta","delta":"` + long + `"}`)
		}), tooLong},
		"responses: arguments": {Responses, forever("", func(int) string {
			return event(`{"type":"response.function_call_arguments.delta","delta":"` + long + `"}`)
		}), tooLong},
		"responses: encrypted": {Responses, forever("", func(int) string {
			return event(`{"type":"response.output_item.done","item":{"type":"reasoning","encrypted_content":"` +
				long + `"}}`)
		}), tooLong},
		"responses: calls": {Responses, forever("", func(int) string {
			return event(`{"type":"response.output_item.done","item":{"type":"function_call","name":"a"}}`)
		}), tooMany},
	} {
		t.Run(name, func(t *testing.T) {
			var size int
			var failed *Error
			c := asking(t, test.api, test.answer)
			c.longest = most
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
			require.Equal(t, test.want, failed.Message)
			require.LessOrEqual(t, size, most)
		})
	}

	t.Run("a line", func(t *testing.T) {
		c := asking(t, OpenAI, forever("data: ", func(int) string { return long }))
		c.idle = most
		_, failed := ask(t, c)
		require.Equal(t, errIdle.Message, failed.Message)
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
				_ = newFormat(api).decoder(variant{}, new(assembler)).decode(event)
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
			event(`{"choices":[],"usage":{"prompt_tokens":9223372036854775807,`+
				`"completion_tokens":-5,`+
				`"prompt_tokens_details":{"cached_tokens":9223372036854775807}}}`), finished)))
		require.Nil(t, failed)
		require.Equal(t, Usage{Input: maxTokenCount, Cached: maxTokenCount},
			events[len(events)-1].(Finish).Usage)
	})
}

func TestList(t *testing.T) {
	for name, test := range map[string]struct {
		api  API
		path string
		body string
		want []string
	}{
		"OpenAI": {OpenAI, "/models",
			`{"object":"list","data":[{"id":"a","object":"model"},{"id":"b"}]}`,
			[]string{"a", "b"}},
		"Anthropic": {Anthropic, "/v1/models",
			`{"data":[{"type":"model","id":"c"}],"has_more":false}`, []string{"c"}},
		"none": {OpenAI, "/models", `{"object":"list","data":null}`, nil},
		"a list only": {OpenAI, "/models", ` [{"id":"a","object":"model"},{"id":"b"}]`,
			[]string{"a", "b"}},
		"models": {OpenAI, "/models", `{"models":[{"name":"a","model":"x"},{"id":"b","name":"B"}]}`,
			[]string{"a", "b"}},
		"an empty list": {Anthropic, "/v1/models", `[]`, nil},
		"no error": {OpenAI, "/models", `{"code":0,"message":"Success","error":null,"data":[{"id":"a"}]}`,
			[]string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			names, err := asking(t, test.api, func(w http.ResponseWriter, r *http.Request) {
				if got := r.Method + " " + r.URL.Path; got != "GET "+test.path {
					t.Errorf("got %s", got)
				}
				status(200, test.body)(w, r)
			}).List(t.Context())
			require.NoError(t, err)
			require.Equal(t, test.want, names)
		})
	}
	_, err := asking(t, OpenAI, status(200, "<html>")).List(t.Context())
	require.ErrorContains(t, err, "the server sent a web page instead of an answer")
	_, err = asking(t, OpenAI, status(200, `{"error":{"message":"It broke."}}`)).List(t.Context())
	require.EqualError(t, err, "It broke")
	_, err = asking(t, OpenAI, status(404, "404 page not found")).List(t.Context())
	require.ErrorContains(t, err, "check the model's baseURL, http://127.0.0.1")
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("stopped")
	cancel(cause)
	_, err = asking(t, OpenAI, nil).List(ctx)
	require.Equal(t, cause, err)
}

func TestModelDefaults(t *testing.T) {
	require.Equal(t, Model{API: OpenAI, BaseURL: "https://api.openai.com/v1",
		ContextTokens: 128_000, PDF: new(true)}, New(Model{}).Model())
	require.Equal(t, Model{API: Anthropic, BaseURL: "https://api.anthropic.com",
		ContextTokens: 128_000, MaxTokens: 8192, PDF: new(false)}, New(Model{API: Anthropic}).Model())
	given := Model{ID: "x", API: OpenAI, BaseURL: "http://localhost:1/v1", Name: "y",
		ContextTokens: 10, MaxTokens: 2, PDF: new(false)}
	require.Equal(t, given, New(given).Model())
	require.PanicsWithValue(t, `llm: unknown API "opena1"`, func() { New(Model{API: "opena1"}) })
}

// The standard variables for proxies and certificates are read once in a process, so this test runs
// itself as another one.
func TestEnvironment(t *testing.T) {
	const name = "LLM_TEST_BASE_URL"
	if address := os.Getenv(name); address != "" {
		for e, err := range impatient(t, Model{API: OpenAI, BaseURL: address}).Stream(t.Context(),
			Request{}) {
			fmt.Println(e, err)
		}
		return
	}
	run := func(address, variable string) string {
		self := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEnvironment$")
		self.Env = append(os.Environ(), "NO_PROXY=", "no_proxy=", name+"="+address, variable)
		out, err := self.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	t.Run("proxy", func(t *testing.T) {
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			says(chunk(`{"content":"for `+r.URL.String()+`"}`), finished)(w, r)
		}))
		defer proxy.Close()
		require.Contains(t, run("http://model.invalid/v1", "HTTP_PROXY="+proxy.URL),
			"for http://model.invalid/v1/chat/completions")
	})
	t.Run("a proxy that fails", func(t *testing.T) {
		proxy := httptest.NewServer(status(407, ""))
		proxy.Close()
		for scheme, variable := range map[string]string{"http": "HTTP_PROXY", "https": "HTTPS_PROXY"} {
			said := run(scheme+"://model.invalid/v1",
				variable+"="+strings.Replace(proxy.URL, "//", "//user:pw@", 1))
			require.Contains(t, said, "cannot reach the model's server at "+scheme+
				"://model.invalid/v1 through the proxy "+proxy.URL+" ("+variable+"): ")
			require.Contains(t, said, "connection refused")
			require.NotContains(t, said, "pw")
		}
	})
	t.Run("a proxy that answers itself", func(t *testing.T) {
		proxy := httptest.NewServer(status(404, "<title>Denied</title>"))
		defer proxy.Close()
		require.Contains(t, run("http://model.invalid/v1", "HTTP_PROXY="+proxy.URL),
			`Not Found ("Denied") through the proxy `+proxy.URL+" (HTTP_PROXY); check")
	})
	t.Run("certificates", func(t *testing.T) {
		if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
			t.Skip("SSL_CERT_FILE is not read on Windows and macOS, where certificates come from " +
				"the system")
		}
		server := httptest.NewTLSServer(says(chunk(`{"content":"Hello"}`), finished))
		defer server.Close()
		file := filepath.Join(t.TempDir(), "ca.pem")
		block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
			Bytes: server.Certificate().Raw})
		require.NoError(t, os.WriteFile(file, block, 0o600))
		require.Contains(t, run(server.URL, "SSL_CERT_FILE="+file), "Hello")
	})
}
