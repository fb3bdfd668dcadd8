package llm

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Clause B3.
func TestWindow(t *testing.T) {
	for _, record := range records(t, "windows.txt") {
		t.Run(record[0], func(t *testing.T) {
			tokens, requests, _ := strings.Cut(record[1], " ")
			paths := map[string]string{}
			for _, line := range record[2:] {
				path, body, _ := strings.Cut(line, " ")
				paths[path] = strings.ReplaceAll(body, "LONG", strings.Repeat("x", windowSize))
			}
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked++
				if r.Header.Get("Authorization") != "" {
					t.Error("there is no key")
				}
				if body := paths[r.URL.Path]; body != "" {
					_, _ = io.WriteString(w, body)
					return
				}
				http.NotFound(w, r)
			}))
			t.Cleanup(server.Close)
			c := New(Model{BaseURL: server.URL + "/v1/", Name: "m"})
			t.Cleanup(c.Close)
			require.Equal(t, defaultWindow, c.Model().ContextTokens)
			for range 3 {
				c.AskWindow(t.Context())
			}
			if tokens == "default" {
				tokens = strconv.Itoa(defaultWindow)
			}
			require.Equal(t, tokens, strconv.Itoa(c.Model().ContextTokens))
			require.Equal(t, requests, strconv.Itoa(asked))
		})
	}
	for _, m := range []Model{{BaseURL: "http://127.0.0.1:1/v1", ContextTokens: 5},
		{BaseURL: "https://models.invalid/v1"}, {}} {
		require.Zero(t, New(m).window.left)
	}
	for _, address := range []string{"http://localhost:1", "http://[::1]:1", "http://192.168.1.7/v1"} {
		require.NotZero(t, New(Model{BaseURL: address}).window.left)
	}
}
