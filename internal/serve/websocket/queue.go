package websocket

// window is how many bytes may be sent without being confirmed, and received without being read.
// Beyond it Write, and reading from the network, wait.
const window = 4 << 20

// queue holds messages in their order.
type queue struct {
	messages [][]byte
	size     int // in bytes
}

// overhead is the memory of a queued message besides its bytes.
const overhead = 32

func (q *queue) isFull() bool { return q.size >= window }

func (q *queue) add(message []byte) {
	q.messages = append(q.messages, message)
	q.size += len(message) + overhead
}

// remove removes the first n messages.
func (q *queue) remove(n int) {
	for _, message := range q.messages[:n] {
		q.size -= len(message) + overhead
	}
	clear(q.messages[:n])
	q.messages = q.messages[n:]
}
