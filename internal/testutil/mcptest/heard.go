package mcptest

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"sync"
)

// heard are the methods of the messages that a server was sent, in order.
type heard struct {
	mu      sync.Mutex
	methods []string
}

// listen notes the methods of the messages that from gives, before they are read.
func (h *heard) listen(from io.Reader) io.ReadCloser {
	out, in := io.Pipe()
	go func() {
		lines := bufio.NewReader(from)
		for {
			line, err := lines.ReadBytes('\n')
			h.note(line)
			if _, closed := in.Write(line); err == nil {
				err = closed
			}
			if err != nil {
				_ = in.CloseWithError(err)
				return
			}
		}
	}()
	return out
}

func (h *heard) note(line []byte) {
	var message struct{ Method string }
	if json.Unmarshal(line, &message) != nil || message.Method == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.methods = append(h.methods, message.Method)
}

// String is the methods, one a line.
func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.methods, "\n")
}
