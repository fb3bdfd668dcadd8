package mcpclient

//lint:file-ignore SA1019 the MCP SDK deprecates sampling (SEP-2577); existing servers still use it

import (
	"bytes"
	"context"
	"image"
	_ "image/gif" // formats that servers may send
	_ "image/jpeg"
	_ "image/png"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/internal/text"
)

// Limits of a server's request to the model.
const (
	maxSampleTexts    = 256 << 10 // bytes of all texts
	maxSampleImages   = 4 << 20   // bytes of all images
	maxSampleMessages = 100
	maxSampleStops    = 10
	samplesPerMinute  = 10
)

// offerSampling sets the options of a client whose server may ask the model, if there is one.
func (c *connection) offerSampling(o *mcp.ClientOptions) {
	if host, err := c.server.set.openHost(); err != nil || !host.HasModel() {
		return
	}
	o.Capabilities.Sampling = &mcp.SamplingCapabilities{
		Context: &mcp.SamplingContextCapabilities{}}
	o.CreateMessageWithToolsHandler = func(
		ctx context.Context, r *mcp.CreateMessageWithToolsRequest,
	) (*mcp.CreateMessageWithToolsResult, error) {
		return c.sample(ctx, r.Params)
	}
}

// sample passes a server's request to the model, during a call of one of the server's tools and
// without a time limit.
func (c *connection) sample(ctx context.Context, p *mcp.CreateMessageWithToolsParams) (
	result *mcp.CreateMessageWithToolsResult, err error) {
	s := c.server
	defer func() {
		if err != nil {
			s.log.Debug("MCP server gets no answer from the model", "error", err)
		}
	}()
	s.warn(deprecatedSampling)
	ctx, cancel, ok := c.calls.during(ctx)
	if !ok {
		return nil, rpcError(jsonrpc.CodeInvalidRequest,
			"sampling/createMessage is answered only during calls of the server's tools")
	}
	defer cancel(nil)
	defer c.calls.pause()()
	if err := checkSample(p); err != nil {
		return nil, err
	}
	host, err := s.set.openHost()
	if err != nil {
		return nil, err
	}
	select {
	case s.questions <- struct{}{}:
		defer func() { <-s.questions }()
	default:
		return nil, rpcError(jsonrpc.CodeInternalError,
			"the user has not answered another request of this server: send one at a time")
	}
	switch {
	case !host.HasModel():
		return nil, rpcError(jsonrpc.CodeMethodNotFound, "the model is no longer available")
	case !s.samples.Allow():
		return nil, rpcError(jsonrpc.CodeInternalError,
			"too many requests, the limit is %d a minute: try again later", samplesPerMinute)
	}
	return host.Sample(ctx, s.id(), p)
}

// checkSample checks a server's request.
func checkSample(p *mcp.CreateMessageWithToolsParams) error {
	switch {
	case p == nil:
		return invalid("params are missing")
	case p.Tools != nil || p.ToolChoice != nil:
		return invalid("tools and toolChoice need the capability sampling.tools, which is missing")
	case p.MaxTokens <= 0:
		return invalid("maxTokens must be positive")
	case len(p.Messages) == 0 || len(p.Messages) > maxSampleMessages:
		return invalid("there must be between 1 and %d messages", maxSampleMessages)
	case len(p.StopSequences) > maxSampleStops:
		return invalid("there can be up to %d stopSequences", maxSampleStops)
	case p.Temperature < 0:
		return invalid("temperature must not be negative")
	case !slices.Contains([]string{"", "none", "thisServer", "allServers"}, p.IncludeContext):
		return invalid("includeContext is none, thisServer or allServers")
	}
	if r, hidden := text.FirstHidden(p.SystemPrompt); hidden {
		return invalid("systemPrompt contains %U, which the user cannot see", r)
	}
	texts, images := len(p.SystemPrompt), 0
	for _, stop := range p.StopSequences {
		texts += len(stop)
	}
	for _, m := range p.Messages {
		if m == nil || m.Role != "user" && m.Role != "assistant" || len(m.Content) == 0 {
			return invalid("a message has a role, which is user or assistant, and content")
		}
		for _, block := range m.Content {
			switch b := block.(type) {
			case *mcp.TextContent:
				texts += len(b.Text)
				if r, hidden := text.FirstHidden(b.Text); hidden {
					return invalid("a message contains %U, which the user cannot see", r)
				}
			case *mcp.ImageContent:
				if images += len(b.Data); !isImage(b) {
					return invalid("images are PNG, JPEG, GIF or WebP, with the right mimeType")
				}
			default:
				return invalid("the content of messages is text or images")
			}
		}
	}
	if texts > maxSampleTexts || images > maxSampleImages {
		return invalid("a request can have up to %s of text and %s of images",
			text.Size(maxSampleTexts), text.Size(maxSampleImages))
	}
	return nil
}

// isImage reports whether the data is an image of the stated type. The user might not see an image
// of another type.
func isImage(b *mcp.ImageContent) bool {
	if b.MIMEType == "image/webp" { // which the standard library cannot read
		return http.DetectContentType(b.Data) == b.MIMEType
	}
	_, format, err := image.DecodeConfig(bytes.NewReader(b.Data))
	return err == nil && "image/"+format == b.MIMEType
}
