package llm

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
)

// Offer separates tools into those that the model gets and the names of the others: tools beyond
// the number that the server accepts, or with a schema that it does not accept. The answer can
// change after a request, because only then some servers say what they accept. The order stays the
// same.
func (c *Client) Offer(tools []Tool) (offered []Tool, left []string) {
	l := &c.learned
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, tool := range tools {
		schema := adaptSchema(tool.Schema, l.plain)
		if schema == nil || l.refused[tool.Name] ||
			l.mostTools > 0 && len(offered) == l.mostTools {
			left = append(left, tool.Name)
			continue
		}
		tool.Schema = schema
		offered = append(offered, tool)
	}
	return offered, left
}

// The messages of servers about tools that they do not accept.
var (
	aboutSchemas = text.Pattern(`(?i)schema|unknown name|function_declarations|tools[.\[]`)
	aboutPlace   = text.Pattern(`function_declarations\[(\d+)|tools[.\[](\d+)`)
	aboutNumber  = text.Pattern(`(?i)(?:maximum|at most|limit|up to)\D{0,40}?(\d{2,4})\b`)
)

// learnToolsLocked remembers what the server does not accept, according to its response to a
// rejected request with these tools.
func (l *learned) learnToolsLocked(response []byte, sent []Tool) {
	if len(sent) == 0 {
		return
	}
	if most := aboutNumber().FindSubmatch(response); most != nil &&
		(bytes.Contains(response, []byte("tools")) ||
			bytes.Contains(response, []byte("functions"))) {
		if n, _ := strconv.Atoi(string(most[1])); n < len(sent) {
			l.mostTools = n
			return
		}
	}
	if !aboutSchemas().Match(response) {
		return
	}
	if !l.plain {
		l.plain = true
		return
	}
	if l.refused == nil {
		l.refused = map[string]bool{}
	}
	refuse := func(group int) bool {
		for _, place := range aboutPlace().FindAllSubmatch(response, -1) {
			if i, err := strconv.Atoi(string(place[group])); err == nil && i < len(sent) {
				l.refused[sent[i].Name] = true
				return true
			}
		}
		return false
	}
	const declaration, tool = 1, 2 // Gemini has all declarations in one tool
	if refuse(declaration) {
		return
	}
	named := slices.IndexFunc(sent, func(t Tool) bool {
		return slices.ContainsFunc([]string{`'`, "`", `"`, `\"`}, func(quote string) bool {
			return strings.Contains(string(response), quote+t.Name+quote)
		})
	})
	if named >= 0 {
		l.refused[sent[named].Name] = true
		return
	}
	refuse(tool)
}
