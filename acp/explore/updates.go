package explore

import "github.com/acp-agent/acp-agent/acp/backend"

// The updates that this runtime sends, as far as it uses them.

type textChunk struct {
	Kind    string    `json:"sessionUpdate"`
	Content textBlock `json:"content"`
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// toolCall is a tool_call, or a tool_call_update, which leaves out what stays as it was. A question for
// permission has one without a kind of update.
type toolCall struct {
	Kind      string        `json:"sessionUpdate,omitempty"`
	ID        string        `json:"toolCallId"`
	Title     string        `json:"title,omitempty"`
	Tool      toolKind      `json:"kind,omitempty"`
	Status    toolStatus    `json:"status"`
	Content   []toolContent `json:"content,omitempty"`
	Locations []location    `json:"locations,omitempty"`
	RawInput  any           `json:"rawInput,omitempty"`
}

type toolKind string

const (
	toolSearch toolKind = "search"
	toolRead   toolKind = "read"
	toolEdit   toolKind = "edit"
)

type toolStatus string

const (
	toolPending    toolStatus = "pending"
	toolInProgress toolStatus = "in_progress"
	toolCompleted  toolStatus = "completed"
	toolFailed     toolStatus = "failed"
)

// toolContent is a text, or a diff.
type toolContent struct {
	Type    string     `json:"type"`
	Content *textBlock `json:"content,omitempty"`
	*diff
}

// diff is what becomes of a file; OldText is nil if there was none.
type diff struct {
	Path    string  `json:"path"`
	OldText *string `json:"oldText"`
	NewText string  `json:"newText"`
}

// location is a place in a file; line 0 is the file as a whole.
type location struct {
	Path string `json:"path"`
	Line int    `json:"line,omitempty"`
}

type availableCommands struct {
	Kind     string             `json:"sessionUpdate"`
	Commands []availableCommand `json:"availableCommands"`
}

type availableCommand struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Input       *commandInput `json:"input,omitempty"`
}

type commandInput struct {
	Hint string `json:"hint"`
}

func text(s string) textBlock { return textBlock{Type: "text", Text: s} }

// encode makes an update of one of the types above.
func encode(update any) backend.Update { return backend.Encode(map[string]any{"update": update}) }
