package llm

import (
	"encoding/json"
	"regexp"
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
	// plainSchemas: it knows little of JSON schemas, see [adaptSchema].
	plainSchemas quirk = "plainSchemas"
)

// missingWords are words of errors about something that a request does not have.
var missingWords = []string{"missing", "must be passed"}

// variant is what is known about one server: how it differs from its format, and which tools it
// does not accept. Its lists are never modified, so it can be copied.
type variant struct {
	quirks []quirk
	// unwanted are the names of attached members that the server does not accept, and refused those
	// of tools.
	unwanted, refused []string
	// longest is how many tokens the server accepts as the limit of an answer, and mostTools how
	// many tools a request may have. They are 0 if that is not known.
	longest, mostTools int
}

// has reports whether the server has a quirk.
func (v variant) has(q quirk) bool { return slices.Contains(v.quirks, q) }

// with returns a list and one more element, unless the list has it.
func with[T comparable](list []T, more T) []T {
	if slices.Contains(list, more) {
		return list
	}
	return append(slices.Clip(list), more)
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

// recognised returns what is known from the address and the name of a model.
func recognised(m Model) variant {
	v := variant{mostTools: formats[m.API].maxTools}
	host, name := "."+m.address().Hostname(), strings.ToLower(m.Name)
	for _, w := range vocabulary().Deviations {
		if w.Host != "" && strings.HasSuffix(host, w.Host) ||
			w.Model != "" && strings.Contains(name, w.Model) {
			v.quirks = with(v.quirks, w.Quirk)
		}
	}
	return v
}

// learned has what is known about a server. The methods are safe for concurrent use.
type learned struct {
	mu      sync.Mutex
	variant variant
}

// now returns what is known.
func (l *learned) now() variant {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.variant
}

// learn learns from the response to a request that the server rejected.
func (l *learned) learn(response []byte, rejected Request, sentLimit int) {
	said := strings.ToLower(strings.ReplaceAll(string(response), `\u0027`, "'"))
	l.mu.Lock()
	defer l.mu.Unlock()
	v := &l.variant
	v.learnTools(string(response), rejected.Tools)
	for _, w := range vocabulary().Deviations {
		if w.means(0, said) {
			v.quirks = with(v.quirks, w.Quirk)
		}
	}
	if !containsAny(said, missingWords...) {
		v.refuse(rejected.Messages, said)
	}
	if found := aboutLimit().FindStringSubmatch(said); found != nil {
		if most, _ := strconv.Atoi(found[1]); most > 0 && most < sentLimit {
			v.longest = most
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
				if !slices.Contains(plainNames, name) &&
					strings.Contains(said, strings.ToLower(name)) {
					v.unwanted = with(v.unwanted, name)
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
	v := c.learned.now()
	for _, tool := range tools {
		schema := adaptSchema(tool.Schema, v.has(plainSchemas))
		if schema == nil || slices.Contains(v.refused, tool.Name) ||
			v.mostTools > 0 && len(offered) == v.mostTools {
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
	aboutSchemas     = text.Pattern(`(?i)schema|unknown name|function_declarations|tools[.\[]`)
	aboutDeclaration = text.Pattern(`function_declarations\[(\d+)`) // Gemini has all in one tool
	aboutTool        = text.Pattern(`tools[.\[](\d+)`)
	aboutNumber      = text.Pattern(`(?i)(?:maximum|at most|limit|up to)\D{0,40}?(\d{2,4})\b`)
)

// learnTools notes what the server does not accept, according to its response to a rejected request
// with these tools.
func (v *variant) learnTools(response string, sent []Tool) {
	if most := aboutNumber().FindStringSubmatch(response); most != nil &&
		containsAny(response, "tools", "functions") {
		if n, _ := strconv.Atoi(most[1]); n < len(sent) {
			v.mostTools = n
			return
		}
	}
	switch {
	case len(sent) == 0 || !aboutSchemas().MatchString(response):
	case !v.has(plainSchemas):
		v.quirks = with(v.quirks, plainSchemas)
	default:
		if i := refusedTool(response, sent); i >= 0 {
			v.refused = with(v.refused, sent[i].Name)
		}
	}
}

// refusedTool returns the index of the tool that a response is about, -1 if that is not known.
func refusedTool(response string, sent []Tool) int {
	at := func(about func() *regexp.Regexp) int {
		for _, place := range about().FindAllStringSubmatch(response, -1) {
			if i, err := strconv.Atoi(place[1]); err == nil && i < len(sent) {
				return i
			}
		}
		return -1
	}
	named := slices.IndexFunc(sent, func(t Tool) bool {
		return containsAny(response, "'"+t.Name+"'", "`"+t.Name+"`", `"`+t.Name+`"`,
			`\"`+t.Name+`\"`)
	})
	for _, i := range []int{at(aboutDeclaration), named, at(aboutTool)} {
		if i >= 0 {
			return i
		}
	}
	return -1
}
