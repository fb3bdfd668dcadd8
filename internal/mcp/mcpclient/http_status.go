package mcpclient

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	mcpjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
)

// isFinalStatus reports whether another request would only get the same response.
func isFinalStatus(code int) bool { return code < 500 && code != http.StatusTooManyRequests }

// retryAfter returns when a server wants to be asked again that has refused a request, or 0.
func retryAfter(err error) time.Duration {
	if refusal, ok := errors.AsType[*transportError](err); ok {
		return refusal.later
	}
	return 0
}

// pauseOf returns the time in the header Retry-After of a response whose status is about a time, or
// 0.
func pauseOf(res *http.Response) time.Duration {
	given := res.Header.Get("Retry-After")
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
	default:
		return 0
	}
	if seconds, err := strconv.ParseFloat(given, 64); err == nil && seconds > 0 {
		return time.Duration(min(seconds, maxPause.Seconds()) * float64(time.Second))
	}
	if at, err := http.ParseTime(given); err == nil {
		return min(max(time.Until(at), 0), maxPause)
	}
	return 0
}

// maxPause is the longest pause that a server can ask for.
const maxPause = 24 * time.Hour

const (
	maxRefusal   = 64 << 10 // bytes read of the body of a response that is not an MCP response
	maxFirstLine = 300      // bytes shown of it
)

// checkSession returns an error, and reports it, if the server no longer knows the connection's
// session. Servers should answer 404 then, but many answer 400. An error in the body is about the
// session too, unless it is about an unknown method.
func (t *httpTransport) checkSession(res *http.Response, m *outgoing) error {
	known := res.Request.Header.Get(sessionHeader) != ""
	if res.StatusCode < http.StatusBadRequest || !known || m.isHandshake() {
		return nil
	}
	says, code, _ := describeRefusal(res)
	switch status := res.StatusCode; {
	case status == http.StatusNotFound && code != mcpjsonrpc.CodeMethodNotFound:
	case status == http.StatusGone:
	case status == http.StatusBadRequest && aboutSession().MatchString(says):
	default:
		return nil
	}
	err := &transportError{fault: lostSession,
		text: "it no longer knows the session of the connection"}
	if says != "" {
		err.text += ": " + text.Quote(says)
	}
	t.lost(err)
	return err
}

// aboutSession matches what servers say of a session that they do not know.
var aboutSession = text.Pattern(`(?i)\bsession\b|session-?_?id|not (been )?initialized`)

// describeRefusal returns what the body of a refusal says, in one line, and if it is an error of
// JSON-RPC its code, and whether it answers a request. The body can be read again.
func describeRefusal(res *http.Response) (says string, code int64, answers bool) {
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal)) // as much as there is
	res.Body = readCloser{io.MultiReader(bytes.NewReader(body), res.Body), res.Body}
	var refusal struct {
		ID    any
		Error struct {
			Code    int64
			Message string
		}
	}
	if json.Unmarshal(body, &refusal) != nil || refusal.Error.Message == "" {
		return firstLine(body), 0, false
	}
	says, code = text.Line(refusal.Error.Message, maxFirstLine), refusal.Error.Code
	return says, code, code != 0 && refusal.ID != nil
}

// checkResponse returns an error for a response that does not belong to MCP.
func (t *httpTransport) checkResponse(res *http.Response, m *outgoing) error {
	if err := t.checkSession(res, m); err != nil {
		return err
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	page := kind == "text/html" && res.StatusCode == http.StatusOK
	if res.StatusCode < http.StatusBadRequest && !page {
		return nil
	}
	if _, _, answers := describeRefusal(res); answers && m.isCall() && pauseOf(res) == 0 {
		return nil
	}
	return refusal(res)
}

// refusal returns the error for a response that is not an MCP response.
func refusal(res *http.Response) *transportError {
	e := &transportError{fault: refused, code: res.StatusCode, later: pauseOf(res)}
	e.text = fmt.Sprintf("%s answered %s", secret.HideURL(res.Request.URL.String()),
		cmp.Or(strings.TrimSpace(res.Status), fmt.Sprint(res.StatusCode)))
	if says, _, _ := describeRefusal(res); says != "" {
		e.text += ": " + text.Quote(says)
	}
	switch {
	case res.StatusCode == http.StatusUnauthorized:
		e.text += "; " + explainUnauthorized(res)
	case isFinalStatus(e.code):
		e.text += "; check the URL and the headers of this server " +
			"in the configuration of your editor"
	case e.later > 0:
		e.text += fmt.Sprintf("; it asks for the next try in %v", e.later.Round(time.Second))
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
func explainUnauthorized(res *http.Response) string {
	const where = " to this server in the configuration of your editor"
	switch {
	case res.Request.Header.Get("Authorization") != "":
		return "it does not accept the configured Authorization header, which may have expired"
	case len(bearerChallenges(res)) > 0:
		return "it needs an OAuth access token: get one, and add the header Authorization: " +
			"Bearer TOKEN" + where
	}
	return "add the header that it needs, such as Authorization," + where
}
