package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/internal/secret"
)

// traceFunc appends a message to the trace: one that was sent to peer, or received from it.
type traceFunc func(peer string, sent bool, line []byte)

// openTrace returns a function that appends messages to a file, which is nil if path is "", and a
// function that closes it.
func openTrace(path string) (trace traceFunc, end func(), err error) {
	if path == "" {
		return nil, func() {}, nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, usagef("--trace: %v", err)
	}
	var mu sync.Mutex
	trace = func(peer string, sent bool, line []byte) {
		arrow := "<-"
		if sent {
			arrow = "->"
		}
		text := fmt.Appendf(nil, "%s %s %s %s\n", time.Now().UTC().Format(time.RFC3339Nano), arrow, peer, masked(line))
		mu.Lock()
		defer mu.Unlock()
		_, _ = file.Write(text)
	}
	return trace, func() { _ = file.Close() }, nil
}

// editor returns the function for the messages of the editor, nil if there is no trace.
func (t traceFunc) editor() func(sent bool, line []byte) {
	if t == nil {
		return nil
	}
	return func(sent bool, line []byte) { t("editor", sent, line) }
}

// mayHoldSecrets matches messages that may have members called env, headers, url or args, perhaps
// spelled with escapes. It is compiled on first use to keep the start of the program fast.
var mayHoldSecrets = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)env|headers|url|args|\\u`) })

// masked returns a message without the values of environment variables and headers, and with no
// more than the hosts of URLs.
func masked(line []byte) []byte {
	if !mayHoldSecrets().Match(line) {
		if json.Valid(line) {
			return line
		}
		return fmt.Appendf(nil, "(%d bytes of invalid JSON)", len(line))
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	var message any
	if err := decoder.Decode(&message); err != nil {
		return fmt.Appendf(nil, "(%d bytes of invalid JSON)", len(line))
	}
	text, err := json.Marshal(mask(message))
	if err != nil {
		return fmt.Appendf(nil, "(%d bytes)", len(line))
	}
	return text
}

// mask masks the members of a JSON value that may contain secrets.
func mask(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			switch text, isText := member.(string); {
			case strings.EqualFold(name, "env"), strings.EqualFold(name, "headers"):
				v[name] = hide(member)
			case strings.EqualFold(name, "args"):
				v[name] = hideURLs(member)
			case isText && strings.EqualFold(name, "url"):
				v[name] = secret.HideURL(text)
			default:
				v[name] = mask(member)
			}
		}
	case []any:
		for i := range v {
			v[i] = mask(v[i])
		}
	}
	return value
}

// hideURLs hides the URLs in a list of arguments.
func hideURLs(args any) any {
	list, ok := args.([]any)
	if !ok {
		return mask(args)
	}
	for i, item := range list {
		if arg, isText := item.(string); isText {
			list[i] = secret.HideURLs(arg)
		} else {
			list[i] = mask(item)
		}
	}
	return list
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
