package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

const (
	// defaultWindow is how many tokens a request and its answer may have if that is not known.
	defaultWindow = 128_000
	// windowTimeout bounds the time to ask a server for that number, and windowSize the size of
	// each of its answers.
	windowTimeout = 2 * time.Second
	windowSize    = 1 << 20
)

// window is how many tokens a request and its answer may have, as the server says.
type window struct {
	tokens atomic.Int64 // what the server answered, 0 if that is not known

	mu   sync.Mutex // held while the server is asked
	left int        // how often it may still be asked
}

// AskWindow asks a server on this machine or in a private network how many tokens a request and its
// answer may have, unless that is configured. [Client.Model] returns it then. Call it before each
// request: it asks before the first one and, if that fails, before the second, because some servers
// load a model only when it is used. It fails silently.
func (c *Client) AskWindow(ctx context.Context) {
	c.window.mu.Lock()
	defer c.window.mu.Unlock()
	if c.window.left == 0 {
		return
	}
	c.window.left--
	ctx, cancel := context.WithTimeout(ctx, windowTimeout)
	defer cancel()
	root := strings.TrimSuffix(c.model.BaseURL, "/v1")
	name := strictjson.Encode(map[string]string{"model": c.model.Name})
	for _, q := range []struct {
		path string
		body []byte
	}{
		{"/api/ps", nil},        // Ollama, a loaded model: https://docs.ollama.com/api/ps
		{"/api/show", name},     // Ollama, otherwise
		{"/props", nil},         // llama.cpp, tools/server/README.md
		{"/api/v0/models", nil}, // https://lmstudio.ai/docs/developer/rest/endpoints
		{"/v1/models", nil},     // vLLM, max_model_len
	} {
		var told toldWindow
		_ = c.authorized(ctx, root+q.path, q.body, func(answer *watchedBody) *failure {
			text, _ := io.ReadAll(io.LimitReader(answer, windowSize))
			_ = json.Unmarshal(text, &told) // as far as it can be decoded
			return nil
		})
		if tokens := told.tokens(c.model.Name); tokens > 0 && tokens <= maxTokenCount {
			c.window.left = 0
			c.window.tokens.Store(int64(tokens))
			return
		}
	}
}

// toldWindow holds what servers tell about a model. Ollama's depends on the server's environment
// and graphics card unless the model's file sets it.
type toldWindow struct {
	Models []struct {
		Name   string
		Tokens int `json:"context_length"`
	}
	Parameters string
	Settings   struct {
		Tokens int `json:"n_ctx"` // of a slot
	} `json:"default_generation_settings"`
	Data []struct {
		ID     string
		VLLM   int `json:"max_model_len"`
		Loaded int `json:"loaded_context_length"`
	}
}

var aboutContext = text.Pattern(`(?m)^num_ctx\s+(\d+)`)

// tokens returns the context of the model with a name, 0 if it is not known.
func (t toldWindow) tokens(name string) int {
	for _, m := range t.Models {
		if m.Name == name || m.Name == name+":latest" {
			return m.Tokens
		}
	}
	for _, m := range t.Data {
		if m.ID == name {
			return cmp.Or(m.VLLM, m.Loaded)
		}
	}
	if demanded := aboutContext().FindStringSubmatch(t.Parameters); demanded != nil {
		tokens, _ := strconv.Atoi(demanded[1])
		return tokens
	}
	return t.Settings.Tokens
}

// isLocal reports whether the server is on this machine or in a private network, by its address.
func (m Model) isLocal() bool {
	host := m.address().Hostname()
	ip, err := netip.ParseAddr(host)
	return secret.IsLoopback(host) || err == nil && ip.IsPrivate()
}
