package mcpclient

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	mcpjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/internal/text/secret"
)

// isFinalStatus reports whether another request would only get the same response.
func isFinalStatus(code int) bool { return code < 500 && code != http.StatusTooManyRequests }

// pauseOf returns the time in the header Retry-After of a response whose status is about a time, or
// 0.
func pauseOf(res *http.Response) time.Duration {
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return min(pause.Until(res.Header.Get("Retry-After"), time.Now()), maxPause)
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
func (t *httpTransport) checkSession(res *http.Response, m *outgoing, said complaint) error {
	known := res.Request.Header.Get(sessionHeader) != ""
	if res.StatusCode < http.StatusBadRequest || !known || m.isHandshake() {
		return nil
	}
	switch status := res.StatusCode; {
	case status == http.StatusNotFound && said.code != mcpjsonrpc.CodeMethodNotFound:
	case status == http.StatusGone:
	case status == http.StatusBadRequest && aboutSession().MatchString(said.text):
	default:
		return nil
	}
	err := &transportError{fault: lostSession,
		text: "it no longer knows the session of the connection"}
	if said.text != "" {
		err.text += ": " + text.Quote(said.text)
	}
	t.lost(err)
	return err
}

// aboutSession matches what servers say of a session that they do not know.
var aboutSession = text.Pattern(`(?i)\bsession\b|session-?_?id|not (been )?initialized`)

// complaint holds the words in the body of a refusal.
type complaint struct {
	text    string // in one line, "" if there is none
	code    int64  // of an error of JSON-RPC
	answers bool   // it is the answer to a request
}

// readComplaint reads the body of a refusal. The body can be read again.
func readComplaint(res *http.Response) complaint {
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
		return complaint{text: firstLine(body)}
	}
	code := refusal.Error.Code
	return complaint{text.Line(refusal.Error.Message, maxFirstLine), code,
		code != 0 && refusal.ID != nil}
}

// checkResponse returns an error for a response that does not belong to MCP.
func (t *httpTransport) checkResponse(res *http.Response, m *outgoing) error {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	page := kind == "text/html" && res.StatusCode == http.StatusOK
	if res.StatusCode < http.StatusBadRequest && !page {
		return nil
	}
	said := readComplaint(res)
	if err := t.checkSession(res, m, said); err != nil {
		return err
	}
	if said.answers && m.isCall() && pauseOf(res) == 0 {
		return nil
	}
	return refusal(res, said)
}

// refusal returns the error for a response that is not an MCP response.
func refusal(res *http.Response, said complaint) *transportError {
	e := &transportError{fault: refused, code: res.StatusCode, later: pauseOf(res)}
	e.text = fmt.Sprintf("%s answered %s", secret.HideURL(res.Request.URL.String()),
		cmp.Or(strings.TrimSpace(res.Status), fmt.Sprint(res.StatusCode)))
	if said.text != "" {
		e.text += ": " + text.Quote(said.text)
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
