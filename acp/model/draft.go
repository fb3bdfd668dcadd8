package model

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

const (
	// firstDraft and lastDraft are the shortest and the longest time between two updates with the
	// growing arguments of a call, which are all stored.
	firstDraft, lastDraft = 250 * time.Millisecond, 5 * time.Second
	// maxDraft is the longest text that is shown while it grows, in bytes.
	maxDraft = 32 << 10
)

// draft is a tool call that the model is still writing. It is shown, but it is not part of the
// conversation until the call is complete: before that, its updates have no _meta.
type draft struct {
	*modelCall
	arguments []byte
	shown     int // length of the arguments in the last update
	interval  time.Duration
	next      time.Time // when the next update may be sent
}

// draft shows a piece of a tool call that arrives.
func (b *toolbox) draft(ctx context.Context, piece llm.CallDelta) error {
	d := b.drafts[piece.Index]
	if d == nil {
		if _, known := b.find(piece.Name); !known {
			return nil
		}
		d = &draft{modelCall: b.newCall(piece.Name), interval: firstDraft}
		d.phase, b.drafts[piece.Index] = callDrafted, d
		begun := sdk.ToolCallUpdate{
			Title: &d.title, Kind: &d.kind, Status: sdk.Ptr(sdk.ToolCallStatusPending),
		}
		if err := d.show(ctx, backend.ToolCall{
			SessionUpdate: sessionstore.ToolCall, ToolCallUpdate: begun,
		}); err != nil {
			return err
		}
	}
	d.arguments = append(d.arguments, piece.Arguments...)
	if len(d.arguments) > maxDraft || time.Now().Before(d.next) {
		return nil
	}
	return d.grow(ctx)
}

// grow shows what is known of the arguments.
func (d *draft) grow(ctx context.Context) error {
	known := partialStrings(string(d.arguments))
	if len(known) == 0 || len(d.arguments) == d.shown {
		return nil
	}
	d.shown = len(d.arguments)
	d.next, d.interval = time.Now().Add(d.interval), min(d.interval*3/2, lastDraft)
	title := d.tool.title(backend.Encode(known))
	update := backend.ToolCall{Content: d.diff(known)}
	if title != d.title {
		d.title, update.Title = title, &title
	}
	update.Locations = d.locations(backend.Encode(map[string]string{"path": known["path"]}))
	if update.Title == nil && update.Content == nil {
		return nil
	}
	return d.show(ctx, update)
}

// diff returns the change to a file that the arguments of a call describe so far, or nil.
func (c *modelCall) diff(known map[string]string) []any {
	path := known["path"]
	added, isText := known["content"]
	var old *string
	if replaced, ok := known["old_text"]; ok {
		added, isText, old = known["new_text"], true, &replaced
	}
	if path == "" || !isText || c.kind != sdk.ToolKindEdit || len(added) > maxDraft ||
		old != nil && len(*old) > maxDraft {
		return nil
	}
	at := permission.LeadsTo(c.turn.host.Workspace(), path)
	if at == (workspace.Ref{}) {
		return nil
	}
	return []any{backend.NewDiff(at.Path(), old, added)}
}

// dropDrafts shows that calls which the model has begun to write will not happen, even if ctx has
// ended.
func (b *toolbox) dropDrafts(ctx context.Context) error {
	var errs []error
	for _, index := range slices.Sorted(maps.Keys(b.drafts)) {
		errs = append(errs, b.drafts[index].showStatus(context.WithoutCancel(ctx),
			sdk.ToolCallStatusFailed,
			backend.TextContent("The model did not complete the call, so it was not run.")))
	}
	clear(b.drafts)
	return errors.Join(errs...)
}

// partialStrings returns the members of a JSON object that are strings. The object may end
// anywhere. An incomplete string is returned only if it is one of the long texts.
func partialStrings(object string) map[string]string {
	known := map[string]string{}
	d := json.NewDecoder(strings.NewReader(object))
	if begin, _ := d.Token(); begin != json.Delim('{') {
		return known
	}
	for d.More() {
		token, _ := d.Token()
		name, _ := token.(string)
		rest := strings.TrimLeft(object[d.InputOffset():], ": \t\r\n")
		var value any
		err := d.Decode(&value)
		if said, ok := value.(string); ok {
			known[name] = said
		}
		if err == nil {
			continue
		}
		grows := name == "content" || name == "old_text" || name == "new_text" || name == "command"
		if grows && strings.HasPrefix(rest, `"`) {
			known[name] = partialString(rest)
		}
		break
	}
	return known
}

// partialString returns the text in a JSON string that may end anywhere.
func partialString(s string) (said string) {
	for cut := len(s); cut > max(0, len(s)-len(`\ud83d\ude00`)); cut-- { // in an escape sequence
		if json.Unmarshal([]byte(s[:cut]+`"`), &said) == nil {
			break
		}
	}
	return strings.TrimRight(said, "\uFFFD")
}
