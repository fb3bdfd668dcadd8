package llm

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"time"
)

// API is the wire format of a model's server.
type API string

// All wire formats.
const (
	// OpenAI is OpenAI's chat completions.
	OpenAI API = "openai"
	// Responses is OpenAI's responses.
	Responses API = "responses"
	// Anthropic is Anthropic's messages.
	Anthropic API = "anthropic"
)

// Model describes a model: how to reach it, and what it accepts.
type Model struct {
	API     API    // default OpenAI
	BaseURL string // of the API; default that of the company that defined it
	Name    string // the server's name for the model
	// Key returns another key than the rejected one, if that is not "". Headers returns additional
	// headers. Both are called before each request, and may be nil.
	Key           func(ctx context.Context, rejected string) (string, error)
	Headers       func() (map[string]string, error)
	ContextTokens int           // of a request and its answer; 0 if only the server may know it
	MaxTokens     int           // of an answer, including thinking; 0 for the default of the API
	Silence       time.Duration // how long no part of an answer may come; default 5 minutes
	TextOnly      bool          // it accepts no images
	PDF           *bool         // whether it accepts PDF documents; nil for the default of the API
	HasFallback   bool          // another model answers if this one's server is too busy
}

// Origin identifies the model and its server, without revealing the server's address. OpenAI's
// responses and chat completions have the same address, but one cannot use what the other has
// attached to answers. So they count as different models.
func (m Model) Origin() string {
	server := sha256.Sum256([]byte(m.BaseURL))
	origin := fmt.Sprintf("%s@%x", m.Name, server[:6])
	if m.API == Responses {
		origin += "/" + string(m.API)
	}
	return origin
}

// Takes reports whether the model accepts media of a type, given its defaults.
func (m Model) Takes(mediaType string) bool {
	if mediaType == PDF {
		return m.PDF != nil && *m.PDF
	}
	return !m.TextOnly
}

// address returns BaseURL, an empty one if it is not valid.
func (m Model) address() *url.URL {
	u, err := url.Parse(m.BaseURL)
	if err != nil {
		return &url.URL{}
	}
	return u
}

// Request is a request for the next message of a conversation.
type Request struct {
	System   string
	Messages []Message
	Tools    []Tool
	// Effort says how much the model should think before it answers: "low", "medium", "high", or ""
	// for the server's default.
	Effort string
	// MaxTokens, if not 0, bounds the answer further.
	MaxTokens int
	// Temperature and Stop are nil for the server's defaults.
	Temperature *float64
	Stop        []string
}

// Role says who a message is from.
type Role string

// All roles. Results of tools are messages of the user.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is a message of a conversation. Messages of one role may follow each other.
type Message struct {
	Role  Role
	Parts []Part
}

// UserText returns a message of the user.
func UserText(text string) Message { return Message{Role: User, Parts: []Part{Text(text)}} }

// Part is a part of a message: [Text], [Media], [Thinking], [ToolCall] or [ToolResult].
type Part interface{ part() }

// Text is text.
type Text string

// Media is an image or a PDF document.
type Media struct {
	MediaType string // such as "image/png"
	Data      []byte
}

// PDF is the media type of documents.
const PDF = "application/pdf"

// Thinking holds a model's thoughts before its answer. Anthropic and others, such as DeepSeek and
// Kimi, must get them back unchanged. Text can be empty. Anthropic identifies thoughts by Signature
// or Redacted.
type Thinking struct {
	// From is the [Model.Origin] of the model. Only that model gets the thoughts back.
	From      string `json:"from,omitempty"`
	Text      string `json:"text,omitempty"`
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"`
	// Attached is nil or a JSON object with the members of the message that have no meaning here.
	// They are sent back with it, because some servers need them.
	Attached json.RawMessage `json:"attached,omitempty"`
}

// ToolCall is a request of the model to call a tool.
type ToolCall struct {
	// ID is unique in the conversation.
	ID, Name string
	// Arguments are the arguments as the model wrote them. They need not be a JSON object.
	Arguments string
	// From is the [Model.Origin] of the model. Only that model gets Given and Attached back.
	From string
	// Given, if not "", is the model's own ID of the call, which is sent to the model instead of
	// ID.
	Given string
	// Attached is nil or a JSON object with the members of the call that have no meaning here. They
	// are sent back with it. Gemini signs its calls that way.
	Attached json.RawMessage
}

// ToolResult is the result of the tool call with this ID.
type ToolResult struct {
	ID      string
	Content []Part // texts and media
	Failed  bool
}

func (Text) part()       {}
func (Media) part()      {}
func (Thinking) part()   {}
func (ToolCall) part()   {}
func (ToolResult) part() {}

// Tool is a tool that the model may call. Its name has up to 64 letters, digits, "_" and "-", and
// begins with a letter or "_".
type Tool struct {
	Name, Description string
	// Schema is the JSON schema of the arguments.
	Schema json.RawMessage
}

// Event is a part of an answer as it arrives: [TextDelta], [ThinkingDelta], [Thinking], [ToolCall],
// [CallDelta], [Retry] or [Finish].
type Event interface{ event() }

// TextDelta is a piece of the answer's text.
type TextDelta string

// ThinkingDelta is a piece of the model's thinking.
type ThinkingDelta string

// CallDelta is a piece of a tool call that is arriving. It is only for display: the call is valid
// once there is a [ToolCall], which may never come. After a [Retry] the pieces start again.
type CallDelta struct {
	// Index counts the calls of an answer from 0.
	Index int
	Name  string
	// Arguments continue those of the call so far.
	Arguments string
}

// Retry says that a request has failed, and will be sent again after a delay. The part of the
// answer that has arrived is void: the answer begins again.
type Retry struct {
	Err   *Error
	After time.Duration
}

// Finish ends an answer. It is the last event.
type Finish struct {
	Reason Reason
	Usage  Usage
	// Said is the reason in the server's words, if it is [Other].
	Said string
}

func (TextDelta) event()     {}
func (ThinkingDelta) event() {}
func (Thinking) event()      {}
func (ToolCall) event()      {}
func (CallDelta) event()     {}
func (Retry) event()         {}
func (Finish) event()        {}

// Reason says why a model stopped.
type Reason string

// All reasons.
const (
	// Stopped means that the model has finished.
	Stopped Reason = "stop"
	// StopText means that a text of Request.Stop was reached. Chat completions report it as
	// Stopped.
	StopText Reason = "stop text"
	// CallsTools means that the model waits for the results of its tool calls.
	CallsTools Reason = "tools"
	// Length means that the answer reached its maximum of tokens. Incomplete tool calls are left
	// out.
	Length Reason = "length"
	// Refused means that the model or its server refuses to answer.
	Refused Reason = "refused"
	// Paused means that the model continues if it gets its answer back.
	Paused Reason = "paused"
	// Other means that the server gives a reason that is not known here, see Finish.Said.
	Other Reason = "other"
)

// Usage counts tokens. Zero means that the server did not say.
type Usage struct {
	// Input is the whole request, Cached the part of it that the server had cached, and Output the
	// answer, including thinking.
	Input, Cached, Output int
}

// Kind says what went wrong.
type Kind string

// All kinds of errors.
const (
	// Unreachable means that there was no connection, or that it was lost or silent for too long.
	Unreachable Kind = "unreachable"
	// KeyRejected means that no key was given, or that the server requires another one.
	KeyRejected Kind = "key rejected"
	// Forbidden means that the server does not allow the request to this account, or from this
	// place or network.
	Forbidden Kind = "forbidden"
	// Unpaid means that the user's account at the provider is empty.
	Unpaid Kind = "unpaid"
	// TooLong means that the conversation does not fit into the model's context.
	TooLong Kind = "too long"
	// Overloaded means that the server is too busy, has failed, or accepts no more requests for
	// now.
	Overloaded Kind = "overloaded"
	// Slipped means that the model has written a tool call that its server could not read.
	Slipped Kind = "slipped"
	// Filtered means that a content filter of the server rejected the request.
	Filtered Kind = "filtered"
	// StaleThoughts means that the server does not accept thoughts of the model, because another
	// server has signed or encrypted them: a gateway has several servers.
	StaleThoughts Kind = "stale thoughts"
	// Misconfigured means that the server does not know the address or the model, or does not
	// accept a setting.
	Misconfigured Kind = "misconfigured"
	// Rejected means that the server does not accept the request for another reason.
	Rejected Kind = "rejected"
	// Malformed means that the answer is not of the expected format.
	Malformed Kind = "malformed"
)

// Error is a failed request.
type Error struct {
	Kind Kind
	// Status is the status of the HTTP response, 0 if there was none.
	Status int
	// Message says what happened, on one line of limited length and without the key. It quotes the
	// server if possible.
	Message string
}

func (e *Error) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("%s (HTTP status %d)", e.Message, e.Status)
	}
	return e.Message
}
