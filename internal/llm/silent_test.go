package llm

import (
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
				c.model.Fallback = "other"
				events, failed := ask(t, c)
				require.Equal(t, &r.want, failed, "%s %s %s", name, api, place)
				n, _ := retries(events)
				require.Equal(t, r.want.Kind == Overloaded || r.want.Kind == Slipped, n == attempts-1,
					"%s %s %s", name, api, place)
			}
		}
	}
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

// A server of HTTP/2 that refuses all streams does not keep the user waiting in silence.
//
// Clause B7.
func TestRefusedStreams(t *testing.T) {
	certificate := httptest.NewUnstartedServer(nil)
	certificate.EnableHTTP2 = true
	certificate.StartTLS()
	defer certificate.Close()
	listener, err := tls.Listen("tcp", "127.0.0.1:0",
		&tls.Config{Certificates: certificate.TLS.Certificates, NextProtos: []string{"h2"}})
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			refuseStreams(conn)
			conn.Close()
		}
	}()
	c := impatient(t, Model{BaseURL: "https://" + listener.Addr().String(), Name: "m"})
	transport := c.http.Transport.(*http.Transport)
	transport.TLSClientConfig = certificate.Client().Transport.(*http.Transport).TLSClientConfig
	events, failed := ask(t, c)
	n, _ := retries(events)
	require.Equal(t, attempts-1, n)
	require.Equal(t, Unreachable, failed.Kind)
	require.True(t, strings.HasSuffix(failed.Message, ": it refused the request before reading it"),
		failed.Message)
	c.Close()
	require.NoError(t, listener.Close())
	<-ended
}

// refuseStreams speaks so much of HTTP/2 that a client learns that its requests are refused.
func refuseStreams(conn net.Conn) {
	const headers, reset, settings, refused = 1, 3, 4, 7
	frame := func(kind byte, stream uint32, payload ...byte) {
		head := []byte{0, 0, byte(len(payload)), kind, 0, 0, 0, 0, 0}
		binary.BigEndian.PutUint32(head[5:], stream)
		_, _ = conn.Write(append(head, payload...))
	}
	preface := make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	if _, err := io.ReadFull(conn, preface); err != nil {
		return
	}
	frame(settings, 0)
	for head := make([]byte, 9); ; {
		if _, err := io.ReadFull(conn, head); err != nil {
			return
		}
		size := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
		if _, err := io.CopyN(io.Discard, conn, size); err != nil {
			return
		}
		if head[3] == headers {
			frame(reset, binary.BigEndian.Uint32(head[5:]), 0, 0, 0, refused)
		}
	}
}

// MiniMax needs its thoughts back where they were.
//
// Clause B5.
func TestTaggedThoughtsGoBack(t *testing.T) {
	for name, want := range map[string]string{
		"MiniMax-M2": `{"content":"<think>Hm</think>\n\nHello","role":"assistant"}`,
		"qwen3":      `{"content":"Hello","role":"assistant"}`,
	} {
		server := httptest.NewServer(says(chunk(`{"content":"<think>H"}`),
			chunk(`{"content":"m</think>\n\nHello"}`), finished))
		c := impatient(t, Model{BaseURL: server.URL, Name: name})
		var parts []Part
		for e, err := range c.Stream(t.Context(), Request{Messages: []Message{UserText("Hi")}}) {
			require.NoError(t, err)
			switch e := e.(type) {
			case TextDelta:
				parts = append(parts, Text(e))
			case Thinking:
				parts = append(parts, e)
			}
		}
		messages := []Message{UserText("Hi"), {Assistant, parts}, UserText("Go")}
		r := Request{Messages: c.model.returned(messages)}
		body := c.format.encode(c.model, r, c.learned.now())
		require.Contains(t, string(body), want)
		c.Close()
		server.Close()
	}
}

// The next attempt waits as long as the server's words or headers say.
//
// Clause B4.
func TestDelays(t *testing.T) {
	now := time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)
	for said, want := range map[string]time.Duration{
		"Rate limit reached. Please try again in 8s.":          8 * time.Second,
		"Please try again in 1m2.5s. Visit":                    62500 * time.Millisecond,
		"try again in 450ms":                                   450 * time.Millisecond,
		"Please retry after 20 seconds.":                       20 * time.Second,
		"Try again in 2 minutes":                               2 * time.Minute,
		"Try again later. Error 8 of 20 seconds":               0,
		"":                                                     0,
		"Your limit will reset at 2026-11-26T08:00:30Z.":       30 * time.Second,
		"Your limit will reset at 2026-11-26T10:30:00.5+02:00": 30 * time.Minute,
		"Your limit will reset at 2026-11-26 18:00:00":         someday,
		"You will regain access on 2026-11-28 at 00:00 UTC.":   40 * time.Hour,
		"Your limit will reset at 2026-11-26T07:00:00Z":        0,
		"Limit resets in 3 hours":                              3 * time.Hour, "It resets in 2 days": 48 * time.Hour,
		"Please wait 20 seconds": 20 * time.Second, "Reset the context to 20 messages": 0,
		"your 8s limit": 0,
		"Please try again in 99999999999999999999999999s": 0,
	} {
		require.Equal(t, want, askedDelay([]byte(said), now), said)
	}
	h := http.Header{}
	h.Set("x-ratelimit-remaining-requests", "0")
	h.Set("x-ratelimit-reset-requests", "7s")
	h.Set("x-ratelimit-remaining-tokens", "100")
	h.Set("x-ratelimit-reset-tokens", "6m0s")
	require.Equal(t, 7*time.Second, limitReset(h, time.Now()))
	for reset, want := range map[string]time.Duration{
		"2026-11-26T08:00:20Z": 20 * time.Second, "2026-11-26T07:00:00Z": 0, "2m59.5s": 179500 * time.Millisecond,
		"30": 30 * time.Second, "1795680025": 25 * time.Second, "1795680025500": 25500 * time.Millisecond,
		"": 0, "soon": 0, "-5": 0,
	} {
		h := http.Header{}
		h.Set("anthropic-ratelimit-input-tokens-remaining", "0")
		h.Set("anthropic-ratelimit-input-tokens-reset", reset)
		require.Equal(t, want, limitReset(h, now), reset)
	}
	require.Equal(t, Unpaid, describe(429, []byte(`{"error":{"message":"Insufficient balance"}}`)).Kind)
}

// The words of an error say what to do about it, whatever the status, also in a body and a stream.
func TestWordsOfErrors(t *testing.T) {
	for said, want := range map[string]Kind{
		`{"code":401,"message":"token expired"}`:                              KeyRejected,
		`{"code":"401","msg":"Authentication Fails"}`:                         KeyRejected,
		`{"error":{"message":"The access token expired"}}`:                    KeyRejected,
		`{"error":{"message":"Your session has expired, please log in"}}`:     KeyRejected,
		`{"__type":"ExpiredTokenException","message":"Sign in."}`:             KeyRejected,
		`{"base_resp":{"status_code":1004,"status_msg":"Carry the API key"}}`: KeyRejected,
		`{"error":{"message":"No endpoints found matching your data policy (Free model training). ` +
			`Configure: https://openrouter.ai/settings/privacy","code":404}}`: Forbidden,
		`{"error":{"message":"No endpoints available matching your guardrail restrictions and data ` +
			`policy.","code":404}}`: Forbidden,
		`{"error":{"message":"No allowed providers are available for the selected model.","code":404}}`:   Forbidden,
		`{"error":{"message":"All providers have been ignored.","code":404}}`:                             Forbidden,
		`{"error":{"message":"Budget has been exceeded! Max budget: 0.05","type":"budget_exceeded"}}`:     Unpaid,
		`{"error":{"message":"ExceededBudget: User over budget. Spend=1, Budget=0.5"}}`:                   Unpaid,
		`{"error":{"message":"Key limit exceeded (total limit)","code":403}}`:                             Unpaid,
		`{"error":{"code":"billing_hard_limit_reached","message":"Billing hard limit has been reached"}}`: Unpaid,
		`{"error":{"message":"You have reached your specified API usage limits."}}`:                       Unpaid,
		`{"error":{"message":"thinking.budget_tokens: must be at least 1024"}}`:                           Rejected,
		`{"error":{"message":"The prompt has 9000 tokens, expired limits are ignored"}}`:                  Rejected,
	} {
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
