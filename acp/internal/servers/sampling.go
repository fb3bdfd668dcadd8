package servers

//lint:file-ignore SA1019 the MCP SDK deprecates sampling (SEP-2577); existing servers still use it

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/text"
)

// errRejected is the error for a request or an answer that the user rejected.
var errRejected = &jsonrpc.Error{Code: -1, Message: "User rejected sampling request"}

// modelError says why the model did not answer. The server is not told the cause, only the user.
type modelError struct{ cause error }

func (*modelError) Error() string { return "the model could not answer" }

// HasModel implements [mcpclient.Host].
func (a *answerer) HasModel() bool { return a.model != nil }

// Sample implements [mcpclient.Host]. The user is asked before the model gets the request, and
// again before the server gets the answer.
func (a *answerer) Sample(
	ctx context.Context, s mcpclient.ServerID, p *mcp.CreateMessageWithToolsParams,
) (*mcp.CreateMessageWithToolsResult, error) {
	request, began := sampleRequest(p), time.Now()
	request.Model = a.model.SamplingModel(hintsOf(p.ModelPreferences))
	result, err := a.run(ctx, s, request, p.IncludeContext)
	// Users should find this later, so it has a level that is logged by default.
	a.log.Warn("MCP server asked the model",
		"server", s.Name, "model", text.Printable(request.Model), "outcome", outcome(ctx, err),
		"inputTokens", result.Input, "outputTokens", result.Output, "duration", time.Since(began))
	if failed, ok := errors.AsType[*modelError](err); ok {
		err = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: failed.Error()}
	}
	if err != nil {
		return nil, err
	}
	return &mcp.CreateMessageWithToolsResult{
		Role: "assistant", Content: []mcp.Content{&mcp.TextContent{Text: result.Text}},
		Model: result.Model, StopReason: result.StopReason,
	}, nil
}

// hintsOf returns the names in a server's preferences. It ignores priorities for cost, speed and
// intelligence, because these are not known of the models.
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

// sampleRequest returns a server's request without a model and a context. The user sees all of it.
// Metadata and priorities are left out, so they are neither shown nor sent.
func sampleRequest(p *mcp.CreateMessageWithToolsParams) backend.SampleRequest {
	r := backend.SampleRequest{
		System: withLineFeeds(p.SystemPrompt), MaxTokens: int(min(p.MaxTokens, 1<<30)),
		Stop: p.StopSequences,
	}
	if p.Temperature > 0 { // the SDK does not tell 0 from none
		r.Temperature = &p.Temperature
	}
	for _, m := range p.Messages {
		message := backend.SampleMessage{Role: string(m.Role)}
		for _, block := range m.Content {
			switch b := block.(type) {
			case *mcp.TextContent:
				message.Content = append(message.Content, sdk.TextBlock(withLineFeeds(b.Text)))
			case *mcp.ImageContent:
				data := base64.StdEncoding.EncodeToString(b.Data)
				message.Content = append(message.Content, sdk.ImageBlock(data, b.MIMEType))
			}
		}
		r.Messages = append(r.Messages, message)
	}
	return r
}

// withLineFeeds returns s with "\n" as line endings, as it is shown.
func withLineFeeds(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// sampling is one request of a server to the model. It is shown to the user as a tool call.
type sampling struct {
	backend.ShownCall
	answerer *answerer
	server   mcpclient.ServerID
	request  backend.SampleRequest
	include  string // includeContext
	title    string // of the tool call
}

// run asks the user, the model, and the user again.
func (a *answerer) run(
	ctx context.Context, server mcpclient.ServerID, r backend.SampleRequest, include string,
) (result backend.SampleResult, err error) {
	title := fmt.Sprintf("MCP server %s asks the model %s", text.QuotedName(server.Name),
		text.Name(r.Model))
	call, err := backend.ShowCall(ctx, a,
		backend.NewToolCall("sampling", sdk.ToolKindOther, title, ""))
	if err != nil {
		return result, err
	}
	s := &sampling{ShownCall: call, answerer: a, server: server, request: r, include: include,
		title: title}
	result, err = s.sample(ctx)
	if err == nil {
		answer := backend.TextContent(quotation(result.Text))
		return result, s.ShowStatus(ctx, sdk.ToolCallStatusCompleted, answer)
	}
	why := err.Error()
	if failed, ok := errors.AsType[*modelError](err); ok {
		why = failed.cause.Error()
	}
	ctx = context.WithoutCancel(ctx)
	_ = s.ShowStatus(ctx, sdk.ToolCallStatusFailed, backend.TextContent(text.Plain(why)))
	return result, err
}

func (s *sampling) sample(ctx context.Context) (backend.SampleResult, error) {
	if err := s.ask(ctx, s.describeRequest(), "Allow", "Reject"); err != nil {
		return backend.SampleResult{}, err
	}
	if err := s.addContext(ctx); err != nil {
		return backend.SampleResult{}, err
	}
	if err := s.ShowStatus(ctx, sdk.ToolCallStatusInProgress, nil); err != nil {
		return backend.SampleResult{}, err
	}
	result, err := s.answerer.model.Sample(ctx, s.request)
	if err != nil {
		if ctx.Err() != nil {
			return result, context.Cause(ctx)
		}
		return result, &modelError{err}
	}
	result.Text = text.Unhide(withLineFeeds(result.Text)) // the server gets what is shown
	result.Model = text.Unhide(text.Truncate(result.Model, text.MaxName))
	return result, s.ask(ctx, s.describeAnswer(result), "Send the answer to the server", "Reject")
}

// addContext adds the part of the conversation that the server asks for to the request, if the user
// allows that.
func (s *sampling) addContext(ctx context.Context) error {
	prefix, part := s.server.Prefix, "what this conversation says about its tools"
	switch s.include {
	case "thisServer":
	case "allServers":
		prefix, part = "", "this conversation"
	default:
		return nil
	}
	added := text.Unhide(withLineFeeds(s.answerer.model.SamplingContext(prefix)))
	if added == "" {
		return nil
	}
	content := backend.TextContent(fmt.Sprintf("MCP server %s asks the model about %s too. The "+
		"answer may repeat it, and you see that before the server gets it. If you do not add it, "+
		"the request is sent without it.\n\n%s", s.name(), part, quotation(added)))
	err := s.ask(ctx, content, "Add it to the request", "Send the request without it")
	if errors.Is(err, errRejected) {
		return nil
	}
	s.request.Context = added
	return err
}

// ask shows the user what would be sent, and returns nil if they allow it.
func (s *sampling) ask(ctx context.Context, content []any, allow, reject string) error {
	_, err := s.answerer.Ask(ctx, backend.Question{
		Call: backend.ToolCall{ToolCallUpdate: sdk.ToolCallUpdate{ToolCallId: s.ID,
			Title: sdk.Ptr(s.title), Kind: sdk.Ptr(sdk.ToolKindOther)}, Content: content},
		Once: allow, Reject: reject,
	})
	if errors.Is(err, backend.ErrRejected) {
		return errRejected
	}
	return err
}

// outcome describes the outcome of a request for the log.
func outcome(ctx context.Context, err error) string {
	switch {
	case err == nil:
		return "answered"
	case errors.Is(err, errRejected):
		return "rejected"
	case ctx.Err() != nil || errors.Is(err, backend.ErrCancelled):
		return "cancelled"
	default:
		return "failed"
	}
}

func (s *sampling) name() string { return text.QuotedName(s.server.Name) }

// describeRequest returns everything that the model would be sent, as a person should see it.
func (s *sampling) describeRequest() []any {
	r := s.request
	intro := fmt.Sprintf("MCP server %s wants an answer of up to %s from the model %s. "+
		"If you allow it, the model is sent what follows. "+
		"You see the answer before the server gets it.",
		s.name(), text.Count(r.MaxTokens, "token", "tokens"), text.Name(r.Model))
	if s.include == "thisServer" || s.include == "allServers" {
		intro += " The server asks for parts of this conversation to be added. " +
			"You are asked about that next."
	}
	if r.Temperature != nil {
		temperature := strconv.FormatFloat(*r.Temperature, 'g', -1, 64)
		intro += " The temperature is " + temperature + "."
	}
	if len(r.Stop) > 0 {
		intro += " The answer ends before " + text.JoinFunc(r.Stop, " or ",
			func(stop string) string { return text.Code(text.Quote(stop)) }) + "."
	}
	if r.System != "" {
		intro += "\n\nSystem prompt:\n\n" + quotation(r.System)
	}
	content := backend.TextContent(intro)
	for _, m := range r.Messages {
		role := "As the user:"
		if m.Role == "assistant" {
			role = "As the model:"
		}
		for _, block := range m.Content {
			if block.Text != nil {
				content = append(content,
					backend.TextContent(role+"\n\n"+quotation(block.Text.Text))...)
			} else {
				data := block.Image.Data // and a text for clients that do not show images
				size := base64.StdEncoding.DecodedLen(len(data)) - strings.Count(data, "=")
				image := fmt.Sprintf("%s an image (%s, %s)", role, block.Image.MimeType,
					text.Size(size))
				content = append(content, backend.TextContent(image)[0], sdk.ToolContent(block))
			}
		}
	}
	return content
}

// describeAnswer returns the answer for a person.
func (s *sampling) describeAnswer(r backend.SampleResult) []any {
	return backend.TextContent(fmt.Sprintf("The model %s has answered. "+
		"If you allow it, MCP server %s gets this answer:\n\n%s",
		text.Name(r.Model), s.name(), quotation(r.Text)))
}

// quotation returns foreign text as a block that the text itself cannot end.
func quotation(s string) string { return strings.TrimSuffix(text.Block("", text.Plain(s)), "\n") }
