package llm

import (
	"bytes"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// quirk is a set of ways in which a server differs from the format that it speaks.
type quirk uint32

const (
	// newMaxTokens: the server knows max_completion_tokens instead of max_tokens.
	newMaxTokens quirk = 1 << iota
	// noMaxTokens: it accepts no limit of the answer. needsMaxTokens: it requires one, whatever it
	// said before.
	noMaxTokens
	needsMaxTokens
	// noUsage: it does not know stream_options.
	noUsage
	// noTemperature: the model accepts only its own temperature.
	noTemperature
	// noEffort: the model cannot think if there are tools, and requires that the request says so.
	noEffort
	// noMarks: it does not accept marks of what to cache.
	noMarks
	// noSystem: the template of the model has no place for a system prompt.
	noSystem
	// needsText: the content of a message must be a text, even if there is none. noEmptyText: that
	// text must not be empty, so there is no content after all.
	needsText
	noEmptyText
	// bridges: it accepts no message of the user after the result of a tool.
	bridges
	// needsSignatures: it requires signatures even for tool calls of other models.
	needsSignatures
	// noThoughts: it does not accept the model's thoughts.
	noThoughts
	// allThoughts: it requires thoughts in all messages, even older ones.
	allThoughts
	// tags: the model wants its thoughts back in tags before its text.
	tags
	// noEncrypted: the model does not think, or the server does not encrypt thoughts.
	noEncrypted
	// noSummary: it does not show summaries of thoughts.
	noSummary
	// noDisplay: it cannot be told how to show thoughts.
	noDisplay
	// onlyBudget: it wants a number of tokens for thinking, and onlyEffort a level.
	onlyBudget
	onlyEffort
)

// deviation says how servers with a quirk are recognised.
type deviation struct {
	quirk quirk
	// host is the end of their address, and model a part of the model's name in small letters. ""
	// stands for none.
	host, model string
	// says has words with which they reject a request that does not consider the quirk, in small
	// letters: all words of one list. unless are words of other errors.
	says   [][]string
	unless []string
}

// deviations has all of them. Words in a rejection change the next request, so a line that matches
// too much costs a request, and a quirk must not make a request worse for other servers.
var deviations = []deviation{
	{quirk: newMaxTokens, says: each("max_completion_tokens")}, // OpenAI's newer models
	{quirk: noMaxTokens, says: both("max_tokens", unknownWords...),
		unless: []string{"max_completion_tokens"}},
	{quirk: noMaxTokens, says: both("max_output_tokens", unknownWords...)},
	{quirk: needsMaxTokens, says: both("max_tokens", "field required", "is required", "missing")},
	{quirk: noEmptyText, says: both("content", "non-empty", "not be empty", "cannot be empty")},
	{quirk: noUsage, says: each("stream_options")}, // Mistral, which always counts tokens
	{quirk: noTemperature, says: each("temperature")},
	{quirk: noEffort, says: each("reasoning_effort")}, // OpenAI from 2026, in chat completions
	{quirk: noMarks, says: each("cache_control")},
	{quirk: noSystem, says: each("system role not supported",
		"system role is not supported")}, // Gemma
	{quirk: needsText, says: both("content", "null", "nonetype", "none is not", "expected a string",
		"expected string", "must be a string", "valid string", "field required", "is required")},
	{quirk: bridges, host: ".mistral.ai", says: each("after role 'tool'",
		"must alternate")}, // the latter by templates that count the messages of both sides
	{quirk: needsSignatures, says: each("missing a thought_signature")}, // Gemini from 3 on
	{quirk: noThoughts, says: each("reasoning_content"), unless: missingWords},
	{quirk: allThoughts, says: both("reasoning_content", missingWords...)}, // DeepSeek, Kimi
	{quirk: tags, model: "minimax"},
	{quirk: noEncrypted, says: each(`"include"`, "'include'", "reasoning.encrypted_content",
		"encrypted content is not supported")},
	{quirk: noSummary, says: each("reasoning.summary", "reasoning summaries")}, // OpenAI, unless verified
	{quirk: noDisplay, says: both("display", "thinking", "extra inputs", "not permitted")},
	{quirk: onlyBudget, says: each("adaptive", "output_config"),
		unless: []string{"thinking.type.adaptive", "output_config.effort", "display"}},
	{quirk: onlyEffort, says: each("thinking.type.adaptive")}, // names of a gateway for new models
}

var (
	unknownWords = []string{"extra inputs", "unknown", "unrecognized", "unsupported",
		"not permitted", "not supported"}
	missingWords = []string{"missing", "must be passed"}
)

// each returns alternatives of one word each.
func each(words ...string) (all [][]string) {
	for _, word := range words {
		all = append(all, []string{word})
	}
	return all
}

// both returns alternatives of a word with one of others.
func both(word string, others ...string) (all [][]string) {
	for _, other := range others {
		all = append(all, []string{word, other})
	}
	return all
}

// variant is how one server differs from its format.
type variant struct {
	quirks quirk
	// unwanted are the names of attached members that the server does not accept. The list is never
	// modified.
	unwanted *[]string
	// longest is how many tokens the server accepts as the limit of an answer, 0 if that is not
	// known.
	longest int
}

// has reports whether the server has a quirk.
func (v variant) has(q quirk) bool { return v.quirks&q != 0 }

// takesLimit reports whether the server accepts a limit of the answer.
func (v variant) takesLimit() bool { return !v.has(noMaxTokens) || v.has(needsMaxTokens) }

// wants reports whether the server has not rejected an attached member with this name.
func (v variant) wants(name string) bool {
	return v.unwanted == nil || !slices.Contains(*v.unwanted, name)
}

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

// learned has the known facts about a server: how it differs from its format, and which tools and
// thoughts it does not accept. The methods are safe for concurrent use.
type learned struct {
	tools    toolRules
	thoughts rejectedThoughts

	mu      sync.Mutex
	variant variant
}

// recognise learns what is known from the address and the name of a model.
func (l *learned) recognise(m Model) {
	host, name := "", strings.ToLower(m.Name)
	if at, err := url.Parse(m.BaseURL); err == nil {
		host = "." + at.Hostname()
	}
	for _, d := range deviations {
		if d.host != "" && strings.HasSuffix(host, d.host) ||
			d.model != "" && strings.Contains(name, d.model) {
			l.variant.quirks |= d.quirk
		}
	}
}

// now returns what is known about the format of requests.
func (l *learned) now() variant {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.variant
}

// learn learns from the response to a request that the server rejected.
func (l *learned) learn(response []byte, rejected Request, sentLimit int) {
	l.thoughts.learn(response, rejected.Messages)
	l.tools.learn(response, rejected.Tools)
	said := strings.ToLower(string(bytes.ReplaceAll(response, []byte(`\u0027`), []byte("'"))))
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range deviations {
		if d.matches(said) {
			l.variant.quirks |= d.quirk
		}
	}
	if !containsAny(said, missingWords...) {
		l.variant.refuse(rejected.Messages, said)
	}
	if most := acceptedLimit(said); most > 0 && most < sentLimit {
		l.variant.longest = most
	}
}

func (d deviation) matches(said string) bool {
	return !containsAny(said, d.unless...) && slices.ContainsFunc(d.says, func(all []string) bool {
		return !slices.ContainsFunc(all, func(word string) bool { return !strings.Contains(said, word) })
	})
}

// plainNames are names of attached members that occur in many errors.
var plainNames = []string{"type", "id", "status", "summary", "content", "text", "role", "name",
	"encrypted_content"}

// refuse adds the attached members of messages whose names occur in an error.
func (v *variant) refuse(messages []Message, said string) {
	var names []string
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
					names = append(names, name)
				}
			}
		}
	}
	if names == nil {
		return
	}
	if v.unwanted != nil {
		names = append(names, *v.unwanted...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	v.unwanted = &names
}

var aboutLimit = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`max_(?:completion_|output_)?tokens\D{0,60}?\d*\D{0,40}?` +
		`(?:>|at most|maximum|up to|less than or equal to|\[1,|<=|limit)[^\d(]{0,12}?(\d{3,7})\b`)
})

// acceptedLimit returns how many tokens an answer may have, as an error about the limit says in
// small letters, or 0.
func acceptedLimit(said string) int {
	found := aboutLimit().FindStringSubmatch(said)
	if found == nil {
		return 0
	}
	most, _ := strconv.Atoi(found[1])
	return most
}
