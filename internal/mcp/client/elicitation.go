package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/acp/backend"
	mcproots "github.com/acp-agent/acp-agent/internal/mcp/roots"
	"github.com/acp-agent/acp-agent/internal/protocol"
	"github.com/acp-agent/acp-agent/internal/text"
)

// The ways in which a server can ask the user.
const (
	formMode = "form"
	urlMode  = "url"
)

const (
	maxQuestion = 4 << 10  // bytes of a question that are shown
	maxForm     = 64 << 10 // bytes of the schema of a form, and of a URL
)

// offerElicitation sets the options of a client whose server may ask the user in the modes that the
// session's client offers.
func (c *connection) offerElicitation(o *mcproots.Options) {
	modes := c.server.set.options.Elicitation
	if len(modes) == 0 {
		return
	}
	o.Elicitation = &mcp.ElicitationCapabilities{}
	if slices.Contains(modes, formMode) {
		o.Elicitation.Form = &mcp.FormElicitationCapabilities{}
	}
	if slices.Contains(modes, urlMode) {
		o.Elicitation.URL = &mcp.URLElicitationCapabilities{}
	}
	o.SDK.ElicitationHandler = func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return c.elicit(ctx, r.Params)
	}
	o.SDK.ElicitationCompleteHandler = func(ctx context.Context, r *mcp.ElicitationCompleteNotificationRequest) {
		if r.Params != nil {
			c.server.elicitationComplete(ctx, r.Params.ElicitationID)
		}
	}
}

// elicit asks the user what the server wants to know, without a limit of time.
func (c *connection) elicit(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	defer c.calls.pause()()
	return c.server.elicit(ctx, p)
}

// elicit asks the user what the server wants to know, one question of the server at a time. In a
// mode that the session's client does not offer, the question is declined.
func (s *server) elicit(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	mode := p.Mode
	switch {
	case mode == "" && (p.URL != "" || p.ElicitationID != ""):
		mode = urlMode
	case mode == "":
		mode = formMode
	}
	if !slices.Contains(s.set.options.Elicitation, mode) {
		s.log.Info("declined a question of an MCP server in a way that the client does not offer", "mode", text.Truncate(mode, 20))
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
	params := map[string]any{
		"mode":    mode,
		"message": fmt.Sprintf("MCP server %s asks: %s", quotedName(s.config.Name), text.Plain(text.Truncate(p.Message, maxQuestion))),
	}
	if mode == formMode {
		schema, err := json.Marshal(p.RequestedSchema)
		if err != nil || len(schema) > maxForm {
			return nil, rpcError(jsonrpc.CodeInvalidParams, "requestedSchema has more than %s", text.Size(maxForm))
		}
		params["requestedSchema"] = backend.Raw(schema)
	} else {
		u, err := url.Parse(p.URL)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || len(p.URL) > maxForm {
			return nil, rpcError(jsonrpc.CodeInvalidParams, "url is not an http or https URL")
		}
		params["url"], params["elicitationId"] = p.URL, s.elicitationID(p.ElicitationID)
	}
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	host, err := s.set.openHost()
	if err != nil {
		return nil, err
	}
	answer, err := host.Call(ctx, protocol.ElicitationCreate, backend.Encode(params))()
	if err != nil {
		return nil, fmt.Errorf("cannot ask the user: %w", err)
	}
	var result mcp.ElicitResult
	if err := json.Unmarshal(answer, &result); err != nil {
		return nil, errors.New("cannot read the client's answer to a question of an MCP server")
	}
	switch result.Action {
	case "accept":
		return &mcp.ElicitResult{Action: "accept", Content: result.Content}, nil
	case "decline":
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
	return &mcp.ElicitResult{Action: "cancel"}, nil
}

// elicitationID returns the id of a question for the client, which has those of other servers too.
func (s *server) elicitationID(id string) string { return s.prefix + "." + text.Truncate(id, 200) }

// elicitationComplete tells the client that the user has finished at a URL.
func (s *server) elicitationComplete(ctx context.Context, id string) {
	host, err := s.set.openHost()
	if err == nil {
		err = host.Notify(ctx, protocol.ElicitationComplete, backend.Encode(map[string]any{"elicitationId": s.elicitationID(id)}))
	}
	if err != nil {
		s.log.Debug("could not tell the client that a question of an MCP server was answered", "error", err)
	}
}

// visitURLs shows the user the URLs that a server wants them to visit before it answers a call that
// has failed with err. It returns err, or what to do if there are any.
func (c *connection) visitURLs(ctx context.Context, err error) error {
	var data struct {
		Elicitations []*mcp.ElicitParams `json:"elicitations"`
	}
	refusal, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || refusal.Code != mcp.CodeURLElicitationRequired || json.Unmarshal(refusal.Data, &data) != nil {
		return err
	}
	const most = 5
	for i, p := range data.Elicitations {
		if p == nil || i == most {
			break
		}
		answer, elicitErr := c.elicit(ctx, p)
		if elicitErr != nil || answer.Action != "accept" {
			return err
		}
	}
	return fmt.Errorf("%w: call it again after you have finished in the browser", err)
}
