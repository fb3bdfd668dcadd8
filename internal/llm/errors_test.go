package llm

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
	for _, lines := range records(t, "errors.txt") {
		code, body, _ := strings.Cut(lines[1], " ")
		kind, message, _ := strings.Cut(lines[2], ": ")
		r := recordedError{body: strings.ReplaceAll(body, "␤", "\n"),
			want: Error{Kind: Kind(kind), Message: message}}
		var err error
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
}

// Servers report errors in answers with status 200 in many forms, as the first event, after a text,
// and in the place of a stream. They never count as an answer, the user reads the reason, and they
// are as temporary as with another status.
//
// Clause B4, B7.
func TestErrorsInAnswers(t *testing.T) {
	for name, r := range recordedErrors(t) {
		if r.status != http.StatusOK || !json.Valid([]byte(r.body)) || r.want.Kind == Malformed {
			continue
		}
		event := sseOf(r.body)
		for place, answer := range map[string]http.HandlerFunc{
			"first": says(event, sseOf("[DONE]")), "named": says("event: error\n" + event),
			"later":  says(chunk(`{"content":"Hello"}`), event, sseOf("[DONE]")),
			"closed": says(chunk(`{"content":"Hello"}`), event), "status 201": status(201, r.body),
		} {
			for _, api := range []API{OpenAI, Responses, Anthropic} {
				c := asking(t, api, answer)
				c.model.HasFallback = true
				events, failed := ask(t, c)
				require.Equal(t, &r.want, failed, "%s %s %s", name, api, place)
				n, _ := retries(events)
				require.Equal(t, r.want.Kind == Overloaded || r.want.Kind == Slipped, n == attempts-1,
					"%s %s %s", name, api, place)
			}
		}
	}
}

// The words of an error say what to do about it, whatever the status, also in a body and a stream.
func TestWordsOfErrors(t *testing.T) {
	for _, record := range records(t, "words.txt") {
		for _, said := range record[1:] {
			testWords(t, said, Kind(record[0]))
		}
	}
}

func testWords(t *testing.T, said string, want Kind) {
	for _, code := range []int{200, 201, 400, 404} {
		if code == 404 && want == Rejected {
			continue // no such address
		}
		_, failed := ask(t, asking(t, OpenAI, status(code, said)))
		require.Equal(t, want, failed.Kind, "%d %s", code, said)
		require.NotContains(t, failed.Message, "baseURL", said)
		require.NotContains(t, failed.Message, "does not know", said)
	}
	_, failed := ask(t, asking(t, Anthropic, says("event: error\n"+sseOf(said))))
	require.Equal(t, want, failed.Kind, said)
}
