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
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	mcpjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
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
// session. Servers should answer 404 then, but many answer 400. An error in the body
// is about the session too, unless it is about an unknown method.
func (t *httpTransport) checkSession(res *http.Response, m *outgoing) error {
	known := res.Request.Header.Get(sessionHeader) != ""
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
	err := &transportError{fault: lostSession,
		text: "it no longer knows the session of the connection"}
	if says != "" {
		err.text += ": " + text.Quote(says)
	}
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
	res.Body = readCloser{io.MultiReader(bytes.NewReader(beginning), res.Body), res.Body}
	return beginning
}

// checkResponse returns an error for a response that does not belong to MCP.
func (t *httpTransport) checkResponse(res *http.Response, m *outgoing) error {
	if err := t.checkSession(res, m); err != nil {
		return err
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	page := kind == "text/html" && res.StatusCode == http.StatusOK
	if res.StatusCode < http.StatusBadRequest && !page || m.isCall() && isAnswer(res) {
		return nil
	}
	return refusal(res)
}

// isAnswer reports whether a refusal is an error of JSON-RPC, which answers its request.
func isAnswer(res *http.Response) bool {
	body := peekBody(res)
	_, code := describeRefusal(body)
	id := strictjson.Find(body, "id")
	return code != 0 && id != nil && string(id) != "null" && pauseOf(res) == 0
}

// refusal returns the error for a response that is not an MCP response.
func refusal(res *http.Response) *transportError {
	e := &transportError{fault: refused, code: res.StatusCode, later: pauseOf(res)}
	e.text = fmt.Sprintf("%s answered %s", secret.HideURL(res.Request.URL.String()),
		cmp.Or(strings.TrimSpace(res.Status), fmt.Sprint(res.StatusCode)))
	if says, _ := describeRefusal(peekBody(res)); says != "" {
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
		return "it needs an OAuth access token: get one, and add the header Authorization: Bearer TOKEN" +
			where
	}
	return "add the header that it needs, such as Authorization," + where
}
