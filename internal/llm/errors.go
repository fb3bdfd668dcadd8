package llm

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
	"github.com/acp-agent/acp-agent/internal/wire/sse"
)

var (
	// errCut means that the connection was lost.
	errCut = &Error{Kind: Unreachable, Message: "the connection to the model's server was lost " +
		"before the answer was complete"}
	// errSilent means that the server has sent no part of an answer for too long.
	errSilent = &Error{Kind: Unreachable, Message: "the model's server has stopped sending"}
	// errIdle means that the server sends bytes, but no part of an answer.
	errIdle = tooMuch("the server sent " + text.Size(maxIdle) + " without a part of an answer").why
	// errEmpty means that there was no answer in the response.
	errEmpty = &Error{Kind: Malformed, Message: "the model's server sent an empty answer; check " +
		"that its log shows no error and that the model's baseURL is right"}
)

// malformed returns the failure of a response that says this in place of an answer.
func malformed(said string) *failure {
	message := "the model's server sent something that is not an answer: " + said
	return &failure{why: &Error{Kind: Malformed, Message: message}}
}

// lost returns the failure of a response that could not be read to its end.
func lost(err error) *failure {
	if why, ok := err.(*Error); ok { // errSilent or errIdle
		return &failure{why: why}
	}
	if err == sse.ErrTooLong {
		return malformed(err.Error())
	}
	return &failure{why: errCut, retry: true}
}

// reason returns why there was no response.
func reason(err error) string {
	var op *net.OpError
	var errno syscall.Errno
	if errors.As(err, &op) && op.Op == "dial" && errors.As(op, &errno) {
		return errno.Error() + "; check that it is running"
	}
	if unknown, ok := errors.AsType[*net.DNSError](err); ok && unknown.IsNotFound {
		return op.Error() + "; check the model's baseURL"
	}
	if errors.As(err, new(x509.UnknownAuthorityError)) {
		advice := "set SSL_CERT_FILE to a file with the certificate of that authority"
		if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
			advice = "add the authority to those that the system trusts"
		}
		return "its certificate is from an authority that is not known here; " + advice
	}
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	said := err.Error()
	switch {
	case err == io.EOF:
		return "it closed the connection"
	case errors.As(err, new(tls.RecordHeaderError)),
		strings.Contains(said, "HTTP response to HTTPS"):
		return "it does not speak https; check whether the model's baseURL must begin with http://"
	case strings.Contains(said, `malformed HTTP response "\x15\x03`):
		return "it speaks https; the model's baseURL must begin with https://"
	case strings.Contains(said, "malformed HTTP"):
		return "what answers there is not an HTTP server; check the port in the model's baseURL"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		errors.Is(err, net.ErrClosed):
		return "it closed the connection before it answered; check its log, and the port and the " +
			"beginning (http:// or https://) of the model's baseURL"
	}
	return said
}

// isTemporary reports whether a request that was not answered may succeed when it is sent again.
func isTemporary(err error) bool {
	if unknown, ok := errors.AsType[*net.DNSError](err); ok {
		return !unknown.IsNotFound
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Op == "dial" || op.Op == "read" || op.Op == "write"
	}
	slow, ok := errors.AsType[net.Error](err)
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || ok && slow.Timeout()
}

// describe returns the failure in the body of a response with this status, or in an event of a
// stream, with status 0. All formats put errors into JSON in the same places. Its message is as
// long as the server's.
func describe(status int, body []byte) *failure {
	var decoded any
	body = body[:min(len(body), errorSize)]
	_ = json.Unmarshal(body, &decoded)
	var said serverError
	said.find(decoded)
	message := said.message
	if message == "" {
		message = cmp.Or(http.StatusText(status), vocabulary().Statuses[status],
			"the server reports an error without a reason")
		if trimmed := bytes.TrimSpace(body); bytes.HasPrefix(trimmed, []byte("<")) {
			message += title(trimmed)
			said.message = message
		} else if line, _, _ := bytes.Cut(trimmed, []byte("\n")); len(line) > 0 && decoded == nil {
			message += ": " + string(line)
			said.message = message
		}
	}
	means := said.meaning(cmp.Or(status, said.status))
	return &failure{
		why: &Error{Kind: means.Kind, Status: status, Message: message}, means: means,
		retry: means.Kind == Overloaded || means.Kind == Slipped,
		after: askedDelay(body, time.Now()),
	}
}

// reported returns the failure in an event or a whole body of any format, or nil.
func reported(e sse.Event) *failure {
	var said struct {
		Type, Object         string
		Error, Code          complaint
		Detail, Message, Msg complaint // the first is FastAPI's
		ErrorMessage         complaint `json:"error_message"` // DeepInfra's
		Exception            complaint `json:"__type"`        // Amazon's
		Base                 struct {
			Status complaint `json:"status_code"`
		} `json:"base_resp"` // MiniMax'
		Response struct{ Error complaint }
		Choices  [1]*struct{ Error complaint }
	}
	first := bytes.TrimLeft(e.Data, "[ \t\r\n")               // Google's servers send errors in a list
	_ = json.NewDecoder(bytes.NewReader(first)).Decode(&said) // another type does not count
	c, named := said.Choices[0], said.Code || said.Exception
	failed := said.Error || said.ErrorMessage || said.Base.Status || said.Response.Error ||
		c != nil && c.Error || c == nil && (said.Detail || named && (said.Message || said.Msg))
	if failed || e.Name == "error" || said.Type == "error" || said.Object == "error" ||
		cmp.Or(said.Type, e.Name) == "response.failed" {
		return describe(0, e.Data)
	}
	return nil
}

// complaint tells the members of errors from those that come with each answer: null, 0 or
// "Success".
type complaint bool

// UnmarshalJSON implements [json.Unmarshaler].
func (c *complaint) UnmarshalJSON(raw []byte) error {
	value := any(true)
	if len(raw) <= errorSize {
		_ = json.Unmarshal(raw, &value)
	}
	*c = complaint(complains(value))
	return nil
}

// complains reports whether a value says that something is wrong.
func complains(value any) bool {
	switch v := value.(type) {
	case []any:
		return slices.ContainsFunc(v, complains)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), complains)
	}
	fine := []string{"<nil>", "false", "0", "200", "", "ok", "success"}
	return !slices.Contains(fine, strings.ToLower(fmt.Sprint(value)))
}

// serverError is an error in a server's words.
type serverError struct {
	message string
	codes   string // types and codes
	status  int
}

// find looks for the parts of an error in decoded JSON.
func (s *serverError) find(v any) {
	switch v := v.(type) {
	case string:
		var inner map[string]any // an error that DeepInfra passes on
		if json.Unmarshal([]byte(v), &inner) == nil {
			s.find(inner)
		}
		s.message = cmp.Or(s.message, v)
	case []any:
		if len(v) > 0 {
			s.find(v[0])
		}
	case map[string]any:
		for _, name := range []string{"type", "code", "error_type", "__type", "status_code"} {
			switch code := v[name].(type) {
			case string, float64:
				s.codes += fmt.Sprintf(" %s:%v ", name, code)
				number, _ := strconv.Atoi(fmt.Sprint(code)) // LiteLLM sends it as a string
				s.status = cmp.Or(s.status, number)
			}
		}
		for _, name := range []string{"error", "message", "detail", "msg", "error_message",
			"base_resp", "status_msg", "response", "choices"} {
			s.find(v[name])
		}
		if where, ok := v["loc"].([]any); ok && s.message != "" { // what FastAPI does not accept
			s.message += fmt.Sprintf(": %v", where)
		}
		more, _ := v["metadata"].(map[string]any) // OpenRouter's, with the same message for all
		if raw, _ := more["raw"].(string); raw != "" {
			s.message += ": " + raw
		}
	}
}

// meaning returns what an error with this status or code, 0 if it is not known, means.
func (s *serverError) meaning(status int) wording {
	if status < 400 || status >= 600 {
		status = 0
	}
	all := strings.ToLower(cmp.Or(s.message, "no message") + s.codes)
	for _, w := range vocabulary().Kinds {
		if w.means(status, all) {
			return w
		}
	}
	if status/100 == 5 && status != http.StatusNotImplemented {
		return wording{Kind: Overloaded}
	}
	return wording{Kind: Rejected}
}

// webPage returns the failure of a response with a page in place of an answer.
func webPage(page []byte) *failure {
	return &failure{why: &Error{Kind: Malformed, Message: "the server sent a web page" +
		title(page) + " instead of an answer; check the model's baseURL"}}
}

// title returns the title of a web page as ` ("TITLE")`, "" if it has none.
func title(page []byte) string {
	_, after, _ := strings.Cut(string(page), "<title>")
	before, _, found := strings.Cut(after, "</title>")
	if before = strings.TrimSpace(before); !found || before == "" {
		return ""
	}
	return fmt.Sprintf(" (%q)", before)
}

// address returns u without what can be secret.
func address(u *url.URL) string { return u.Scheme + "://" + u.Host + u.EscapedPath() }

// scrubbed returns a message on one line of limited length, without the key and the values of
// headers.
func scrubbed(message string, secrets []string) string {
	var scrubber secret.Scrubber
	for _, value := range secrets {
		scrubber.Add(value)
	}
	return strings.TrimRight(text.Line(scrubber.Text(message), 200), ". ")
}

// explain returns the error of a failure as the user sees it, with advice as far as that depends on
// the words of the server and the configuration.
func (c *Client) explain(f *failure, secrets []string) *Error {
	kind, status, said := f.why.Kind, f.why.Status, scrubbed(f.why.Message, secrets)
	if status != 0 && strings.HasPrefix(c.model.BaseURL, "http:") { // it may be the proxy's
		said += c.through()
	}
	words := strings.ToLower(said)
	says := func(parts ...string) bool { return containsAny(words, parts...) }
	model := "the model " + text.Printable(c.model.Name)
	notFound := status == http.StatusNotFound
	switch {
	case kind == Filtered, kind == Forbidden, kind == Slipped, kind == Unpaid:
	case f.why == errSilent:
		said = fmt.Sprintf("the model's server has sent nothing of an answer for %g minutes; if "+
			"it needs longer, set the model's silenceMinutes", c.silence.Minutes())
	case kind == KeyRejected && c.model.Key == nil && c.model.Headers == nil:
		said = "the server wants a key, and none is configured for " + model + ": " + said
	case kind == KeyRejected:
		said = "the server rejected the key for " + model + ": " + said + "; check the key"
	case f.means.Advice != "":
		said += "; " + f.means.Advice
	case notFound && says("model"), status == http.StatusBadRequest &&
		says("model not exist", "not a valid model", "invalid model", "unknown model"):
		kind, said = Misconfigured, "the server does not know "+model+": "+said+
			"; acp-agent models lists what it offers"
	case notFound, status == http.StatusMethodNotAllowed, says("unexpected endpoint"):
		where := text.Printable(c.where())
		kind, said = Misconfigured, "the server does not know this address: "+said+
			"; check the model's baseURL, "+where
		if c.model.API != Anthropic && !strings.Contains(where, "/v") {
			said += ", which usually ends with /v1"
		}
	}
	return &Error{Kind: kind, Status: status, Message: text.Line(said, 300)}
}

//go:embed words.json
var wordsFile []byte

// vocabulary returns what the words of servers mean. The first kind counts that fits an error.
var vocabulary = sync.OnceValue(func() (v struct {
	Kinds, Deviations []wording
	Statuses          map[int]string // that Cloudflare and others give, in front of a server
}) {
	if err := json.Unmarshal(wordsFile, &v); err != nil {
		panic(err)
	}
	return v
})

// wording is a row of words.json: some words of servers, and what they mean.
type wording struct {
	// Words are in small letters: a response must have one of them, and And. Those of Unless belong
	// to other errors. With lists the statuses with which that counts, nil for all. 0 stands for no
	// status of an error. With those in Status, the response needs no words.
	And           string
	Words, Unless []string
	With, Status  []int

	Kind   Kind
	Busy   bool   // the server only has too much to do
	Advice string // for the user
	// Quirk is how a server with these words differs from its format. It can also be recognised by
	// Host, the end of the address, or Model, a part of the model's name in small letters.
	Quirk       quirk
	Host, Model string
}

// means reports whether a response with a status says that, in small letters.
func (w wording) means(status int, said string) bool {
	words := (w.With == nil || slices.Contains(w.With, status)) &&
		strings.Contains(said, w.And) && containsAny(said, w.Words...)
	return (words || slices.Contains(w.Status, status)) && !containsAny(said, w.Unless...)
}

func containsAny(s string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(s, part) })
}
