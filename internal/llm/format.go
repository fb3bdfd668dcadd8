package llm

import "net/http"

// format is a wire format.
type format interface {
	// encode returns the path of a request below the model's BaseURL, its headers and its body. key may be "".
	encode(m Model, key string, r Request) (path string, header http.Header, body []byte, err error)
	// decoder returns a decoder for the stream of one answer.
	decoder() decoder
	// describe returns what a response with an error status says went wrong.
	describe(status int, body []byte) *Error
}

// decoder decodes the stream of one answer, event by event.
type decoder interface {
	// decode returns what an event of the stream means. done reports whether it is the last one of interest. An error says that the
	// stream is an error or not of the format.
	decode(e sseEvent) (events []Event, done bool, err error)
	// end returns what remains to be said when the stream has ended, or an error if the answer is not complete.
	end() ([]Event, error)
}

// sseEvent is a server-sent event.
type sseEvent struct {
	name string // "" if the server does not name its events
	data []byte // valid until the next event is read
}
