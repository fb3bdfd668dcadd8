package llm

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The responses are those that the documentation of each server shows; the sources are in
// window.go.
//
// Clause B3.
func TestWindow(t *testing.T) {
	for name, test := range map[string]struct {
		paths map[string]string // responses
		want  int
		asked int // requests, with those of the second time
	}{
		"Ollama": {map[string]string{"/api/ps": `{"models":[{"name":"other:latest","context_length":1},
			{"name":"m:latest","model":"m:latest","size":6591830464,"details":{"format":"gguf"},"size_vram":1,"context_length":4096}]}`},
			4096, 1},
		"Ollama, not loaded": {map[string]string{"/api/ps": `{"models":[]}`,
			"/api/show": `{"parameters":"temperature 0.7\nnum_ctx                        16384","model_info":{"gemma3.context_length":131072}}`},
			16384, 2},
		"Ollama, unknown": {map[string]string{"/api/ps": `{"models":[]}`,
			"/api/show": `{"parameters":"temperature 0.7","model_info":{"gemma3.context_length":131072}}`},
			defaultWindow, 10},
		"llama.cpp": {map[string]string{"/props": `{"default_generation_settings":{"id":0,"n_ctx":32768},"total_slots":1}`},
			32768, 3},
		"LM Studio": {map[string]string{"/api/v0/models": `{"object":"list","data":[
			{"id":"n","state":"not-loaded","max_context_length":32768},
			{"id":"m","state":"loaded","max_context_length":131072,"loaded_context_length":8192}]}`}, 8192, 4},
		"vLLM": {map[string]string{"/v1/models": `{"object":"list","data":[{"id":"m","object":"model","owned_by":"vllm","max_model_len":65536}]}`},
			65536, 5},
		"another":  {map[string]string{"/v1/models": `{"data":[{"id":"m"}]}`}, defaultWindow, 10},
		"nonsense": {map[string]string{"/api/ps": "<html>", "/props": `[1]`, "/v1/models": `{"data":[{"id":"m","max_model_len":-1}]}`}, defaultWindow, 10},
		"endless": {map[string]string{"/props": `{"default_generation_settings":{"n_ctx":1},"x":"` +
			strings.Repeat("x", windowSize)}, defaultWindow, 10},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked++
				if r.Header.Get("Authorization") != "" {
					t.Error("there is no key")
				}
				if body := test.paths[r.URL.Path]; body != "" {
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
			require.Equal(t, test.want, c.Model().ContextTokens)
			require.Equal(t, test.asked, asked)
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
