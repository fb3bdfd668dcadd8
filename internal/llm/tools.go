package llm

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Offer separates tools into those that the model gets and the others: tools beyond the number that
// the server accepts, or with a schema that it does not accept. The answer can change after a
// request, because only then some servers say what they accept. The order stays the same.
func (c *Client) Offer(tools []Tool) (offered []Tool, surplus, unfit []string) {
	return c.learned.tools.offer(tools)
}

// toolRules records which tools a server accepts. The methods are safe for concurrent use.
type toolRules struct {
	mu   sync.Mutex
	most int // 0 for any number
	// plain is set for servers that know little of JSON schemas, see [adaptSchema].
	plain bool
	// refused are the names of tools that the server does not accept.
	refused map[string]bool
	// adapted has the adapted schemas by their original, nil for those that cannot be adapted.
	adapted map[string]json.RawMessage
}

// maxAdapted bounds toolRules.adapted. Few servers change their tools all the time.
const maxAdapted = 4096

func (t *toolRules) offer(tools []Tool) (offered []Tool, surplus, unfit []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, tool := range tools {
		schema := t.schema(tool.Schema)
		switch {
		case schema == nil || t.refused[tool.Name]:
			unfit = append(unfit, tool.Name)
		case t.most > 0 && len(offered) == t.most:
			surplus = append(surplus, tool.Name)
		default:
			tool.Schema = schema
			offered = append(offered, tool)
		}
	}
	return offered, surplus, unfit
}

// schema returns a schema as the server accepts it, or nil.
func (t *toolRules) schema(of json.RawMessage) json.RawMessage {
	if len(of) == 0 {
		of = json.RawMessage(`{"type":"object"}`)
	}
	adapted, known := t.adapted[string(of)]
	if !known {
		adapted, _ = adaptSchema(of, t.plain)
		if t.adapted == nil || len(t.adapted) == maxAdapted {
			t.adapted = map[string]json.RawMessage{}
		}
		t.adapted[string(of)] = adapted
	}
	return adapted
}

// The messages of servers about tools that they do not accept.
var (
	aboutSchemas = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)schema|unknown name|function_declarations|tools[.\[]`)
	})
	aboutPlace = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`function_declarations\[(\d+)|tools[.\[](\d+)`)
	})
	aboutNumber = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(?:maximum|at most|limit|up to)\D{0,40}?(\d{2,4})\b`)
	})
)

// learn remembers what the server does not accept, according to its response to a rejected request
// with these tools.
func (t *toolRules) learn(response []byte, sent []Tool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(sent) == 0 {
		return
	}
	if most := aboutNumber().FindSubmatch(response); most != nil &&
		(bytes.Contains(response, []byte("tools")) ||
			bytes.Contains(response, []byte("functions"))) {
		if n, _ := strconv.Atoi(string(most[1])); n < len(sent) {
			t.most = n
			return
		}
	}
	if !aboutSchemas().Match(response) {
		return
	}
	if !t.plain {
		t.plain, t.adapted = true, nil
		return
	}
	if t.refused == nil {
		t.refused = map[string]bool{}
	}
	refuse := func(group int) bool {
		for _, place := range aboutPlace().FindAllSubmatch(response, -1) {
			if i, err := strconv.Atoi(string(place[group])); err == nil && i < len(sent) {
				t.refused[sent[i].Name] = true
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
		t.refused[sent[named].Name] = true
		return
	}
	refuse(tool)
}
