package jsonrpc

import (
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// envelope is one line, understood: a request, a notification or a response.
type envelope struct {
	id     ID // zero for a notification
	method string
	params json.RawMessage

	response bool
	reply    reply // of a response
}

// decode understands a line, or says why it is refused, with a null id (W2). Of a refused
// response, the envelope has the id, so that a call of ours need not wait for an answer that came
// malformed.
func decode(line []byte) (envelope, *Error) {
	if !utf8.Valid(line) {
		return envelope{}, Errorf(CodeParse, "the message is not valid UTF-8")
	}
	o, err := strictjson.ParseObject(line)
	switch {
	case errors.Is(err, strictjson.ErrNotObject) && line[0] == '[':
		return envelope{}, Errorf(CodeInvalidRequest, "batches are not supported: send one message a line")
	case errors.Is(err, strictjson.ErrNotObject):
		return envelope{}, Errorf(CodeInvalidRequest, "the message is not an object")
	case err != nil:
		return envelope{}, Errorf(CodeParse, "%v", err)
	}
	if name, twice := o.Duplicate(); twice {
		return envelope{}, Errorf(CodeInvalidRequest, "the message has two members %s", quoted(brief(name)))
	}
	e := envelope{response: !o.Field("method").Present()}
	id := o.Field("id")
	if id.Present() {
		switch c := id.Raw()[0]; {
		case c == '"' || c == '-' || '0' <= c && c <= '9':
			e.id = ID{raw: string(id.Raw())}
		case !e.response || !id.IsNull():
			return envelope{}, Errorf(CodeInvalidRequest, "the id is neither a string nor a number")
		}
	}
	if version, _ := o.Field("jsonrpc").Text(); version != "2.0" {
		return e, Errorf(CodeInvalidRequest, `the message lacks "jsonrpc":"2.0"`)
	}
	if e.response {
		return decodeResponse(e, o)
	}
	return decodeRequest(e, o)
}

func decodeRequest(e envelope, o strictjson.Object) (envelope, *Error) {
	if o.Field("result").Present() || o.Field("error").Present() {
		return envelope{}, Errorf(CodeInvalidRequest, "the message is both a request and a response")
	}
	method, wrong := o.Field("method").Text()
	if wrong != nil {
		return envelope{}, Errorf(CodeInvalidRequest, "the method is not a string")
	}
	e.method = method
	e.params, _ = o.Get("params")
	return e, nil
}

func decodeResponse(e envelope, o strictjson.Object) (envelope, *Error) {
	result, failure := o.Field("result"), o.Field("error")
	switch {
	case !result.Present() && !failure.Present():
		return envelope{}, Errorf(CodeInvalidRequest, "the message has neither a method nor a result nor an error")
	case !o.Field("id").Present() && !failure.Present():
		// An error without an id is a complaint about a message of ours. Complaining back could go on for ever.
		return envelope{}, Errorf(CodeInvalidRequest, "the response has no id")
	case result.Present() && failure.Present():
		e.reply.err = errMalformedResponse
	case result.Present():
		e.reply.result = result.Raw()
	default:
		e.reply.err = decodeError(failure)
	}
	return e, nil
}

// errMalformedResponse is what a call returns that was answered with something else than a response.
var errMalformedResponse = errors.New("the peer's response is malformed")

func decodeError(f strictjson.Field) error {
	o, wrong := f.Object()
	if wrong != nil {
		return errMalformedResponse
	}
	var e Error
	code, present := o.Get("code")
	if !present || json.Unmarshal(code, &e.Code) != nil || string(code) == "null" {
		return errMalformedResponse
	}
	message, present := o.Get("message")
	if !present || json.Unmarshal(message, &e.Message) != nil || string(message) == "null" {
		return errMalformedResponse
	}
	e.Data, _ = o.Get("data")
	return &e
}

// checkParams says what is wrong with the params of a request or notification.
func checkParams(params json.RawMessage, how Params) error {
	if len(params) == 0 || string(params) == "null" {
		return nil
	}
	if params[0] != '{' && params[0] != '[' {
		return Errorf(CodeInvalidParams, "params are neither an object nor an array")
	}
	if how == ParamsOpaque {
		return nil
	}
	return strictjson.Refuse(strictjson.Check(params, nil)...)
}

// key is the id in one spelling, so that "a" and "\u0061" are one id.
func (id ID) key() string {
	var text string
	if len(id.raw) > 0 && id.raw[0] == '"' && json.Unmarshal([]byte(id.raw), &text) == nil {
		return quoted(text)
	}
	return id.raw
}

// quoted is text as a JSON string.
func quoted(text string) string { return string(strictjson.AppendText(nil, text)) }
