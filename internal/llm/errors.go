package llm

// describe returns what an answer with an error says went wrong: the body of a response with this status, or an event in a stream, with
// status 0. Both formats put errors into JSON in the same places.
func describe(status int, body []byte) *Error {
	return &Error{Kind: Rejected, Status: status, Message: string(body)}
}
