package client

//lint:file-ignore SA1019 the MCP SDK deprecates sampling (SEP-2577); it is supported for existing servers

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/acp/backend"
	mcproots "github.com/acp-agent/acp-agent/internal/mcp/roots"
	"github.com/acp-agent/acp-agent/internal/text"
)

// Limits of a server's requests to the model. All of a request is shown to the user.
const (
	maxSampleTexts    = 256 << 10 // bytes of all texts
	maxSampleImages   = 4 << 20   // bytes of all images
	maxSampleMessages = 100
	maxSampleStops    = 10
	samplesPerMinute  = 10
)

// rejectedByUser is the code of the error for a request or an answer that the user rejected.
const rejectedByUser = -1

// offerSampling sets the options of a client whose server may ask the session's model, if it has
// one.
func (c *connection) offerSampling(o *mcproots.Options) {
	if c.server.set.currentSampler() == nil {
		return
	}
	o.Sampling = &mcp.SamplingCapabilities{Context: &mcp.SamplingContextCapabilities{}}
	o.SDK.CreateMessageWithToolsHandler = func(ctx context.Context, r *mcp.CreateMessageWithToolsRequest) (*mcp.CreateMessageWithToolsResult, error) {
		result, err := c.sample(ctx, r.Params)
		if err != nil {
			c.server.log.Debug("MCP server gets no answer of the model", "error", err)
		}
		return result, err
	}
}

// currentSampler returns the model of the session, nil if it has none.
func (s *Set) currentSampler() backend.Sampler {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sampler
}

// sample asks the model for a server during a call of one of its tools. The user is asked before
// the model gets the request, and again before the server gets the answer.
func (c *connection) sample(ctx context.Context, p *mcp.CreateMessageWithToolsParams) (*mcp.CreateMessageWithToolsResult, error) {
	s := c.server
	s.warn(deprecatedSampling)
	ctx, cancel, ok := c.calls.during(ctx)
	if !ok {
		return nil, rpcError(jsonrpc.CodeInvalidRequest, "sampling/createMessage is answered during calls of the server's tools only")
	}
	defer cancel(nil)
	defer c.calls.pause()()
	request, err := newSampleRequest(p)
	if err != nil {
		return nil, err
	}
	host, err := s.set.openHost()
	if err != nil {
		return nil, err
	}
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	default:
		return nil, rpcError(jsonrpc.CodeInternalError, "the user is still asked about another request of this server: send one at a time")
	}
	if !s.maySample(time.Now()) {
		return nil, rpcError(jsonrpc.CodeInternalError, "more than %d requests in a minute: try again later", samplesPerMinute)
	}
	model := s.set.currentSampler()
	request.Model = model.SamplingModel(hintsOf(p.ModelPreferences))
	one := &sampling{server: s, host: host, model: model, request: request, include: p.IncludeContext, id: sdk.ToolCallId("sampling-" + rand.Text()[:16])}
	began := time.Now()
	result, err := one.run(ctx)
	// This is to be kept, so it has a level that is logged by default.
	s.log.Warn("MCP server asked the model", "model", text.Printable(request.Model), "outcome", one.outcome(ctx, err),
		"inputTokens", result.Input, "outputTokens", result.Output, "duration", time.Since(began))
	if failed, ok := errors.AsType[*modelError](err); ok {
		err = rpcError(jsonrpc.CodeInternalError, "%v", failed)
	}
	if err != nil {
		return nil, err
	}
	return &mcp.CreateMessageWithToolsResult{
		Role: "assistant", Content: []mcp.Content{&mcp.TextContent{Text: result.Text}}, Model: result.Model, StopReason: result.StopReason,
	}, nil
}

// maySample reports whether the server may ask the model now, and counts the request if so.
func (s *server) maySample(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sampled = slices.DeleteFunc(s.sampled, func(t time.Time) bool { return now.Sub(t) >= time.Minute })
	if len(s.sampled) >= samplesPerMinute {
		return false
	}
	s.sampled = append(s.sampled, now)
	return true
}

// hintsOf returns the names in a server's preferences. Its priorities for cost, speed and
// intelligence are ignored: nothing is known about those of the models.
func hintsOf(p *mcp.ModelPreferences) (hints []string) {
	if p == nil {
		return nil
	}
	for _, h := range p.Hints {
		if h != nil && h.Name != "" {
			hints = append(hints, h.Name)
		}
	}
	return hints
}

// newSampleRequest checks a server's request and returns it without a model and a context.
func newSampleRequest(p *mcp.CreateMessageWithToolsParams) (backend.SampleRequest, error) {
	invalid := func(format string, args ...any) (backend.SampleRequest, error) {
		return backend.SampleRequest{}, rpcError(jsonrpc.CodeInvalidParams, format, args...)
	}
	switch {
	case p == nil:
		return invalid("params are missing")
	case p.Tools != nil || p.ToolChoice != nil:
		return invalid("tools and toolChoice are not supported, as the missing capability sampling.tools says")
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
	r := backend.SampleRequest{System: p.SystemPrompt, MaxTokens: int(min(p.MaxTokens, 1<<30)), Stop: p.StopSequences}
	if p.Temperature > 0 { // the SDK does not tell 0 from none
		r.Temperature = &p.Temperature
	}
	texts, images := len(p.SystemPrompt), 0
	for _, stop := range p.StopSequences {
		texts += len(stop)
	}
	for _, m := range p.Messages {
		if m == nil || m.Role != "user" && m.Role != "assistant" || len(m.Content) == 0 {
			return invalid("a message has a role, which is user or assistant, and content")
		}
		message := backend.SampleMessage{Role: string(m.Role)}
		for _, block := range m.Content {
			switch b := block.(type) {
			case *mcp.TextContent:
				texts += len(b.Text)
				message.Content = append(message.Content, sdk.TextBlock(b.Text))
			case *mcp.ImageContent:
				images += len(b.Data)
				if !isImage(b) {
					return invalid("images are PNG, JPEG, GIF or WebP, with the right mimeType")
				}
				message.Content = append(message.Content, sdk.ImageBlock(base64.StdEncoding.EncodeToString(b.Data), b.MIMEType))
			default:
				return invalid("the content of messages is text or images")
			}
		}
		r.Messages = append(r.Messages, message)
	}
	if texts > maxSampleTexts || images > maxSampleImages {
		return invalid("a request can have up to %s of text and %s of images", text.Size(maxSampleTexts), text.Size(maxSampleImages))
	}
	return r, nil
}

// isImage reports whether the data is an image of the type that the server says.
func isImage(b *mcp.ImageContent) bool {
	return slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, b.MIMEType) && http.DetectContentType(b.Data) == b.MIMEType
}

// sampling is one request of a server to the model. It is shown to the user as a tool call.
type sampling struct {
	server  *server
	host    Host
	model   backend.Sampler
	request backend.SampleRequest
	include string // includeContext
	id      sdk.ToolCallId
}

// run asks the user, the model, and the user again.
func (s *sampling) run(ctx context.Context) (backend.SampleResult, error) {
	err := s.update(ctx, sdk.SessionUpdateToolCall{
		SessionUpdate: "tool_call", ToolCallId: s.id, Title: s.title(), Kind: sdk.ToolKindOther, Status: sdk.ToolCallStatusPending,
	})
	if err != nil {
		return backend.SampleResult{}, err
	}
	result, err := s.sample(ctx)
	if err == nil {
		return result, s.showStatus(ctx, sdk.ToolCallStatusCompleted, textContent(quoted(result.Text)))
	}
	why := err.Error()
	if failed, ok := errors.AsType[*modelError](err); ok {
		why = failed.cause.Error()
	}
	_ = s.showStatus(context.WithoutCancel(ctx), sdk.ToolCallStatusFailed, textContent(text.Plain(why)))
	return result, err
}

func (s *sampling) sample(ctx context.Context) (backend.SampleResult, error) {
	if err := s.ask(ctx, s.describeRequest(), "Allow", "Reject"); err != nil {
		return backend.SampleResult{}, err
	}
	if err := s.addContext(ctx); err != nil {
		return backend.SampleResult{}, err
	}
	if err := s.showStatus(ctx, sdk.ToolCallStatusInProgress, nil); err != nil {
		return backend.SampleResult{}, err
	}
	result, err := s.model.Sample(ctx, s.request)
	if err != nil {
		if ctx.Err() != nil {
			return result, context.Cause(ctx)
		}
		return result, &modelError{err}
	}
	return result, s.ask(ctx, s.describeAnswer(result), "Send the answer to the server", "Reject")
}

// addContext adds to the request what the server wants from the conversation, if the user allows
// that.
func (s *sampling) addContext(ctx context.Context) error {
	prefix, part := s.server.prefix, "what this conversation says about its tools"
	switch s.include {
	case "thisServer":
	case "allServers":
		prefix, part = "", "this conversation"
	default:
		return nil
	}
	added := s.model.SamplingContext(prefix)
	if added == "" {
		return nil
	}
	content := textContent(fmt.Sprintf("MCP server %s asks the model about %s too. The answer may repeat it, and you see that before the server gets it. "+
		"If you do not add it, the request is sent without it.\n\n%s", s.name(), part, quoted(added)))
	err := s.ask(ctx, content, "Add it to the request", "Send the request without it")
	if isRejection(err) {
		return nil
	}
	s.request.Context = added
	return err
}

// ask shows the user what is to be sent and returns nil if they allow it.
func (s *sampling) ask(ctx context.Context, content []sdk.ToolCallContent, allow, reject string) error {
	answer, err := backend.Question{
		ToolCall: backend.Encode(sdk.ToolCallUpdate{
			ToolCallId: s.id, Title: sdk.Ptr(s.title()), Kind: sdk.Ptr(sdk.ToolKindOther), Status: sdk.Ptr(sdk.ToolCallStatusPending), Content: content,
		}),
		Offers: []backend.Offer{{Answer: backend.AllowOnce, Label: allow}, {Answer: backend.RejectOnce, Label: reject}},
	}.Ask(ctx, s.host)
	switch {
	case err != nil:
		return err
	case answer == backend.AllowOnce:
		return nil
	case answer == backend.Cancelled:
		return backend.ErrCancelled
	default:
		return rpcError(rejectedByUser, "User rejected sampling request")
	}
}

// isRejection reports whether err says that the user rejected something.
func isRejection(err error) bool {
	refusal, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && refusal.Code == rejectedByUser
}

// modelError says why the model did not answer. That is for the user and not for the server.
type modelError struct{ cause error }

func (*modelError) Error() string { return "the model could not answer" }

// outcome says for the log what came of the request.
func (s *sampling) outcome(ctx context.Context, err error) string {
	switch {
	case err == nil:
		return "answered"
	case isRejection(err):
		return "rejected"
	case ctx.Err() != nil || errors.Is(err, backend.ErrCancelled):
		return "cancelled"
	default:
		return "failed"
	}
}

func (s *sampling) name() string { return quotedName(s.server.config.Name) }

func (s *sampling) title() string {
	return fmt.Sprintf("MCP server %s asks the model %s", s.name(), printableName(s.request.Model))
}

// describeRequest returns all that the model is sent, for a person.
func (s *sampling) describeRequest() []sdk.ToolCallContent {
	r := s.request
	intro := fmt.Sprintf("MCP server %s wants an answer of up to %s from the model %s. If you allow it, the model is sent what follows. "+
		"You see the answer before the server gets it.", s.name(), text.Count(r.MaxTokens, "token", "tokens"), printableName(r.Model))
	if s.include == "thisServer" || s.include == "allServers" {
		intro += " The server asks for parts of this conversation to be added. You are asked about that next."
	}
	if len(r.Stop) > 0 {
		stops := make([]string, len(r.Stop))
		for i, stop := range r.Stop {
			stops[i] = text.Code(stop)
		}
		intro += " The answer ends before " + strings.Join(stops, " or ") + "."
	}
	if r.System != "" {
		intro += "\n\nSystem prompt:\n\n" + quoted(r.System)
	}
	content := textContent(intro)
	for _, m := range r.Messages {
		role := "As the user:"
		if m.Role == "assistant" {
			role = "As the model:"
		}
		for _, block := range m.Content {
			if block.Text != nil {
				content = append(content, textContent(role+"\n\n"+quoted(block.Text.Text))...)
			} else {
				content = append(content, textContent(role)[0], sdk.ToolContent(block))
			}
		}
	}
	return content
}

// describeAnswer returns the answer for a person.
func (s *sampling) describeAnswer(r backend.SampleResult) []sdk.ToolCallContent {
	return textContent(fmt.Sprintf("The model %s has answered. If you allow it, MCP server %s gets this answer:\n\n%s", printableName(r.Model), s.name(), quoted(r.Text)))
}

// quoted returns a text of somebody else as a quotation that it cannot end.
func quoted(s string) string { return strings.TrimSuffix(text.Block("", text.Plain(s)), "\n") }

func (s *sampling) showStatus(ctx context.Context, status sdk.ToolCallStatus, content []sdk.ToolCallContent) error {
	return s.update(ctx, sdk.SessionToolCallUpdate{SessionUpdate: "tool_call_update", ToolCallId: s.id, Status: &status, Content: content})
}

func (s *sampling) update(ctx context.Context, update any) error {
	return s.host.Update(ctx, backend.NewUpdate(update))
}
