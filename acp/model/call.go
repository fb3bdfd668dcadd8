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
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
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
	turn      *modelTurn
	tool      tool
	title     string
	kind      sdk.ToolKind
	phase     phase
	content   []any  // what is shown, nil for nothing
	permitted string // the text of a file that the user has been shown
	made      []any  // what is shown of a write that has been made in another text
	// mayRead are the files about which the user was asked, as a rule wants.
	mayRead map[workspace.Ref]bool
}

// phase is how far a call is.
type phase int

const (
	callUnseen    phase = iota // by the client
	callDrafted                // shown while it arrives
	callAnnounced              // shown as it will be run
	callRunning                // it may have had an effect
	callEnded
)

// outcome is how a call has ended.
type outcome struct {
	said   string     // for the model
	media  []llm.Part // likewise
	failed bool
	reason string // why it failed, for the user, "" if said tells it
	shown  bool   // by the client of the MCP server
}

// newCall returns a call of the tool that the model calls by a name, with an ID of our own: models
// need their own IDs back, but some use the same ID for several calls. Some only accept nine
// letters and digits.
func (b *toolbox) newCall(name string) *modelCall {
	t, known := b.find(name)
	if !known {
		t = b.unknown(name)
	}
	return &modelCall{
		ToolCall: llm.ToolCall{ID: rand.Text()[:9], Name: t.Name}, turn: b.turn, tool: t,
		title: t.title(nil), kind: cmp.Or(sdk.ToolKind(t.Kind), sdk.ToolKindOther),
		mayRead: map[workspace.Ref]bool{},
	}
}

// complete fills in what the model requests.
func (c *modelCall) complete(requested llm.ToolCall) {
	arguments := c.tool.Canonical(json.RawMessage(requested.Arguments))
	requested.ID, requested.Given = c.ID, requested.ID
	requested.Name, requested.Arguments = c.Name, string(arguments)
	c.ToolCall, c.title = requested, c.tool.title(arguments)
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
			Title: &c.title, Kind: &c.kind, RawInput: c.rawInput(),
			Status:    sdk.Ptr(sdk.ToolCallStatusPending),
			Locations: c.locations(json.RawMessage(c.Arguments)),
			Meta: protocol.OurMeta(entry{
				Tool: c.Name, Step: c.turn.steps, Given: c.Given, From: c.From, Attached: c.Attached,
			}),
		},
	}
	if c.phase == callDrafted {
		c.content = nil // which was that of a part
		s.SessionUpdate, s.Content = sessionstore.ToolCallUpdate, c.diff(partialStrings(c.Arguments))
	}
	c.phase = callAnnounced
	return c.show(ctx, s)
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
	o, err := c.tool.run(c, ctx)
	switch {
	case err != nil && endsTurn(ctx, err):
		return err
	case err != nil:
		o = outcome{said: err.Error(), failed: true, reason: reasonForUser(err)}
	}
	return c.end(ctx, o)
}

// runOwn calls a tool that is not from an MCP server.
func (c *modelCall) runOwn(ctx context.Context) (outcome, error) {
	if c.tool.parallel {
		c.phase = callRunning
		if err := c.showStatus(ctx, sdk.ToolCallStatusInProgress, nil); err != nil {
			return outcome{}, err
		}
	}
	arguments := json.RawMessage(c.Arguments)
	result, err := c.tool.Call(ctx, arguments, tools.Caller{
		Permit: c.permit, Made: c.noteMade, Check: c.checkAccess, Host: c,
	})
	if err != nil {
		return outcome{}, err
	}
	ws, paths := c.turn.host.Workspace(), tools.Paths(arguments)
	o := outcome{said: result.Text + c.turn.notes.mentions.Lines(ctx, ws, paths...)}
	if result.Media != nil {
		note, media := c.turn.picture(result.Media.Type, result.Media.Data)
		o.said, o.media = o.said+note, media
	}
	return o, nil
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

// end ends the call, and shows that, even if ctx has ended. If the call may have changed something,
// that is stored first.
func (c *modelCall) end(ctx context.Context, o outcome) error {
	c.phase = callEnded
	o.said += c.turn.judge(c, o)
	status := sdk.ToolCallStatusCompleted
	if o.failed {
		status = sdk.ToolCallStatusFailed
	}
	s := backend.ToolCall{Content: c.made}
	s.Status, s.RawOutput = &status, map[string]string{"text": o.said}
	inTerminal := c.kind == sdk.ToolKindExecute && c.content != nil
	if o.failed && !o.shown && !inTerminal {
		reason := sdk.ToolContent(sdk.TextBlock(text.Plain(cmp.Or(o.reason, o.said))))
		s.Content = append(slices.Clip(c.content), reason)
	}
	send := c.show
	if !c.tool.Annotations.ReadOnly {
		send = c.commit
	}
	if err := send(context.WithoutCancel(ctx), s); err != nil {
		return err
	}
	if len(o.media) > 0 {
		content := append([]llm.Part{llm.Text(o.said)}, o.media...)
		c.turn.conversation.setResult(llm.ToolResult{ID: c.ID, Content: content})
	}
	return nil
}
