package llm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acp-agent/acp-agent/internal/text/secret"
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
	// asked is what the server answered, and learned what it named in a rejection; 0 if that is not
	// known.
	asked, learned atomic.Int64
	// accepted is the length of the longest request that the server has answered.
	accepted atomic.Int64

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
	for _, ask := range []func(context.Context, string) int{
		c.windowOfOllama, c.windowOfLlamaCpp, c.windowOfLMStudio, c.windowOfVLLM,
	} {
		if tokens := ask(ctx, root); tokens > 0 && tokens <= maxTokenCount {
			c.window.left = 0
			c.window.asked.Store(int64(tokens))
			return
		}
	}
}

// minLearned is the smallest context that an error is believed to name.
const minLearned = 1024

var aboutWindow = sync.OnceValue(func() *regexp.Regexp {
	const number = `(\d{4,8})\b`
	return regexp.MustCompile(`(?i)> ` + number + ` maximum|(?:maximum|context (?:length|size|window)|` +
		`limit|only supports|must be <=|less than|should be \[1,)(\D{0,30}?)` + number)
})

// accept notes that the server has answered a request with so many tokens.
func (w *window) accept(tokens int) {
	w.accepted.Store(max(w.accepted.Load(), int64(tokens)))
}

// learn learns the context from the words of an error about a request that is too long. It believes
// a number that is clearly smaller than the context so far, unless longer requests were answered.
func (w *window) learn(message string, before int) {
	for _, found := range aboutWindow().FindAllStringSubmatch(message, -1) {
		tokens, _ := strconv.Atoi(cmp.Or(found[1], found[3]))
		possible := !strings.Contains(found[2], "exceed") && int64(tokens) > w.accepted.Load()
		if possible && tokens >= minLearned && tokens <= before/10*9 {
			w.learned.Store(int64(tokens))
			return
		}
	}
}

// isLocal reports whether a server is on this machine or in a private network, by its address.
func isLocal(baseURL string) bool {
	u, err := url.Parse(baseURL)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return secret.IsLoopback(u.Hostname()) || err == nil && ip.IsPrivate()
}

// windowOfOllama returns the context of a loaded model, or the one that the model's file sets.
// Otherwise the context depends on the server's environment and its graphics card:
// https://docs.ollama.com/api/ps
func (c *Client) windowOfOllama(ctx context.Context, root string) int {
	var loaded struct {
		Models []struct {
			Name   string
			Tokens int `json:"context_length"`
		}
	}
	if !c.ask(ctx, http.MethodGet, root+"/api/ps", nil, &loaded) {
		return 0
	}
	for _, m := range loaded.Models {
		if m.Name == c.model.Name || m.Name == c.model.Name+":latest" {
			return m.Tokens
		}
	}
	var shown struct{ Parameters string }
	body, _ := json.Marshal(map[string]string{"model": c.model.Name})
	c.ask(ctx, http.MethodPost, root+"/api/show", body, &shown)
	demanded := regexp.MustCompile(`(?m)^num_ctx\s+(\d+)`).FindStringSubmatch(shown.Parameters)
	if demanded == nil {
		return 0
	}
	tokens, _ := strconv.Atoi(demanded[1])
	return tokens
}

// windowOfLlamaCpp returns the context of a slot:
// https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
func (c *Client) windowOfLlamaCpp(ctx context.Context, root string) int {
	var props struct {
		Settings struct {
			Tokens int `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	c.ask(ctx, http.MethodGet, root+"/props", nil, &props)
	return props.Settings.Tokens
}

// windowOfLMStudio returns the context of a loaded model:
// https://lmstudio.ai/docs/developer/rest/endpoints
func (c *Client) windowOfLMStudio(ctx context.Context, root string) int {
	return c.listedWindow(ctx, root+"/api/v0/models")
}

// windowOfVLLM returns max_model_len:
// https://docs.vllm.ai/en/stable/serving/openai_compatible_server/
func (c *Client) windowOfVLLM(ctx context.Context, root string) int {
	return c.listedWindow(ctx, root+"/v1/models")
}

// listedWindow returns what a list of models says about the model.
func (c *Client) listedWindow(ctx context.Context, address string) int {
	var list struct {
		Data []struct {
			ID     string
			VLLM   int `json:"max_model_len"`
			Loaded int `json:"loaded_context_length"`
		}
	}
	c.ask(ctx, http.MethodGet, address, nil, &list)
	for _, m := range list.Data {
		if m.ID == c.model.Name {
			return cmp.Or(m.VLLM, m.Loaded)
		}
	}
	return 0
}

// ask sends a request for something other than an answer of the model. It reports whether the
// response could be decoded into into.
func (c *Client) ask(ctx context.Context, method, address string, body []byte, into any) bool {
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return false
	}
	key, err := c.key(ctx, "")
	if err != nil {
		return false
	}
	headers, err := c.headers()
	if err != nil {
		return false
	}
	request.Header = c.requestHeader(key, headers, body != nil)
	response, err := c.http.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, windowSize))
	return err == nil && response.StatusCode == http.StatusOK && json.Unmarshal(text, into) == nil
}
