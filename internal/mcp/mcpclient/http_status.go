package mcpclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	mcpjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
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

// checkSession returns a [*lostSessionError], and reports it, if the server no longer knows the
// connection's session. Servers should answer 404 then, but many answer 400. An error in the body
// is about the session too, unless it is about an unknown method.
func (t *httpTransport) checkSession(req *http.Request, res *http.Response, m outgoing) error {
	known := req.Header.Get(sessionHeader) != ""
	if res.StatusCode < http.StatusBadRequest || !known || m.isHandshake() {
		return nil
	}
	says, code := describeRefusal(peekBody(res))
	switch res.StatusCode {
	case http.StatusNotFound:
		if code == mcpjsonrpc.CodeMethodNotFound {
			return nil
		}
	case http.StatusGone:
	case http.StatusBadRequest:
		if !aboutSession().MatchString(says) {
			return nil
		}
	default:
		return nil
	}
	err := &lostSessionError{says}
	t.lost(err)
	return err
}

// aboutSession matches what servers say of a session that they do not know.
var aboutSession = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\bsession\b|session-?_?id|not (been )?initialized`)
})

// describeRefusal returns what the body of a refusal says, in one line, and the code if it is an
// error of JSON-RPC.
func describeRefusal(body []byte) (says string, code int64) {
	var refusal struct {
		Error struct {
			Code    int64
			Message string
		}
	}
	if json.Unmarshal(body, &refusal) == nil && refusal.Error.Message != "" {
		return text.Line(refusal.Error.Message, maxFirstLine), refusal.Error.Code
	}
	return firstLine(body), 0
}

// peekBody returns the beginning of a response's body, which can be read again.
func peekBody(res *http.Response) []byte {
	beginning, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal)) // as much as there is
	again := func(rest io.ReadCloser) io.ReadCloser {
		return readCloser{io.MultiReader(bytes.NewReader(beginning), rest), rest}
	}
	if body, ok := res.Body.(*responseBody); ok { // it keeps the server's address
		body.ReadCloser = again(body.ReadCloser)
	} else {
		res.Body = again(res.Body)
	}
	return beginning
}

// checkStatus returns a [*statusError] for a response that is not an MCP response. It accepts
// errors of JSON-RPC.
func (t *httpTransport) checkStatus(req *http.Request, res *http.Response) error {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	page := kind == "text/html" && res.StatusCode == http.StatusOK
	if res.StatusCode < http.StatusBadRequest && !page {
		return nil
	}
	if m, err := decodeMessage(peekBody(res), nil); err == nil {
		if answer, ok := m.(*mcpjsonrpc.Response); ok && answer.Error != nil {
			return nil
		}
	}
	return t.refusal(req, res)
}

// refusal returns the error for a response that is not an MCP response.
func (t *httpTransport) refusal(req *http.Request, res *http.Response) error {
	page := res.StatusCode < http.StatusBadRequest
	e := &statusError{code: res.StatusCode}
	if page {
		e.code = http.StatusNotAcceptable
	}
	e.text = fmt.Sprintf("%s answered %s", secret.HideURL(req.URL.String()),
		cmp.Or(strings.TrimSpace(res.Status), fmt.Sprint(res.StatusCode)))
	if page {
		e.text += " with a web page instead of MCP"
	}
	if says, _ := describeRefusal(peekBody(res)); says != "" {
		e.text += ": " + text.Quote(says)
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
