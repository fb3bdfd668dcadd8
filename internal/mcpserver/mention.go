package mcpserver

import (
	"context"
	"encoding/json"
)

// mentionInstructions returns lines for the result of a call that name the instructions of the directories in which its paths are, below
// their roots, "" if there are none. A client is told about each file once, and about none that it reads itself.
func (c *client) mentionInstructions(ctx context.Context, sc *scope, arguments json.RawMessage) string {
	var in struct {
		Path, To string
		Paths    []string
	}
	_ = json.Unmarshal(arguments, &in)
	return c.mentions.Lines(ctx, sc.ws, append([]string{in.Path, in.To}, in.Paths...)...)
}
