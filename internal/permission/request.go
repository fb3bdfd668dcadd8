package permission

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// Call has what an agent says about a tool call, in an update or in a session/request_permission.
type Call struct {
	ID        string `json:"toolCallId"`
	Title     string `json:"title"`
	Kind      string `json:"kind"`
	Status    string `json:"status"`
	Locations []struct {
		Path string `json:"path"`
	} `json:"locations"`
	Content  []Content       `json:"content"`
	RawInput json.RawMessage `json:"rawInput"`
	Meta     json.RawMessage `json:"_meta"`
}

// Content is a part of what a tool call shows. A diff has a path and texts.
type Content struct {
	Type string  `json:"type"`
	Path string  `json:"path"`
	Old  *string `json:"oldText"`
	New  string  `json:"newText"`
}

// Option is an answer that a request offers. It is encoded as it was read.
type Option struct {
	Kind string          `json:"kind"`
	Name string          `json:"name"`
	ID   string          `json:"optionId"`
	Meta json.RawMessage `json:"_meta,omitempty"`

	raw json.RawMessage // nil if it was not read
}

type plainOption Option

// UnmarshalJSON implements [json.Unmarshaler].
func (o *Option) UnmarshalJSON(raw []byte) error {
	o.raw = slices.Clone(raw)
	return json.Unmarshal(raw, (*plainOption)(o))
}

// MarshalJSON implements [json.Marshaler].
func (o Option) MarshalJSON() ([]byte, error) {
	if o.raw != nil {
		return o.raw, nil
	}
	return strictjson.Encode(plainOption(o)), nil
}

// The kinds of options.
const (
	AllowOnce    = "allow_once"
	AllowAlways  = "allow_always"
	RejectOnce   = "reject_once"
	RejectAlways = "reject_always"
)

// Refuses reports whether the option is one that refuses the call.
func (o Option) Refuses() bool { return strings.HasPrefix(o.Kind, "reject") }

// AlwaysID is the id of acp-agent's own "always".
const AlwaysID = "allow-always"

// Request is a session/request_permission of an agent.
type Request struct {
	Call    Call     `json:"toolCall"`
	Options []Option `json:"options"`
	// Agent is the name of the agent's profile, "" if it has none.
	Agent string `json:"-"`
}

var requestShape = &strictjson.Shape{Fields: map[string]*strictjson.Shape{
	"toolCall": {Fields: map[string]*strictjson.Shape{
		"locations": {Items: named("path")}, "content": {Items: named("type", "path", "oldText", "newText")},
		"toolCallId": nil, "title": nil, "kind": nil, "status": nil, "rawInput": nil, "_meta": nil,
	}},
	"options": {Items: named("optionId", "kind", "name")},
}}

func named(names ...string) *strictjson.Shape {
	fields := make(map[string]*strictjson.Shape)
	for _, name := range names {
		fields[name] = nil
	}
	return &strictjson.Shape{Fields: fields}
}

// ParseRequest reads the params of a session/request_permission. The error is not nil if they could
// be read in several ways; the request is one of them then.
func ParseRequest(params json.RawMessage) (r Request, err error) {
	err = json.Unmarshal(params, &r)
	return r, cmp.Or(strictjson.Refuse(strictjson.Check(params, requestShape)...), err)
}

// Once returns the option that allows the call once. ok is false if there is not exactly one, or
// another option has the same id.
func (r Request) Once() (once Option, ok bool) {
	i := slices.IndexFunc(r.Options, func(o Option) bool { return o.Kind == AllowOnce })
	if i < 0 {
		return once, false
	}
	once = r.Options[i]
	others := slices.Concat(r.Options[:i], r.Options[i+1:])
	return once, once.ID != "" && !slices.ContainsFunc(others, func(o Option) bool {
		return o.Kind == AllowOnce || o.ID == once.ID
	})
}

// Refusal returns an option that refuses the call.
func (r Request) Refusal() (refusal Option, ok bool) {
	for _, kind := range []string{RejectOnce, RejectAlways} {
		for _, o := range r.Options {
			if o.Kind == kind {
				return o, o.ID != ""
			}
		}
	}
	return refusal, false
}

// OnlyOnce returns the options to allow and to refuse once. Agents would follow an "always" even
// where a rule does not stop the question. ok is false if not both remain.
func (r Request) OnlyOnce() (options []Option, ok bool) {
	once, allows := r.Once()
	refusal, refuses := r.Refusal()
	return []Option{once, refusal}, allows && refuses
}

// Offering returns the options of a request about an action. A rule replaces the agent's "always",
// and there is at most one option of each kind, because some clients keep only one.
func (r Request) Offering(rule Rule, a Action) (options []Option, ok bool) {
	once, allows := r.Once()
	always := Option{ID: AlwaysID, Kind: AllowAlways, Name: rule.Label(a), Meta: strictjson.Encode(
		protocol.OurMeta(map[string]string{"rule": rule.String()}))}
	options = []Option{once, always}
	refusal, refuses := r.Refusal()
	if refuses {
		options = append(options, refusal)
	}
	return options, allows && once.ID != AlwaysID && refusal.ID != AlwaysID
}

// Chosen returns the option that a client's answer chooses.
func (r Request) Chosen(result json.RawMessage) (o Option, ok bool) {
	var answer struct {
		Outcome struct {
			Outcome string `json:"outcome"`
			ID      string `json:"optionId"`
		} `json:"outcome"`
	}
	if strictjson.Decode(result, &answer) != nil || answer.Outcome.Outcome != "selected" {
		return o, false
	}
	i := slices.IndexFunc(r.Options, func(o Option) bool { return o.ID == answer.Outcome.ID })
	if i < 0 {
		return o, false
	}
	return r.Options[i], true
}

// unclearOptions says why the options show that the agent asks about more than one action, or that
// it has a reason to ask again.
func (r Request) unclearOptions(verb Verb) string {
	_, once := r.Once()
	switch {
	case !once:
		return "the agent offers not exactly one way to allow it once"
	case r.Options[0].Refuses():
		return "the agent suggests refusing it"
	case verb != Read && !slices.ContainsFunc(r.Options, func(o Option) bool {
		return o.Kind == AllowAlways
	}):
		return "the agent does not offer to allow it permanently"
	}
	return ""
}
