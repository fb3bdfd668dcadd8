package model

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

const (
	// maxName bounds the name of a tool, in bytes, so that servers accept it.
	maxName = 64
	// maxResult bounds the text of a result of an MCP server or a terminal, in bytes. Other tools
	// have their own bounds.
	maxResult = 32 << 10
	// maxPictured bounds the images and documents that tools show the model in a turn, in bytes.
	maxPictured = 64 << 20
)

// modelCall is a tool call that is shown to the user. Its ID is the one that the client sees.
type modelCall struct {
	llm.ToolCall
	turn        *modelTurn
	tool        tool   // zero if no tool has this name
	unknown     string // the answer to the model in this case
	title       string
	kind        sdk.ToolKind
	announced   bool
	began       bool   // it was permitted, and may have had an effect
	reason      string // why it failed, for the user, "" if the result says it
	resultShown bool   // by the client of the MCP server
	ended       bool
	content     []any  // what is shown, nil for nothing
	permitted   string // the text of a file that the user has been shown
	made        []any  // what is shown of a write that has been made in another text
	// mayRead are the files about which the user was asked, as a rule wants.
	mayRead map[workspace.Ref]bool
}

// newCall returns the tool call that the model requests, with an ID of our own.
func (b *toolbox) newCall(requested llm.ToolCall) *modelCall {
	c := &modelCall{ToolCall: requested, turn: b.turn, tool: b.find(requested.Name)}
	// Models need their own IDs back, but some use the same ID for several calls. Some only accept
	// nine letters and digits.
	c.Given, c.ID = c.ID, rand.Text()[:9]
	if c.tool.Name != "" {
		c.Name = c.tool.Name
		c.Arguments = string(c.tool.Canonical(json.RawMessage(c.Arguments)))
		c.title, c.kind = c.tool.title(json.RawMessage(c.Arguments)), c.tool.kind()
		return c
	}
	var names []string
	for _, t := range b.tools {
		names = append(names, t.Name)
	}
	c.unknown = fmt.Sprintf("there is no tool %q; the tools are %s",
		text.Truncate(c.Name, 100), strings.Join(names, ", "))
	// A name that the model invented is sent back to its server, which may only accept valid names.
	c.Name = text.Prefix(text.Identifier(c.Name), maxName)
	c.title, c.kind = "Unknown tool "+c.Name, sdk.ToolKindOther
	return c
}

// locations returns where the files are that the arguments name, as far as they exist in the roots.
func (c *modelCall) locations(arguments json.RawMessage) []sdk.ToolCallLocation {
	var all []sdk.ToolCallLocation
	for _, place := range c.tool.Places(c.turn.host.Workspace(), arguments) {
		all = append(all, backend.Locations(place.Ref.Path(), place.Line)...)
	}
	return all
}

// announce shows the call before it is run. If it was already shown while it arrived, announce
// fills in what it will do.
func (c *modelCall) announce(ctx context.Context) error {
	s := backend.ToolCall{
		SessionUpdate: sessionstore.ToolCall,
		ToolCallUpdate: sdk.ToolCallUpdate{
			Meta: c.meta(), Title: &c.title, Kind: &c.kind, RawInput: c.rawInput(),
			Status: sdk.Ptr(sdk.ToolCallStatusPending), Locations: c.locations(json.RawMessage(c.Arguments)),
		},
	}
	if c.announced {
		s.SessionUpdate, s.Content = sessionstore.ToolCallUpdate, c.diff(partialStrings(c.Arguments))
	}
	c.announced = true
	return c.show(ctx, s)
}

// meta says which tool the model has called.
func (c *modelCall) meta() map[string]any {
	return meta{
		Tool: c.Name, Step: c.turn.steps, Given: c.Given, From: c.From, Attached: c.Attached,
	}.encode()
}

// rawInput returns the arguments as the model wrote them: as JSON, or as a string if they are not
// valid JSON.
func (c *modelCall) rawInput() any {
	if raw := json.RawMessage(c.Arguments); json.Valid(raw) {
		return raw
	}
	return c.Arguments
}

// show sends an update of the call.
func (c *modelCall) show(ctx context.Context, s backend.ToolCall) error {
	return c.turn.updates.Update(ctx, c.update(s))
}

// commit sends an update of the call once it is stored.
func (c *modelCall) commit(ctx context.Context, s backend.ToolCall) error {
	return c.turn.updates.Commit(ctx, c.update(s))
}

func (c *modelCall) update(s backend.ToolCall) backend.Update {
	s.SessionUpdate = cmp.Or(s.SessionUpdate, sessionstore.ToolCallUpdate)
	s.ToolCallId = sdk.ToolCallId(c.ID)
	if s.Content != nil {
		c.content = s.Content
	}
	return backend.NewUpdate(s)
}

// showStatus sends a new status, and content unless it is nil.
func (c *modelCall) showStatus(
	ctx context.Context, status sdk.ToolCallStatus, content []any,
) error {
	s := backend.ToolCall{Content: content}
	s.Status = &status
	return c.show(ctx, s)
}

// run runs the call. An error ends the turn.
func (c *modelCall) run(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if c.tool.remote != "" {
		c.began = true
		return c.runRemote(ctx)
	}
	if c.tool.Name == "" {
		return c.end(ctx, c.unknown, nil, failed)
	}
	if c.tool.isParallel() {
		if err := c.showStatus(ctx, sdk.ToolCallStatusInProgress, nil); err != nil {
			return err
		}
	}
	arguments := json.RawMessage(c.Arguments)
	result, err := c.tool.forCall(c).Call(ctx, arguments)
	switch {
	case err != nil && endsTurn(ctx, err):
		return err
	case err != nil:
		c.reason = reasonForUser(err)
		return c.end(ctx, err.Error(), nil, failed)
	}
	ws, paths := c.turn.host.Workspace(), tools.Paths(arguments)
	said := result.Text + c.turn.tools.mentions.Lines(ctx, ws, paths...)
	if result.Media == nil {
		return c.end(ctx, said, nil, completed)
	}
	note, media := c.turn.picture(result.Media.Type, result.Media.Data)
	return c.end(ctx, said+note, media, completed)
}

// endsTurn reports whether an error of a call ends the turn, rather than being a result for the
// model.
func endsTurn(ctx context.Context, err error) bool {
	return ctx.Err() != nil || slices.ContainsFunc([]error{
		backend.ErrCancelled, backend.ErrClosed, backend.ErrFenced, backend.ErrTurnOver,
		workspace.ErrClosed,
	}, func(fatal error) bool { return errors.Is(err, fatal) })
}

// picture returns an image or document for the model, or a note that tells the model why it cannot
// be shown.
func (t *modelTurn) picture(mediaType string, data []byte) (note string, shown []llm.Part) {
	media, err := newMedia(data)
	switch {
	case !strings.HasPrefix(mediaType, "image/") && mediaType != llm.PDF,
		!t.endpoint.Model().Takes(mediaType):
		kind := text.Truncate(mediaType, 100)
		return fmt.Sprintf("[You cannot be shown files of type %s.]\n", kind), nil
	case err != nil:
		return "[You cannot be shown the image or document: " + err.Error() + ".]\n", nil
	case t.pictured.Add(int64(len(data))) > maxPictured:
		return "[You cannot be shown more images before the user's next message.]\n", nil
	default:
		return "", []llm.Part{media}
	}
}

const (
	failed    = sdk.ToolCallStatusFailed
	completed = sdk.ToolCallStatusCompleted
)

// end ends the call with a result for the model, and shows it as ended, even if ctx has ended. If
// it may have changed something, that is stored first.
func (c *modelCall) end(
	ctx context.Context, result string, media []llm.Part, status sdk.ToolCallStatus,
) error {
	c.ended = true
	result += c.turn.judge(c, result, status)
	s := backend.ToolCall{}
	s.Status, s.RawOutput, s.Content = &status, map[string]string{"text": result}, c.made
	inTerminal := c.kind == sdk.ToolKindExecute && c.content != nil
	if status == failed && !c.resultShown && !inTerminal {
		reason := sdk.ToolContent(sdk.TextBlock(text.Plain(cmp.Or(c.reason, result))))
		s.Content = append(slices.Clip(c.content), reason)
	}
	send := c.show
	if c.tool.Name != "" && !c.tool.Annotations.ReadOnly {
		send = c.commit
	}
	if err := send(context.WithoutCancel(ctx), s); err != nil {
		return err
	}
	if len(media) > 0 {
		content := append([]llm.Part{llm.Text(result)}, media...)
		c.turn.conversation.setResult(llm.ToolResult{ID: c.ID, Content: content})
	}
	return nil
}
