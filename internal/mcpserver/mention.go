package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/discovery"
)

// The most paths of a call whose instructions are looked for, and the most instruction files that a client is told about.
const (
	maxMentionPaths = 16
	maxMentioned    = 1000
)

// mentionInstructions returns lines for the result of a call that name the instructions of the directories in which its paths are, below
// their roots, "" if there are none. A client is told about each file once, and about none that it reads itself.
func (c *client) mentionInstructions(ctx context.Context, sc *scope, arguments json.RawMessage) string {
	var in struct {
		Path, To string
		Paths    []string
	}
	_ = json.Unmarshal(arguments, &in)
	paths := append([]string{in.Path, in.To}, in.Paths...)
	var b strings.Builder
	for _, path := range paths[:min(len(paths), maxMentionPaths)] {
		if path == "" {
			continue
		}
		list, err := discovery.Nested(ctx, sc.ws, path)
		if err != nil {
			continue // after a move, for example
		}
		info, err := sc.ws.Stat(path)
		for _, a := range list {
			read := err == nil && info.Ref() == a.Ref
			if c.mention(a.Path) && !read {
				fmt.Fprintf(&b, "[What is in %q has instructions: read %q before you go on.]\n", a.Dir(), a.Path)
			}
		}
	}
	return b.String()
}

// mention reports whether the client has not been told about an instruction file yet, and records that it has been.
func (c *client) mention(path string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mentioned[path] || len(c.mentioned) >= maxMentioned {
		return false
	}
	if c.mentioned == nil {
		c.mentioned = make(map[string]bool)
	}
	c.mentioned[path] = true
	return true
}
