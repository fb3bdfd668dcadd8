package llm

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"iter"
	"net/http"
	"strings"
)

// Client asks one model. It is safe for concurrent use.
type Client struct {
	model  Model
	format format
	http   *http.Client
}

// New returns a client for m. It connects when it is used.
func New(m Model) *Client {
	baseURL := "https://api.openai.com/v1"
	if m.API == Anthropic {
		baseURL = "https://api.anthropic.com"
		m.MaxTokens = cmp.Or(m.MaxTokens, 8192)
	}
	m.BaseURL = strings.TrimRight(cmp.Or(m.BaseURL, baseURL), "/")
	if m.API == Anthropic {
		m.BaseURL = strings.TrimSuffix(m.BaseURL, "/v1") // of the paths
	}
	m.ContextTokens = cmp.Or(m.ContextTokens, 128_000)
	return &Client{model: m, format: formats[m.API], http: &http.Client{}}
}

// Model returns the model that the client asks, with its defaults.
func (c *Client) Model() Model { return c.model }

// Stream sends the request and yields what arrives, in order: complete tool calls, each once, and at the end a [Finish]. An error ends
// it, and is an [*Error] unless ctx has ended, which returns its cause. A request that failed before anything arrived is sent again after a
// [Retry]; one that failed later is not. Breaking out of the loop ends the request.
func (c *Client) Stream(ctx context.Context, r Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		stopped := false
		err := c.ask(ctx, r, func(e Event) bool {
			if thought, ok := e.(Thinking); ok {
				thought.Model = c.model.Name
				e = thought
			}
			stopped = !yield(e, nil)
			return !stopped
		})
		switch {
		case stopped || err == nil:
		case ctx.Err() != nil:
			yield(nil, context.Cause(ctx))
		default:
			yield(nil, asError(err))
		}
	}
}

// ask sends the request once and gives the events of the answer to yield until it returns false.
func (c *Client) ask(ctx context.Context, r Request, yield func(Event) bool) error {
	body, err := c.format.encode(c.model, r)
	if err != nil {
		return err
	}
	key := ""
	if c.model.Key != nil {
		if key, err = c.model.Key(ctx, ""); err != nil {
			return err
		}
	}
	path, _ := c.format.paths()
	asked, err := http.NewRequestWithContext(ctx, http.MethodPost, c.model.BaseURL+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	asked.Header = c.format.header(key)
	asked.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(asked)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
		return describe(response.StatusCode, body)
	}
	return c.read(response.Body, yield)
}

// read gives the events of an answer to yield until it returns false.
func (c *Client) read(body io.Reader, yield func(Event) bool) error {
	stream, decoder := &sseReader{from: body}, c.format.decoder()
	for {
		var events []Event
		event, failed := stream.next()
		done := failed != nil
		if failed == nil {
			var err error
			if events, done, err = decoder.decode(event); err != nil {
				return err
			}
		}
		if done {
			last, err := decoder.end()
			if err != nil {
				return err
			}
			events = append(events, last...)
		}
		for _, e := range events {
			if !yield(e) {
				return nil
			}
		}
		if done {
			return nil
		}
	}
}
