package model

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// BenchmarkTurn measures a turn of one request at the beginning of a session, and after many turns,
// together with the client and the model's server in the same process. What must grow is the
// request that is sent.
//
//	go test ./acp/model -run - -bench Turn
func BenchmarkTurn(b *testing.B) {
	for _, before := range []int{0, 500} {
		b.Run(fmt.Sprint("after=", before), func(b *testing.B) {
			var answer strings.Builder
			for range 10 {
				fmt.Fprintf(&answer, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n",
					strings.Repeat("A few words. ", 8))
			}
			answer.WriteString("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
			sent := int64(0)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				sent, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, answer.String())
			}))
			defer server.Close()
			e := open(b, setup{model: func(m *Model) {
				m.BaseURL, m.ContextTokens = server.URL, 10_000_000
			}})
			prompt := strings.Repeat("What is this? ", 75)
			for range before {
				e.prompt(prompt)
			}
			for b.Loop() {
				e.prompt(prompt)
			}
			b.ReportMetric(float64(sent), "request-bytes")
		})
	}
}
