package client

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	mcpjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/secret"
	"github.com/acp-agent/acp-agent/internal/text"
)

// statusError reports an HTTP response that is not an MCP response.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return e.text }

// isPermanent reports whether another request would only get the same response.
func (e *statusError) isPermanent() bool {
	return e.code < 500 && e.code != http.StatusTooManyRequests
}

const (
	maxRefusal   = 64 << 10 // bytes read of the body of a response that is not an MCP response
	maxFirstLine = 300      // bytes shown of it
)

// checkStatus returns a [*statusError] for a response that is not an MCP response. It accepts error
// responses that the MCP SDK understands: a JSON-RPC error, the end of a session, and the absence
// of an event stream.
func (t *httpTransport) checkStatus(req *http.Request, res *http.Response) error {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	page := kind == "text/html" && res.StatusCode == http.StatusOK
	switch {
	case res.StatusCode < http.StatusBadRequest && !page,
		req.Method != http.MethodPost && t.kind != acpmcp.SSE,
		res.StatusCode == http.StatusNotFound && req.Header.Get("Mcp-Session-Id") != "":
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal)) // as much as there is
	if m, err := mcpjsonrpc.DecodeMessage(body); err == nil {
		if answer, ok := m.(*mcpjsonrpc.Response); ok && answer.Error != nil {
			res.Body = readCloser{io.MultiReader(bytes.NewReader(body), res.Body), res.Body}
			return nil
		}
	}
	e := &statusError{code: res.StatusCode}
	if page {
		e.code = http.StatusNotAcceptable
	}
	e.text = fmt.Sprintf("%s answered %s", secret.HideURL(req.URL.String()),
		cmp.Or(strings.TrimSpace(res.Status), fmt.Sprint(res.StatusCode)))
	if page {
		e.text += " with a web page instead of MCP"
	}
	if line := firstLine(body); line != "" {
		e.text += ": " + text.Quote(line)
	}
	switch {
	case res.StatusCode == http.StatusUnauthorized:
		e.text += "; " + t.explainUnauthorized(req, res)
	case e.isPermanent():
		e.text += "; check the URL and the headers of this server " +
			"in the configuration of your editor"
	}
	return e
}

// readCloser reads and closes different things.
type readCloser struct {
	io.Reader
	io.Closer
}

// firstLine returns the first line of a body that is not blank.
func firstLine(body []byte) string {
	for line := range bytes.Lines(body) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return text.Truncate(strings.ToValidUTF8(string(line), "�"), maxFirstLine)
		}
	}
	return ""
}

// explainUnauthorized explains what a server needs that has answered with status 401.
func (t *httpTransport) explainUnauthorized(req *http.Request, res *http.Response) string {
	const where = "to this server in the configuration of your editor"
	explanation := "add the header that it needs, such as Authorization, " + where
	if req.Header.Get("Authorization") != "" {
		explanation = "it does not accept the configured Authorization header, " +
			"which may have expired"
	}
	for _, challenge := range bearerChallenges(res) {
		address := challenge.Params["resource_metadata"]
		if address == "" {
			continue
		}
		token := "it needs an OAuth access token"
		if m, err := t.protectedResource(req.Context(), address); err == nil {
			token += " for the resource " + secret.HideURL(m.Resource)
			if len(m.AuthorizationServers) > 0 {
				from := strings.Join(m.AuthorizationServers, " or ")
				token += " from " + text.Line(from, maxFirstLine)
			}
			scope := cmp.Or(challenge.Params["scope"], strings.Join(m.ScopesSupported, " "))
			if scope != "" {
				token += " with the scope " + text.Quote(text.Line(scope, maxFirstLine))
			}
		}
		return token + ": get one, and add the header Authorization: Bearer TOKEN " + where
	}
	return explanation
}

// protectedResource fetches the OAuth metadata at address about this server, from this server only
// and without our headers.
func (t *httpTransport) protectedResource(ctx context.Context, address string) (
	*oauthex.ProtectedResourceMetadata, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if err := t.checkOrigin(u); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, t.limits.ProbeTimeout)
	defer cancel()
	noRedirects := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client := &http.Client{Transport: t.base, CheckRedirect: noRedirects}
	return oauthex.GetProtectedResourceMetadata(ctx, address, t.origin.String(), client)
}
