package model

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

const (
	// maxResult bounds the text of a result of an MCP server or a terminal, in bytes. Other tools
	// have bounds of their own.
	maxResult = 32 << 10
	// maxPictured bounds the images that tools show the model in a turn, in bytes.
	maxPictured = 64 << 20
	// warnAfter and stopAfter are how often the same call may fail in the same way before the model
	// is warned, and before the turn ends.
	warnAfter, stopAfter = 3, 5
)

// call is a tool call that is shown to the user. Its ID is that under which the user sees it.
type call struct {
	llm.ToolCall
	turn      *turn
	tool      tool   // zero if no tool has this name
	unknown   string // what the model is told in this case
	input     callInput
	title     string
	kind      sdk.ToolKind
	announced bool
	byServer  bool // the MCP server's client shows the call
	ended     bool
	content   []any // what is shown, nil for nothing
}

// callInput are the arguments that say what a call is about.
type callInput struct {
	Path, To, Pattern, Glob, Command string
	Paths                            []string
	Offset                           int
}

func (b *toolbox) newCall(asked llm.ToolCall) *call {
	c := &call{ToolCall: asked, turn: b.turn}
	// Some models only accept IDs of nine letters and digits.
	c.ID = rand.Text()[:9]
	if c.tool = b.byName[c.Name]; c.tool.Name == "" {
		c.unknown = fmt.Sprintf("there is no tool %q; the tools are %s", text.Truncate(c.Name, 100), b.names())
		// What a model makes up goes back to its server, which may only accept valid names.
		c.Name = validName(c.Name)
	}
	_ = json.Unmarshal([]byte(c.Arguments), &c.input) // the tool checks them
	c.title, c.kind = c.describe()
	return c
}

// validName returns a name with "_" in place of what the name of a tool may not have.
func validName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < 128 && (r == '_' || r == '-' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z') {
			return r
		}
		return '_'
	}, name)
	return cmp.Or(name[:min(len(name), 64)], "_")
}

// describe returns what the call does in plain words, and its kind.
func (c *call) describe() (string, sdk.ToolKind) {
	show := func(s string) string { return text.Printable(text.Truncate(s, 200)) }
	in := c.input
	where := ""
	if in.Path != "" {
		where = " in " + show(in.Path)
	}
	if c.tool.remote != "" {
		return "MCP tool " + c.tool.remote, sdk.ToolKindOther
	}
	switch c.Name {
	case "list_roots":
		return "List the roots", sdk.ToolKindRead
	case "list_directory":
		return "List " + cmp.Or(show(in.Path), "the first root"), sdk.ToolKindRead
	case "directory_tree":
		return "Show the tree of " + cmp.Or(show(in.Path), "the roots"), sdk.ToolKindRead
	case "file_info":
		return "Look up " + show(in.Path), sdk.ToolKindRead
	case "find_files":
		return "Find " + cmp.Or(show(in.Glob), "files") + where, sdk.ToolKindSearch
	case "search":
		return "Search for " + text.Quote(text.Truncate(in.Pattern, 200)) + where, sdk.ToolKindSearch
	case "read_file", "read_media":
		return "Read " + show(in.Path), sdk.ToolKindRead
	case "read_files":
		return "Read " + show(strings.Join(in.Paths, ", ")), sdk.ToolKindRead
	case "write_file":
		return "Write " + show(in.Path), sdk.ToolKindEdit
	case "edit_file":
		return "Edit " + show(in.Path), sdk.ToolKindEdit
	case "create_directory":
		return "Create directory " + show(in.Path), sdk.ToolKindEdit
	case "delete_file":
		return "Delete " + show(in.Path), sdk.ToolKindDelete
	case "move_file":
		return "Move " + show(in.Path) + " to " + show(in.To), sdk.ToolKindMove
	case planName:
		return "Update the plan", sdk.ToolKindThink
	case commandName:
		return text.Code(text.Line(in.Command, 200)), sdk.ToolKindExecute
	default:
		return "Unknown tool " + c.Name, sdk.ToolKindOther
	}
}

// locations returns where the files are that the call is about, as far as they exist in the roots.
func (c *call) locations() []sdk.ToolCallLocation {
	const most = 100
	var all []sdk.ToolCallLocation
	for _, path := range tools.Paths(json.RawMessage(c.Arguments)) {
		if path == "" || c.kind == sdk.ToolKindOther || len(all) == most {
			continue
		}
		info, err := c.turn.host.Workspace().Stat(path)
		if err == nil {
			all = append(all, backend.Locations(info.Ref().Path(), max(c.input.Offset, 0))...)
		}
	}
	return all
}

// announce shows the call before it is run.
func (c *call) announce(ctx context.Context) error {
	c.announced = true
	s := backend.ToolCall{SessionUpdate: sessionstore.ToolCall, ToolCallUpdate: sdk.ToolCallUpdate{
		Meta: c.meta(), Title: &c.title, Kind: &c.kind, Status: sdk.Ptr(sdk.ToolCallStatusPending), RawInput: c.rawInput(), Locations: c.locations(),
	}}
	return c.show(ctx, s)
}

// meta says which tool the model has called.
func (c *call) meta() map[string]any { return meta{Tool: c.Name, Step: c.turn.steps}.encode() }

// rawInput returns the arguments as the model wrote them: JSON, or a text that is not.
func (c *call) rawInput() any {
	if raw := json.RawMessage(c.Arguments); json.Valid(raw) {
		return raw
	}
	return c.Arguments
}

// show sends an update of the call.
func (c *call) show(ctx context.Context, s backend.ToolCall) error {
	s.SessionUpdate = cmp.Or(s.SessionUpdate, sessionstore.ToolCallUpdate)
	s.ToolCallId = sdk.ToolCallId(c.ID)
	if s.Content != nil {
		c.content = s.Content
	}
	return c.turn.updates.Update(ctx, backend.NewUpdate(s))
}

// showStatus sends a new status, and content unless it is nil.
func (c *call) showStatus(ctx context.Context, status sdk.ToolCallStatus, content []any) error {
	return c.show(ctx, backend.ToolCall{ToolCallUpdate: sdk.ToolCallUpdate{Status: &status}, Content: content})
}

// run runs the call. An error ends the turn.
func (c *call) run(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if c.tool.remote != "" {
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
	result, err := c.tool.Call(context.WithValue(ctx, callKey{}, c), json.RawMessage(c.Arguments))
	switch {
	case err != nil && endsTurn(ctx, err):
		return err
	case err != nil:
		return c.end(ctx, err.Error(), nil, failed)
	}
	said := result.Text + c.turn.tools.mentions.Lines(ctx, c.turn.host.Workspace(), tools.Paths(json.RawMessage(c.Arguments))...)
	if result.Media == nil {
		return c.end(ctx, said, nil, completed)
	}
	note, images := c.turn.picture(result.Media.Type, result.Media.Data)
	return c.end(ctx, said+note, images, completed)
}

// endsTurn reports whether an error of a call ends the turn, rather than being a result for the
// model.
func endsTurn(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	for _, fatal := range []error{backend.ErrCancelled, backend.ErrClosed, backend.ErrFenced, backend.ErrTurnOver, workspace.ErrClosed} {
		if errors.Is(err, fatal) {
			return true
		}
	}
	return false
}

// picture returns an image for the model, or a note that tells the model why it cannot be shown.
func (t *turn) picture(mediaType string, data []byte) (note string, images []llm.Part) {
	_, client := t.current()
	image, err := newImage(data)
	switch {
	case !strings.HasPrefix(mediaType, "image/"):
		return fmt.Sprintf("[You cannot be shown files of type %s.]\n", text.Truncate(mediaType, 100)), nil
	case client.Model().TextOnly:
		return "[You cannot be shown images.]\n", nil
	case err != nil:
		return "[You cannot be shown the image: " + err.Error() + ".]\n", nil
	case t.pictured.Add(int64(len(data))) > maxPictured:
		return "[You cannot be shown more images before the user's next message.]\n", nil
	default:
		return "", []llm.Part{image}
	}
}

const (
	failed    = sdk.ToolCallStatusFailed
	completed = sdk.ToolCallStatusCompleted
)

// end ends the call with a result for the model, and shows it as ended, even if ctx has ended.
func (c *call) end(ctx context.Context, result string, images []llm.Part, status sdk.ToolCallStatus) error {
	c.ended = true
	result += c.turn.judge(c, result, status)
	s := backend.ToolCall{ToolCallUpdate: sdk.ToolCallUpdate{Status: &status, RawOutput: map[string]string{"text": result}}}
	inTerminal := c.kind == sdk.ToolKindExecute && c.content != nil
	if status == failed && !c.byServer && !inTerminal {
		s.Content = append(slices.Clip(c.content), sdk.ToolContent(sdk.TextBlock(text.Plain(result))))
	}
	if err := c.show(context.WithoutCancel(ctx), s); err != nil {
		return err
	}
	if len(images) > 0 {
		c.turn.conversation.setResult(llm.ToolResult{ID: c.ID, Content: append([]llm.Part{llm.Text(result)}, images...)})
	}
	return nil
}

// runRemote calls the tool of an MCP server. The server's tools show their calls themselves.
func (c *call) runRemote(ctx context.Context) error {
	if set, _ := c.turn.current(); !set.Mode.mayChange() && !c.tool.Annotations.ReadOnly { // the user may have changed the mode since the step began
		return errors.Join(c.announce(ctx), c.end(ctx, errModeReads.Error(), nil, failed))
	}
	result, err := c.turn.host.Tools().Call(ctx, remoteUpdates{c}, c.tool.remote, backend.Raw(c.Arguments))
	if err != nil && endsTurn(ctx, err) {
		return err
	}
	if !c.announced {
		if err := c.announce(ctx); err != nil {
			return err
		}
	}
	if err != nil {
		return c.end(ctx, err.Error(), nil, failed)
	}
	said, images := c.turn.fromServer(result)
	status := completed
	if result.Failed {
		status = failed
	}
	return c.end(ctx, said, images, status)
}

// remoteUpdates passes on the updates about a call that shows itself. It adds which tool the model
// has called, and notes the ID.
type remoteUpdates struct{ call *call }

func (r remoteUpdates) Update(ctx context.Context, u backend.Update) error {
	if u.Kind != sessionstore.ToolCall {
		return r.call.turn.updates.Update(ctx, u)
	}
	update := strictjson.Find(u.Raw, "update")
	var announced struct{ ToolCallID string }
	if err := json.Unmarshal(update, &announced); err != nil {
		return err
	}
	r.call.ID, r.call.announced, r.call.byServer = announced.ToolCallID, true, true
	update, err := strictjson.Put(update, "_meta", backend.Encode(r.call.meta()))
	if err == nil {
		u.Raw, err = strictjson.Put(u.Raw, "update", update)
	}
	if err != nil {
		return err
	}
	return r.call.turn.updates.Update(ctx, u)
}

// fromServer returns the result of an MCP server's tool for the model.
func (t *turn) fromServer(r backend.ToolResult) (string, []llm.Part) {
	var said strings.Builder
	var images []llm.Part
	for _, raw := range r.Content {
		var block struct {
			Type, Text, URI, MIMEType string
			Data                      []byte
			Resource                  struct{ URI, Text string }
		}
		if json.Unmarshal(raw, &block) != nil {
			continue
		}
		switch block.Type {
		case "text":
			said.WriteString(block.Text + "\n")
		case "resource":
			fmt.Fprintf(&said, "%s:\n%s\n", block.Resource.URI, cmp.Or(block.Resource.Text, "[This is not text.]"))
		case "resource_link":
			fmt.Fprintf(&said, "[A link to %s.]\n", block.URI)
		default:
			note, shown := t.picture(cmp.Or(block.MIMEType, block.Type), block.Data)
			said.WriteString(note)
			images = append(images, shown...)
		}
	}
	if said.Len() == 0 && len(images) == 0 && len(r.Structured) > 0 {
		said.Write(r.Structured)
	}
	if said.Len() == 0 && len(images) == 0 {
		said.WriteString("[The result is empty.]")
	}
	result := said.String()
	if len(result) > maxResult {
		result = text.Prefix(result, maxResult) + fmt.Sprintf("\n[… truncated: the result has %s. Ask the tool for less at a time to see the rest.]", text.Size(len(result)))
	}
	if r.Cut != "" {
		result += "\n[" + r.Cut + ".]"
	}
	return result, images
}

// judge counts calls that fail in the same way. It returns what to add to the result, and stops the
// turn after too many. A change that was made may let the calls succeed that failed before.
func (t *turn) judge(c *call, result string, status sdk.ToolCallStatus) string {
	t.judging.Lock()
	defer t.judging.Unlock()
	if status != failed {
		if !c.tool.Annotations.ReadOnly {
			clear(t.failures)
		}
		return ""
	}
	if t.failures == nil {
		t.failures = map[[sha256.Size]byte]int{}
	}
	key := sha256.Sum256(backend.Encode([]string{c.Name, c.Arguments, result}))
	t.failures[key]++
	switch n := t.failures[key]; {
	case n >= stopAfter:
		t.stuck = c.title
		return ""
	case n >= warnAfter:
		return fmt.Sprintf("\n[This call has failed in the same way %d times. Do something else, or tell the user what is in the way.]", n)
	}
	return ""
}

// callKey is the key of the *call in the context of a tool.
type callKey struct{}

func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }
