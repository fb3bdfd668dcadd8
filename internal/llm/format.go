package llm

import "net/http"

// format is a wire format.
type format interface {
	// paths returns the paths of the answers and of the list of models, below the model's BaseURL.
	paths() (answer, list string)
	// header returns the headers that the format adds to each request. key may be "".
	header(key string) http.Header
	// encode returns the body of a request.
	encode(m Model, r Request) ([]byte, error)
	// decoder returns a decoder for the stream of one answer.
	decoder() decoder
}

// decoder decodes the stream of one answer, event by event.
type decoder interface {
	// decode returns what an event of the stream means. done reports whether it is the last one of interest. An error says that the
	// stream is an error, see [describe], or not of the format.
	decode(e sseEvent) (events []Event, done bool, err error)
	// end returns what remains to be said when the stream has ended, or an error if the answer is not complete. It is also called when
	// the connection was lost.
	end() ([]Event, error)
}

// sseEvent is a server-sent event.
type sseEvent struct {
	name string // "" if the server does not name its events
	data []byte // valid until the next event is read
}
