package llm

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/internal/text"
)

// quirk is a way in which a server differs from the format that it speaks.
type quirk string

const (
	// newMaxTokens: the server knows max_completion_tokens instead of max_tokens.
	newMaxTokens quirk = "newMaxTokens"
	// noMaxTokens: it accepts no limit of the answer. needsMaxTokens: it requires one, whatever it
	// said before.
	noMaxTokens    quirk = "noMaxTokens"
	needsMaxTokens quirk = "needsMaxTokens"
	// noUsage: it does not know stream_options.
	noUsage quirk = "noUsage"
	// noTemperature: the model accepts only its own temperature.
	noTemperature quirk = "noTemperature"
	// noEffort: the model cannot think if there are tools, and requires that the request says so.
	noEffort quirk = "noEffort"
	// noMarks: it does not accept marks of what to cache.
	noMarks quirk = "noMarks"
	// noSystem: the template of the model has no place for a system prompt.
	noSystem quirk = "noSystem"
	// needsText: the content of a message must be a text, even if there is none. noEmptyText: that
	// text must not be empty, so there is no content after all.
	needsText   quirk = "needsText"
	noEmptyText quirk = "noEmptyText"
	// bridges: it accepts no message of the user after the result of a tool.
	bridges quirk = "bridges"
	// needsSignatures: it requires signatures even for tool calls of other models.
	needsSignatures quirk = "needsSignatures"
	// noThoughts: it does not accept the model's thoughts.
	noThoughts quirk = "noThoughts"
	// allThoughts: it requires thoughts in all messages, even older ones.
	allThoughts quirk = "allThoughts"
	// tags: the model wants its thoughts back in tags before its text.
	tags quirk = "tags"
	// noEncrypted: the model does not think, or the server does not encrypt thoughts.
	noEncrypted quirk = "noEncrypted"
	// noSummary: it does not show summaries of thoughts.
	noSummary quirk = "noSummary"
	// noDisplay: it cannot be told how to show thoughts.
	noDisplay quirk = "noDisplay"
	// onlyBudget: it wants a number of tokens for thinking, and onlyEffort a level.
	onlyBudget quirk = "onlyBudget"
	onlyEffort quirk = "onlyEffort"
)

// missingWords are words of errors about something that a request does not have.
var missingWords = []string{"missing", "must be passed"}

// variant is how one server differs from its format.
type variant struct {
	quirks map[quirk]bool // never modified
	// unwanted are the names of attached members that the server does not accept. Its elements are
	// never modified.
	unwanted []string
	// longest is how many tokens the server accepts as the limit of an answer, 0 if that is not
	// known.
	longest int
}

// has reports whether the server has a quirk.
func (v variant) has(q quirk) bool { return v.quirks[q] }

// add adds a quirk.
func (v *variant) add(q quirk) {
	v.quirks = maps.Clone(v.quirks)
	if v.quirks == nil {
		v.quirks = map[quirk]bool{}
	}
	v.quirks[q] = true
}

// takesLimit reports whether the server accepts a limit of the answer.
func (v variant) takesLimit() bool { return !v.has(noMaxTokens) || v.has(needsMaxTokens) }

// wants reports whether the server has not rejected an attached member with this name.
func (v variant) wants(name string) bool { return !slices.Contains(v.unwanted, name) }

// limit returns how many tokens the answer may have, 0 if that is up to the server.
func (v variant) limit(m Model, r Request) int {
	most := 0
	for _, limit := range []int{m.MaxTokens, r.MaxTokens, v.longest} {
		if most == 0 || limit > 0 && limit < most {
			most = limit
		}
	}
	return most
}

// learned has the known facts about a server: how it differs from its format, and which tools it
// does not accept. The methods are safe for concurrent use.
type learned struct {
	mu      sync.Mutex
	variant variant

	mostTools int // 0 for any number
	// plain is set for servers that know little of JSON schemas, see [adaptSchema].
	plain bool
	// refused are the names of tools that the server does not accept.
	refused map[string]bool
}

// recognised returns what is known from the address and the name of a model.
func recognised(m Model) (v variant) {
	host, name := "", strings.ToLower(m.Name)
	if at, err := url.Parse(m.BaseURL); err == nil {
		host = "." + at.Hostname()
	}
	for _, w := range vocabulary().Deviations {
		if w.Host != "" && strings.HasSuffix(host, w.Host) ||
			w.Model != "" && strings.Contains(name, w.Model) {
			v.add(w.Quirk)
		}
	}
	return v
}

// now returns what is known about the format of requests.
func (l *learned) now() variant {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.variant
}

// learn learns from the response to a request that the server rejected.
func (l *learned) learn(response []byte, rejected Request, sentLimit int) {
	said := strings.ToLower(string(bytes.ReplaceAll(response, []byte(`\u0027`), []byte("'"))))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.learnToolsLocked(response, rejected.Tools)
	for _, w := range vocabulary().Deviations {
		if w.means(0, said) {
			l.variant.add(w.Quirk)
		}
	}
	if !containsAny(said, missingWords...) {
		l.variant.refuse(rejected.Messages, said)
	}
	if found := aboutLimit().FindStringSubmatch(said); found != nil {
		if most, _ := strconv.Atoi(found[1]); most > 0 && most < sentLimit {
			l.variant.longest = most
		}
	}
}

// plainNames are names of attached members that occur in many errors.
var plainNames = []string{"type", "id", "status", "summary", "content", "text", "role", "name",
	"encrypted_content"}

// refuse adds the attached members of messages whose names occur in an error.
func (v *variant) refuse(messages []Message, said string) {
	for _, m := range messages {
		for _, p := range m.Parts {
			var attached map[string]json.RawMessage
			switch p := p.(type) {
			case Thinking:
				_ = json.Unmarshal(p.Attached, &attached)
			case ToolCall:
				_ = json.Unmarshal(p.Attached, &attached)
			}
			for name := range attached {
				if v.wants(name) && !slices.Contains(plainNames, name) &&
					strings.Contains(said, strings.ToLower(name)) {
					v.unwanted = append(slices.Clip(v.unwanted), name)
				}
			}
		}
	}
}

// aboutLimit matches an error, in small letters, that says how many tokens an answer may have.
var aboutLimit = text.Pattern(`max_(?:completion_|output_)?tokens\D{0,60}?\d*\D{0,40}?` +
	`(?:>|at most|maximum|up to|less than or equal to|\[1,|<=|limit)[^\d(]{0,12}?(\d{3,7})\b`)

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
