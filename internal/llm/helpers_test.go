package llm

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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

// sseOf returns the events of a stream with this data.
func sseOf(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

// records returns the records of a file in testdata, without the first, which is a comment. They
// are separated by empty lines.
func records(t *testing.T, file string) (all [][]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	for _, record := range strings.Split(strings.TrimSpace(string(text)), "\n\n")[1:] {
		all = append(all, strings.Split(record, "\n"))
	}
	return all
}

// bodyOf returns a body that is never too slow.
func bodyOf(r io.Reader) *watchedBody {
	return &watchedBody{ReadCloser: io.NopCloser(r), ctx: context.Background(),
		timer: time.NewTimer(time.Hour), silence: time.Hour, patience: time.Hour,
		room: maxIdle}
}
