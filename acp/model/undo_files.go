package model

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// fileChange is what a tool call has done to a file, as the stored history shows it.
type fileChange struct {
	tool   string
	path   string
	to     string // of a move
	texts  *textChange
	failed bool
	unsure bool // it is not known to have had an effect
}

// textChange is a change of a text. No text means that there is no file.
type textChange struct {
	Old *string `json:"oldText"`
	New string  `json:"newText"`
}

// changesSince returns the changes of files in the stored history from update number from on, and
// whether something else may have changed files.
func (s *modelSession) changesSince(from int) (c turnChanges, err error) {
	i, foreign := 0, s.snapshot().Foreign
	for u, err := range s.history {
		if err != nil {
			return c, err
		}
		if i >= max(from, foreign) {
			c.follow(u)
		}
		i++
	}
	return c, nil
}

// turnChanges are the changes of a turn in the order in which they began.
type turnChanges struct {
	calls  map[string]*fileChange // by ID
	begun  []*fileChange
	others bool // calls of which it is not known what they changed
}

// follow adds what an update says about a tool call.
func (c *turnChanges) follow(u backend.Update) {
	if u.Kind != sessionstore.ToolCall && u.Kind != sessionstore.ToolCallUpdate {
		return
	}
	var p struct {
		Update struct {
			ToolCallID string
			Status     sdk.ToolCallStatus
			Content    []struct {
				Type, Path string
				textChange
			}
			Locations []sdk.ToolCallLocation
			Meta      struct {
				Ours meta `json:"acp-agent"`
			} `json:"_meta"`
		}
	}
	if json.Unmarshal(u.Raw, &p) != nil {
		return
	}
	now := p.Update
	if tool := now.Meta.Ours.Tool; tool != "" {
		if c.calls == nil {
			c.calls = map[string]*fileChange{}
		}
		c.calls[now.ToolCallID] = &fileChange{tool: tool, unsure: true}
	}
	call := c.calls[now.ToolCallID]
	if call == nil || now.Status == sdk.ToolCallStatusPending {
		return
	}
	if now.Status == sdk.ToolCallStatusInProgress {
		c.begin(call)
	}
	for _, content := range now.Content {
		if content.Type == "diff" {
			call.path, call.texts = content.Path, &content.textChange
		}
	}
	if n := len(now.Locations); n > 0 && call.texts == nil {
		call.path, call.to = now.Locations[0].Path, now.Locations[n-1].Path
	}
	call.failed, call.unsure = now.Status == failed, now.Status != completed
}

// begin notes that a call has been permitted and runs.
func (c *turnChanges) begin(call *fileChange) {
	switch {
	case !isOwnTool(call.tool):
		c.others = true
	case slices.Contains(c.begun, call):
	case call.tool == "write_file", call.tool == "edit_file", call.tool == "delete_file",
		call.tool == "move_file":
		c.begun = append(c.begun, call)
	}
}

// isOwnTool reports whether the named tool changes nothing but files, and shows how.
func isOwnTool(name string) bool {
	all := append(tools.New(nil, tools.Options{Permit: neverPermit}).Tools(), planTool().Tool)
	return slices.ContainsFunc(all, func(t tools.Tool) bool { return t.Name == name })
}

// fileState is what happened to a file in a turn. A nil text means that there is no file.
type fileState struct {
	path   string
	before *string
	// left are the texts with which the model may have left the file.
	left []*string
	// why says why the file is not restored, "" if it may be.
	why string
}

// states returns what happened to each file, in the order in which they were first changed.
func (c *turnChanges) states() []*fileState {
	var all []*fileState
	state := func(path string, before *string) *fileState {
		i := slices.IndexFunc(all, func(s *fileState) bool { return s.path == path })
		if i >= 0 {
			return all[i]
		}
		all = append(all, &fileState{path: path, before: before, left: []*string{before}})
		return all[len(all)-1]
	}
	for _, change := range c.begun {
		switch {
		case change.tool == "move_file":
			from, to := state(change.path, nil), state(change.to, nil)
			switch {
			case len(from.left) == 1 && from.left[0] != nil:
				to.leave(from.left[0], change.unsure)
				from.leave(nil, change.unsure)
			case !change.failed:
				to.why = "it was moved from " + text.Code(text.Printable(change.path))
			}
		case change.texts == nil:
			state(change.path, nil).why = "it was deleted, and was not text"
		case change.tool == "delete_file":
			state(change.path, change.texts.Old).leave(nil, change.unsure)
		default:
			s := state(change.path, change.texts.Old)
			if !s.mayBe(change.texts.Old) {
				s.why = "it was also changed by others"
			}
			s.leave(&change.texts.New, change.unsure)
		}
	}
	return all
}

// leave notes a text with which a change left the file, or may have if it is not known whether it
// was made.
func (s *fileState) leave(content *string, unsure bool) {
	if !unsure {
		s.left = nil
	}
	s.left = append(s.left, content)
}

// mayBe reports whether the model may have left the file with this text.
func (s *fileState) mayBe(content *string) bool {
	return slices.ContainsFunc(s.left, func(left *string) bool { return sameText(left, content) })
}

func sameText(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// restoration is a file that can be restored.
type restoration struct {
	*fileState
	change tools.Change // as it was planned
}

// errPlanned ends a call of a tool whose change is only planned.
var errPlanned = errors.New("it was only planned")

// restoreFiles restores the files that the model has changed, if they are as it left them and the
// user agrees. It returns a report for the user.
func (t *modelTurn) restoreFiles(ctx context.Context, c turnChanges) (report string, err error) {
	plan, kept := t.planRestore(ctx, c.states())
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	var restored []string
	if len(plan) > 0 {
		restored, err = t.restore(ctx, plan, &kept)
		if err != nil {
			return "", err
		}
	}
	var b strings.Builder
	switch {
	case len(restored) > 0:
		fmt.Fprintf(&b, "\nRestored: %s.\n", strings.Join(restored, ", "))
	case len(plan) > 0:
		b.WriteString("\nThe files were not changed.\n")
	}
	if len(kept) > 0 {
		fmt.Fprintf(&b, "\nNot restored:\n\n%s", strings.Join(kept, ""))
	}
	if c.others {
		b.WriteString("\nChanges made by commands and MCP servers are not undone.\n")
	}
	return b.String(), nil
}

// planRestore returns the files that can be restored, and lines about those that cannot. It leaves
// out files that are as they were before.
func (t *modelTurn) planRestore(
	ctx context.Context, states []*fileState,
) (plan []restoration, kept []string) {
	for _, s := range states {
		r := restoration{fileState: s}
		planned := false
		err := t.rewrite(ctx, s, func(_ context.Context, c tools.Change) error {
			planned, r.change = true, c
			return errPlanned
		})
		var why string
		switch {
		case err == nil, s.before == nil && errors.Is(err, fs.ErrNotExist):
			continue // it is as it was
		case s.why != "":
			why = s.why
		case planned && (!s.mayBe(r.change.Old) || s.before == nil && r.change.Old == nil):
			why = "it has changed since"
		case planned:
			plan = append(plan, r)
			continue
		default:
			why = text.Plain(err.Error())
		}
		kept = append(kept, keptLine(s.path, why))
	}
	return plan, kept
}

func keptLine(path, why string) string {
	return fmt.Sprintf("- %s: %s\n", text.Code(text.Printable(path)), why)
}

// rewrite makes a file what it was before the turn, if permit permits it. It does so with the tools
// of the model: in the roots only, through an editor that has the file open, and as a whole.
func (t *modelTurn) rewrite(ctx context.Context, s *fileState, permit tools.Permit) error {
	ws := t.host.Workspace().Checked(permission.Confirmed)
	set := tools.New(ws, tools.Options{Editor: t.editor(), Permit: permit})
	name, arguments := "delete_file", map[string]string{"path": s.path}
	if s.before != nil {
		name, arguments["content"] = "write_file", *s.before
	}
	_, err := set.Call(ctx, name, backend.Encode(arguments))
	return err
}

// restore restores files if the user agrees. It returns their paths, and adds lines about files
// that could not be restored to kept.
func (t *modelTurn) restore(
	ctx context.Context, plan []restoration, kept *[]string,
) (restored []string, err error) {
	shown := backend.ToolCall{SessionUpdate: sessionstore.ToolCall, Content: []any{}}
	shown.ToolCallId = sdk.ToolCallId("undo-" + rand.Text()[:16])
	shown.Kind, shown.Status = sdk.Ptr(sdk.ToolKindEdit), sdk.Ptr(sdk.ToolCallStatusPending)
	shown.Title = sdk.Ptr("Restore " + text.Count(len(plan), "file", "files") +
		" as before the prompt")
	for _, r := range plan {
		path, before := r.change.Ref.Path(), ""
		if r.before != nil {
			before = *r.before
		}
		shown.Content = append(shown.Content, backend.NewDiff(path, r.change.Old, before))
		shown.Locations = append(shown.Locations, backend.Locations(path, 0)...)
	}
	if len(*kept) > 0 {
		shown.Content = append(shown.Content, sdk.ToolContent(sdk.TextBlock(
			"These are not restored:\n\n"+strings.Join(*kept, ""))))
	}
	if err := t.updates.Update(ctx, backend.NewUpdate(shown)); err != nil {
		return nil, err
	}
	status := func(status sdk.ToolCallStatus) error {
		s := backend.ToolCall{SessionUpdate: sessionstore.ToolCallUpdate}
		s.ToolCallId, s.Status = shown.ToolCallId, &status
		return t.updates.Commit(context.WithoutCancel(ctx), backend.NewUpdate(s))
	}
	q := backend.Question{Call: shown, Once: "Restore", Reject: "Keep the files as they are"}
	switch _, err := t.host.Ask(ctx, q); {
	case errors.Is(err, backend.ErrRejected):
		return nil, status(failed)
	case err != nil:
		return nil, errors.Join(err, status(failed))
	}
	if err := status(sdk.ToolCallStatusInProgress); err != nil {
		return nil, err
	}
	for _, r := range plan {
		path := text.Code(text.Printable(r.path))
		if err := t.rewrite(context.WithoutCancel(ctx), r.fileState, r.permit); err != nil {
			*kept = append(*kept, keptLine(r.path, text.Plain(err.Error())))
			continue
		}
		restored = append(restored, path)
	}
	return restored, status(completed)
}

// permit permits the change that the user has seen.
func (r restoration) permit(_ context.Context, c tools.Change) error {
	if c.Ref != r.change.Ref || !sameText(c.Old, r.change.Old) || c.Loses&^r.change.Loses != 0 {
		return errors.New("it has changed since")
	}
	return nil
}
