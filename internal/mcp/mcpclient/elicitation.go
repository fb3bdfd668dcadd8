package mcpclient

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
	"github.com/acp-agent/acp-agent/internal/text"
)

// The ways in which a server can ask the user.
const (
	formMode = "form"
	urlMode  = "url"
)

// maxForm is the most bytes of the schema of a form, and of a URL.
const maxForm = 64 << 10

// offerElicitation sets the options of a client whose server may ask the user in the offered modes.
func (c *connection) offerElicitation(o *mcp.ClientOptions) {
	modes := c.server.set.options.Elicitation
	if len(modes) == 0 {
		return
	}
	o.Capabilities.Elicitation = &mcp.ElicitationCapabilities{}
	if slices.Contains(modes, formMode) {
		o.Capabilities.Elicitation.Form = &mcp.FormElicitationCapabilities{}
	}
	if slices.Contains(modes, urlMode) {
		o.Capabilities.Elicitation.URL = &mcp.URLElicitationCapabilities{}
	}
	o.ElicitationHandler = func(ctx context.Context, r *mcp.ElicitRequest) (
		*mcp.ElicitResult, error) {
		return c.elicit(ctx, r.Params)
	}
	o.ElicitationCompleteHandler = c.server.elicitComplete
}

// elicit asks the user a question of the server, one at a time and without a time limit. It
// declines a question in a mode that was not offered.
func (c *connection) elicit(ctx context.Context, params *mcp.ElicitParams) (
	*mcp.ElicitResult, error) {
	defer c.calls.pause()()
	s, p := c.server, *params
	if p.Mode == "" && (p.URL != "" || p.ElicitationID != "") {
		p.Mode = urlMode
	}
	p.Mode = cmp.Or(p.Mode, formMode)
	if !slices.Contains(s.set.options.Elicitation, p.Mode) {
		s.log.Info("declined a question of an MCP server that the client cannot show",
			"mode", text.Truncate(p.Mode, 20))
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
	if err := checkElicit(&p); err != nil {
		return nil, err
	}
	select {
	case s.questions <- struct{}{}:
		defer func() { <-s.questions }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	host, err := s.set.openHost()
	if err != nil {
		return nil, err
	}
	answer, err := host.Elicit(ctx, s.id(), &p)
	if err == nil && p.Mode == formMode {
		err = checkAnswer(p.RequestedSchema, answer)
	}
	if err != nil {
		return nil, err
	}
	return answer, nil
}

const (
	// maxQuestion is the most bytes of a question.
	maxQuestion = 4 << 10
	// maxLabel is the most bytes of a one-line text in a form.
	maxLabel = 200
)

// checkElicit returns an error if showing the server's question could mislead the user.
func checkElicit(p *mcp.ElicitParams) error {
	if len(p.Message) > maxQuestion {
		return invalid("message has more than %s", text.Size(maxQuestion))
	}
	if r, hidden := text.FirstHidden(p.Message); hidden {
		return invalid("message contains %U, which the user cannot see", r)
	}
	if p.Mode == formMode {
		return checkForm(p.RequestedSchema)
	}
	if _, err := parsePage(p.URL); err != nil {
		return invalid("url is not an http or https URL as the "+
			"user can be shown it: %v", err)
	}
	return nil
}

// checkForm checks the schema of a form.
func checkForm(schema any) error {
	encoded, err := json.Marshal(schema)
	if err != nil || len(encoded) > maxForm {
		return invalid("requestedSchema has more than %s", text.Size(maxForm))
	}
	var form map[string]any
	if err := json.Unmarshal(encoded, &form); err != nil {
		return invalid("requestedSchema is not an object")
	}
	return checkLabels("requestedSchema", form)
}

// checkLabels checks all texts in a value of a schema, which is called name. Only descriptions and
// defaults may have several lines.
func checkLabels(name string, value any) error {
	switch v := value.(type) {
	case map[string]any:
		for member, value := range v {
			if err := checkLabels("name", member); err != nil {
				return err
			}
			if err := checkLabels(member, value); err != nil {
				return err
			}
		}
	case []any:
		for _, value := range v {
			if err := checkLabels(name, value); err != nil {
				return err
			}
		}
	case string:
		if r, hidden := text.FirstHidden(v); hidden {
			return invalid("requestedSchema contains %U, which the user cannot see", r)
		}
		long := len(v) > maxLabel || strings.ContainsAny(v, "\r\n\t")
		if long && name != "description" && name != "default" {
			return invalid("a %s in requestedSchema has more than "+
				"one line of %s", name, text.Size(maxLabel))
		}
	}
	return nil
}

// elicitComplete says that the user has finished at a URL.
func (s *server) elicitComplete(
	ctx context.Context, r *mcp.ElicitationCompleteNotificationRequest,
) {
	host, err := s.set.openHost()
	if err == nil && r.Params != nil {
		err = host.ElicitComplete(ctx, s.id(), r.Params.ElicitationID)
	}
	if err != nil {
		s.log.Debug("cannot tell the client that a question of an MCP server was answered",
			"error", err)
	}
}

// visitURLs handles an error with which a server asks that the user visits URLs before it answers a
// call. It shows the user the URLs, and returns an error that says what to do then. It returns any
// other err unchanged.
func (c *connection) visitURLs(ctx context.Context, err error) error {
	var data struct {
		Elicitations []*mcp.ElicitParams `json:"elicitations"`
	}
	refusal, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || refusal.Code != mcp.CodeURLElicitationRequired ||
		json.Unmarshal(refusal.Data, &data) != nil {
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

// maxPage is the most bytes of the address of a page.
const maxPage = 8 << 10

// parsePage parses the address of a page that a server wants the user to open. It rejects an
// address that could mislead the user: it must be http or https, in the characters that RFC 3986
// allows, with a plain host and without a user name, which could be mistaken for the host.
func parsePage(address string) (*url.URL, error) {
	if len(address) > maxPage {
		return nil, errors.New("it is too long")
	}
	odd := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("<>\"`\\", r) }
	if strings.ContainsFunc(address, odd) {
		return nil, errors.New("it has characters that must be written as %XX, or in its host as " +
			"xn--")
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, errors.New("it cannot be parsed")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("its scheme is another")
	case u.User != nil:
		return nil, errors.New("it has a user name")
	}
	// Its port does not matter here.
	if _, err := hosts.ParseTarget(net.JoinHostPort(u.Hostname(), "80"), 0); err != nil {
		return nil, errors.New("its host is not a plain name or IP address")
	}
	return u, nil
}

// resolveSchema returns a schema, and what to validate with. Both are nil if that is not possible,
// for example because the schema refers to another document: then nothing can be said of a value.
func resolveSchema(schema any) (*jsonschema.Schema, *jsonschema.Resolved) {
	var s jsonschema.Schema
	if raw := encode(schema); string(raw) == "null" || json.Unmarshal(raw, &s) != nil {
		return nil, nil
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, nil
	}
	return &s, resolved
}

// checkAnswer fills the defaults of a form into the answer to it. It returns an error for the
// server if the answer does not fit the form's schema. The error names the fields, not what the
// user typed.
func checkAnswer(schema any, answer *mcp.ElicitResult) error {
	described, form := resolveSchema(schema)
	if answer.Action != "accept" || form == nil {
		return nil
	}
	content := map[string]any{}
	maps.Copy(content, answer.Content)
	_ = form.ApplyDefaults(&content) // fails only for defaults that are no JSON
	if form.Validate(content) == nil {
		answer.Content = content
		return nil
	}
	var wrong []string
	for name, property := range described.Properties {
		value, given := answer.Content[name]
		switch _, field := resolveSchema(property); {
		case !given && slices.Contains(described.Required, name),
			given && field != nil && field.Validate(value) != nil:
			wrong = append(wrong, text.Quote(text.Truncate(name, maxLabel)))
		}
	}
	slices.Sort(wrong)
	if len(wrong) == 0 {
		return invalid("the user's answer does not fit requestedSchema")
	}
	return invalid("the user's answer does not fit "+
		"requestedSchema: a value is missing or not allowed for %s", strings.Join(wrong, ", "))
}
