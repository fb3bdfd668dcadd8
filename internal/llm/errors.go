package llm

import "errors"

var errCut = &Error{Kind: Unreachable, Message: "the connection to the model's server was lost in the middle of the answer"}

// describe returns what an answer with an error says went wrong: the body of a response with this status, or an event in a stream, with
// status 0. Both formats put errors into JSON in the same places.
func describe(status int, body []byte) *Error {
	return &Error{Kind: Rejected, Status: status, Message: string(body)}
}

// malformed returns an error for an event that is not JSON or not of the format.
func malformed(err error) *Error {
	return &Error{Kind: Malformed, Message: "the model's server sent something that is not an answer: " + err.Error()}
}

// asError returns err as an *Error.
func asError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Kind: Unreachable, Message: err.Error()}
}
