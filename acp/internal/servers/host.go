package servers

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// answerer answers the servers of a set for its session. It implements [mcpclient.Host].
type answerer struct {
	backend.Host
	model backend.Sampler // nil if there is none
	log   *slog.Logger
}

// Show implements [mcpclient.Host].
func (a *answerer) Show(ctx context.Context, message string) error {
	return a.Update(ctx, backend.Warning(backend.Note(message+"\n\n")))
}

// Elicit implements [mcpclient.Host]. It quotes the server's words, so that they cannot pass for
// ours.
func (a *answerer) Elicit(ctx context.Context, s mcpclient.ServerID, p *mcp.ElicitParams) (
	*mcp.ElicitResult, error) {
	params := map[string]any{"mode": p.Mode}
	asks := "asks"
	if p.Mode == "form" {
		asks += " you to fill in a form, whose labels are its own words"
		params["requestedSchema"] = withoutHeading(p.RequestedSchema)
	} else {
		page, err := url.Parse(p.URL)
		if err != nil {
			return nil, err
		}
		asks += " you to open a page of " + describeSite(page.Host)
		params["url"], params["elicitationId"] = p.URL, elicitationID(s, p.ElicitationID)
	}
	params["message"] = fmt.Sprintf("MCP server %s %s. It says:\n\n%s",
		text.QuotedName(s.Name), asks, quotation(p.Message))
	answer, err := a.Call(ctx, protocol.ElicitationCreate, backend.Encode(params))()
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

// withoutHeading returns the schema of a form without its own title and description: MCP forms have
// neither, and a client might show them as ours.
func withoutHeading(schema any) any {
	form, ok := schema.(map[string]any)
	if !ok {
		return schema
	}
	form = maps.Clone(form)
	delete(form, "title")
	delete(form, "description")
	return form
}

// describeSite returns the address of a site, with a note if browsers show its name in other
// letters.
func describeSite(address string) string {
	for label := range strings.SplitSeq(strings.ToLower(address), ".") {
		if strings.HasPrefix(label, "xn--") {
			return address + " (a browser may show this name in letters that look like others)"
		}
	}
	return address
}

// elicitationID returns a question's id for the client. It differs from the ids of other servers'
// questions.
func elicitationID(s mcpclient.ServerID, id string) string {
	return s.Prefix + "." + text.Truncate(id, 200)
}

// ElicitComplete implements [mcpclient.Host].
func (a *answerer) ElicitComplete(ctx context.Context, s mcpclient.ServerID, id string) error {
	return a.elicitComplete(ctx, elicitationID(s, id))
}

func (a *answerer) elicitComplete(ctx context.Context, id string) error {
	params := map[string]string{"elicitationId": id}
	return a.Notify(ctx, protocol.ElicitationComplete, backend.Encode(params))
}

// notifyTimeout is how long a client may take to read a notification.
const notifyTimeout = time.Second

// SignIn implements [mcpclient.Host]. The user is asked through the client if it takes URLs, and
// otherwise in the answer.
func (a *answerer) SignIn(
	ctx context.Context, s mcpclient.ServerID, page *url.URL, tokens string,
) error {
	message := fmt.Sprintf("MCP server %s asks you to sign in at %s; %s then issues the access "+
		"tokens for the server", text.Name(s.Name), describeSite(page.Host),
		describeSite(tokens))
	id := rand.Text()
	result, err := a.Call(ctx, protocol.ElicitationCreate, backend.Encode(map[string]string{
		"mode": "url", "elicitationId": id, "url": page.String(), "message": message + ".",
	}))()
	switch {
	case ctx.Err() != nil: // they were faster than the client, which may still show the page
	case err != nil:
		_ = a.Show(ctx, message+": "+mcpclient.OpenPage(page.String())+".")
		return nil // status says it too
	case strictjson.FindText(result, "action") != "accept":
		return errors.New("the user declined")
	}
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), notifyTimeout)
	defer cancel()
	_ = a.elicitComplete(ctx, id)
	return nil
}
