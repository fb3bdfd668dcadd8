package llm

import "slices"

// isMarked returns a function that reports whether the message with an index ends a part of the
// request that the server should cache: the last two messages of the user do. The first of them
// ended the previous request, and servers do not search far back for it.
func isMarked(messages []Message) func(i int) bool {
	first, left := len(messages), 2
	for left > 0 && first > 0 {
		if first--; messages[first].Role == User {
			left--
		}
	}
	return func(i int) bool { return i >= first && messages[i].Role == User }
}

// merged returns messages in which successive messages of one role are joined, because many servers
// require that roles alternate.
func merged(messages []Message) []Message {
	alternate := true
	for i, m := range messages {
		alternate = alternate && len(m.Parts) > 0 && (i == 0 || m.Role != messages[i-1].Role)
	}
	if alternate {
		return messages
	}
	var all []Message
	for _, m := range messages {
		if last := len(all) - 1; last >= 0 && all[last].Role == m.Role {
			all[last].Parts = append(slices.Clip(all[last].Parts), m.Parts...)
		} else if len(m.Parts) > 0 {
			all = append(all, m)
		}
	}
	return all
}
