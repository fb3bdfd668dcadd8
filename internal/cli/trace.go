package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
)

// traceFunc appends a message to the trace: one that was sent to peer, or received from it.
type traceFunc func(peer string, sent bool, line []byte)

// openTrace returns a function that appends messages to a file, which is nil if path is "", and a
// function that closes it. An error of a write is told on stderr. Several processes may write to
// one file, since an editor starts one for each window: each line names the process that wrote it.
func openTrace(path string, stderr io.Writer) (trace traceFunc, end func(), err error) {
	if path == "" {
		return nil, func() {}, nil
	}
	file, err := openAppend("trace", path, stderr)
	if err != nil {
		return nil, nil, err
	}
	var mu sync.Mutex
	process := os.Getpid()
	trace = func(peer string, sent bool, line []byte) {
		arrow := "<-"
		if sent {
			arrow = "->"
		}
		shown := masked(line)
		mu.Lock()
		defer mu.Unlock()
		now := time.Now().UTC().Format(time.RFC3339Nano) // here, so that the lines are in order
		_, _ = file.Write(fmt.Appendf(
			nil, "%s acp-agent[%d] %s %s %s\n", now, process, arrow, peer, shown))
	}
	return trace, file.close, nil
}

// of returns the function for the messages of a peer, nil if there is no trace.
func (t traceFunc) of(peer string) func(sent bool, line []byte) {
	if t == nil {
		return nil
	}
	return func(sent bool, line []byte) { t(peer, sent, line) }
}

// mayHoldSecrets matches messages that may have members called env, headers, url, args or
// mcpServers, perhaps spelled with escapes.
var mayHoldSecrets = text.Pattern(`(?i)env|headers|url|args|mcpservers|\\u`)

// masked returns a message without the values of environment variables and headers, and with no
// more than the hosts of URLs.
func masked(line []byte) []byte {
	switch {
	case !json.Valid(line):
		return fmt.Appendf(nil, "(%d bytes of invalid JSON)", len(line))
	case !mayHoldSecrets().Match(line):
		return line
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	var message any
	err := decoder.Decode(&message)
	text, failed := json.Marshal(mask(message, false))
	if err != nil || failed != nil {
		return fmt.Appendf(nil, "(%d bytes)", len(line))
	}
	return text
}

// mask masks the members of a JSON value that may contain secrets. It masks URLs in all strings if
// urls is true, as it is in members that should hold URLs, whatever they hold.
func mask(value any, urls bool) any {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			switch text, isText := member.(string); strings.ToLower(name) {
			case "env", "headers":
				v[name] = hide(member)
			case "url":
				if isText {
					v[name] = secret.HideURL(text)
					continue
				}
				v[name] = mask(member, true)
			case "args", "mcpservers":
				v[name] = mask(member, true)
			default:
				v[name] = mask(member, urls)
			}
		}
	case []any:
		for i := range v {
			v[i] = mask(v[i], urls)
		}
	case string:
		if urls {
			return secret.HideURLs(v)
		}
	}
	return value
}

// hide replaces everything in value except the names in {name, value} pairs.
func hide(value any) any {
	switch v := value.(type) {
	case map[string]any:
		_, pair := v["value"]
		for name, member := range v {
			if _, text := member.(string); !pair || !text || name != "name" {
				v[name] = hide(member)
			}
		}
	case []any:
		for i := range v {
			v[i] = hide(v[i])
		}
	case nil:
		return nil
	default:
		return "***"
	}
	return value
}
