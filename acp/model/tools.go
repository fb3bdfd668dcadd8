package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// maxParallel limits the read-only calls that run at the same time.
const maxParallel = 8

// toolNotes are what a session notes about its tools. Only the turn uses them, except for mentions:
// calls that run at the same time use these.
type toolNotes struct {
	mentions discovery.Mentions // of instructions, in results
	overview string             // of the roots as they were before the first request
	// late has the prefixes of MCP servers that did not list their tools in time. broken has the
	// prefixes of those that have failed, as the user was told.
	late, broken map[string]bool
	// noted are the names of tools that the model does not get, as the user was told.
	noted map[string]bool
	// hinted is set if the user was told that the server does not understand the model's answers.
	hinted bool
}

// tool is a tool that the model may call.
type tool struct {
	tools.Tool
	run func(*modelCall, context.Context) (outcome, error)
	// callTitle describes each call, "" if that depends on the arguments.
	callTitle string
	// parallel is set if calls can run at the same time: they change nothing, ask nothing, and the
	// user does not see what they do.
	parallel bool
}

// title describes a call to the user.
func (t tool) title(arguments json.RawMessage) string {
	return cmp.Or(t.callTitle, t.Title(arguments))
}

// The names of the tools that show images and documents, and that find skills.
const mediaName, skillsName = "read_media", "find_skills"

// describeMedia returns the description of that tool for a model, or "" if the model accepts no
// media.
func describeMedia(m llm.Model) string {
	var kinds []string
	if m.Takes("image/png") {
		kinds = append(kinds, "Look at an image: PNG, JPEG, GIF or WebP, up to "+text.Size(maxImage)+".")
	}
	if m.Takes(llm.PDF) {
		kinds = append(kinds, "Read a PDF document of up to "+text.Size(maxDocument)+".")
	}
	return strings.Join(kinds, " ")
}

// toolbox holds the tools that the model has in a turn's step.
type toolbox struct {
	turn    *modelTurn
	offered []llm.Tool
	byName  map[string]tool
	// crowded are the names of tools of MCP servers that do not fit into the context.
	crowded []string
	drafts  map[int]*draft // calls that arrive and are shown, by their place in the answer
}

// newToolbox returns the tools that the model may use in a mode.
func (t *modelTurn) newToolbox(ctx context.Context, m mode) (*toolbox, error) {
	b := &toolbox{turn: t, byName: map[string]tool{}, drafts: map[int]*draft{}}
	all := append(t.fileTools(), planTool())
	if t.mayRun() {
		all = append(all, commandTool())
	}
	for _, own := range all {
		if own.Name == mediaName {
			own.Description = describeMedia(t.endpoint.Model())
		}
		switch {
		case own.Description == "" || !m.mayChange() && !own.Annotations.ReadOnly:
		case !t.offers(own.Name):
			b.byName[own.Name] = own
		default:
			b.add(own)
		}
	}
	return b, b.addServers(ctx, m)
}

// offers reports whether the model is told of one of our own tools. If not, it can call it all the
// same.
func (t *modelTurn) offers(name string) bool {
	tokens := t.endpoint.Model().ContextTokens
	if name == skillsName {
		skills := t.host.Catalog().Active(discovery.Skill)
		_, left := discovery.ListSkills(skills, t.endpoint.shares().words)
		return left > 0 || len(skills) > 0 && tokens > smallContext
	}
	return tokens > smallContext || essentialTools[name]
}

// find returns the tool that a model calls by a name, which may differ a little from that of the
// tool: weak models write Read_File or functions.read_file.
func (b *toolbox) find(name string) (t tool, known bool) {
	if t, known = b.byName[name]; known {
		return t, true
	}
	name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
	for _, namespace := range []string{"functions.", "default_api.", "tools."} {
		name = strings.TrimPrefix(name, namespace)
	}
	t, known = b.byName[name]
	return t, known
}

// unknown returns what the model gets that calls a tool by a name that no tool has. The name is
// sent back to the model's server, which may only accept valid names.
func (b *toolbox) unknown(name string) tool {
	names := text.JoinFunc(b.offered, ", ", func(t llm.Tool) string { return t.Name })
	valid := text.Prefix(text.Identifier(name), maxName)
	none := tools.Tool{Name: valid, Annotations: tools.Annotations{ReadOnly: true}}
	said := fmt.Sprintf("there is no tool %q; the tools are %s",
		text.Truncate(name, 100), names)
	run := func(*modelCall, context.Context) (outcome, error) {
		return outcome{said: said, failed: true}, nil
	}
	return tool{Tool: none, run: run, callTitle: "Unknown tool " + valid}
}

func (b *toolbox) add(t tool) {
	b.byName[t.Name] = t
	b.offered = append(b.offered, llm.Tool{
		Name: t.Name, Description: t.Description, Schema: t.InputSchema,
	})
}

// run runs the tool calls of an answer and shows them to the user. Showing them makes them and
// their results part of the conversation; see entry. Calls that only read run at the same time, the
// others one after another. An error ends the turn.
func (b *toolbox) run(ctx context.Context, requested []llm.ToolCall) error {
	calls := make([]*modelCall, len(requested))
	err := context.Cause(ctx)
	// All calls of an answer are shown, or none, because some servers do not accept a part of it.
	all := context.WithoutCancel(ctx)
	for i, r := range requested {
		calls[i] = b.newCall(r.Name)
		if d := b.drafts[i]; d != nil && d.Name == calls[i].Name {
			calls[i] = d.modelCall // it was shown while it arrived
			delete(b.drafts, i)
		}
		calls[i].complete(r)
		if err == nil {
			err = calls[i].announce(all)
		}
	}
	err = errors.Join(err, b.dropDrafts(ctx))
	for i, n := 0, 1; i < len(calls) && err == nil; i, n = i+n, 1 {
		for calls[i].tool.parallel && i+n < len(calls) && calls[i+n].tool.parallel {
			n++
		}
		err = runTogether(ctx, calls[i:i+n])
	}
	for _, c := range calls {
		if c.phase == callUnseen || c.phase == callEnded {
			continue
		}
		o := outcome{said: notRun, failed: true}
		if c.phase == callRunning {
			o.said = interrupted
		}
		_ = c.end(ctx, o) // the turn ends for another reason
	}
	return err
}

// runTogether runs calls at the same time and returns their errors.
func runTogether(ctx context.Context, calls []*modelCall) error {
	errs := make([]error, len(calls))
	var running errgroup.Group
	running.SetLimit(maxParallel)
	for i, c := range calls {
		running.Go(func() error {
			errs[i] = c.run(ctx)
			return nil
		})
	}
	_ = running.Wait()
	return errors.Join(errs...)
}
