package llm

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
			for _, busy := range []string{"429", "500", "503", "529", "error in the stream"} {
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
		"a long Retry-After-Ms": {
			status(429, overloaded, "Retry-After", "1", "Retry-After-Ms", "180000"),
			Error{Overloaded, 429, "overloaded; try again in 3 minutes"}},
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

// The next attempt waits as long as the server's words or headers say.
//
// Clause B4.
func TestDelays(t *testing.T) {
	now := time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)
	for _, line := range records(t, "delays.txt")[0] {
		delay, said, _ := strings.Cut(line, " ")
		want, err := time.ParseDuration(delay)
		require.True(t, err == nil || delay == "someday")
		if err != nil {
			want = someday
		}
		require.Equal(t, want, askedDelay([]byte(said), now), said)
	}
	h := http.Header{}
	h.Set("x-ratelimit-remaining-requests", "0")
	h.Set("x-ratelimit-reset-requests", "7s")
	h.Set("x-ratelimit-remaining-tokens", "100")
	h.Set("x-ratelimit-reset-tokens", "6m0s")
	require.Equal(t, 7*time.Second, limitReset(h, now))
	h.Set("anthropic-ratelimit-input-tokens-remaining", "0")
	h.Set("anthropic-ratelimit-input-tokens-reset", "2026-11-26T08:00:20Z")
	require.Equal(t, 20*time.Second, limitReset(h, now))
	require.Equal(t, Unpaid, describe(429, []byte(`{"error":{"message":"Insufficient balance"}}`)).why.Kind)
}

// A limit that is not reset soon ends the request, and the user reads when that is, wherever the
// server says it.
func TestLimitsAreObeyed(t *testing.T) {
	const words = `{"error":{"code":429,"message":"Limit reached. Your limit will reset at `
	for said, want := range map[string]string{
		words + `2099-12-29 18:00:00"}}`: "Limit reached. Your limit will reset at 2099-12-29 18:00:00",
		words + `2099-12-29T18:00:00Z"}}`: "Limit reached. Your limit will reset at 2099-12-29T18:00:00Z; " +
			"try again in ",
		`{"error":{"code":429,"message":"Limit reached","resets_in_seconds":7200}}`: "Limit reached; " +
			"try again in 2 hours",
	} {
		for _, answer := range []http.HandlerFunc{status(429, said), status(200, said), says(sseOf(said)),
			says(chunk(`{"content":"Hello"}`), sseOf(said))} {
			asked := 0
			c := asking(t, OpenAI, func(w http.ResponseWriter, r *http.Request) {
				asked++
				answer(w, r)
			})
			_, failed := ask(t, c)
			require.Equal(t, 1, asked, said)
			require.Equal(t, Overloaded, failed.Kind)
			require.Contains(t, failed.Message, want)
		}
	}
}
