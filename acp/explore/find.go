package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/commands"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// scan returns the search that /find and /search share. It reports its progress in call.
func (t *commandTurn) scan(call commands.ShownCall) tools.Walk {
	reported := time.Now()
	return tools.Walk{
		Workspace: t.workspace(), Ignored: workspace.LeaveIgnored, MaxFiles: t.limits.files,
		Progress: func(tally tools.Tally) error {
			if time.Since(reported) < t.limits.progress {
				return nil
			}
			reported = time.Now()
			return call.Progress(fmt.Sprintf("Looked at %s so far, now in %s.",
				text.Count(tally.Files, "file", "files"),
				text.Code(t.roots[slices.Index(tally.Roots, tools.Stopped)].Label)))
		},
	}
}

// find answers /find.
func (t *commandTurn) find(ctx context.Context, p prompt) error {
	if p.text == "" {
		return t.Refuse("Give a glob: " + text.Code("/find GLOB") + ", for example " +
			text.Code("/find **/*.go") + ".\n")
	}
	only, err := tools.NewGlob(p.text)
	if err != nil {
		var invalid *tools.GlobError
		_ = errors.As(err, &invalid)
		return t.Refuse("Invalid glob " + text.Code(p.text) + ": " + invalid.Why + ".\n")
	}
	call, err := t.Begin(sdk.ToolKindSearch, "Find "+p.text, map[string]string{"glob": p.text})
	if err != nil {
		return err
	}
	list := t.newListing("file", "files")
	scan := t.scan(call)
	scan.Only = only
	tally, err := scan.Files(ctx, func(f tools.File) error {
		root := t.roots[f.Root().Index]
		if err := list.add(root.Index, root.Show(f.Rel()), f.Path(), 0); err != nil {
			return err
		}
		return t.FlushSoon()
	})
	if err := t.finish(err, call, list, tally); err != nil || list.hits() > 0 {
		return err
	}
	return t.Write(tools.GlobHint(p.text))
}

// errFull ends a search whose answer is full.
var errFull = errors.New("the answer is full")

// listing writes hits grouped by root as they are found, within the limits of the answer.
type listing struct {
	reply        *commands.Reply
	roots        []commands.Root
	noun, plural string     // of what is counted
	left         int        // how many more hits may be shown
	truncated    string     // note that not all hits are shown, otherwise ""
	stopped      int        // the root in which the answer was full, -1 for none
	open         int        // the root whose group is being written, -1 for none yet
	counts       []hitCount // by root
	locations    []sdk.ToolCallLocation
}

type hitCount struct{ hits, files int }

func (t *commandTurn) newListing(noun, plural string) *listing {
	return &listing{
		reply: t.Reply, roots: t.roots, noun: noun, plural: plural,
		left: t.limits.hits, stopped: -1, open: -1, counts: make([]hitCount, len(t.roots)),
	}
}

// add writes a hit on a separate line. The error is errFull if the answer is full.
func (l *listing) add(root int, line, path string, number int) error {
	if l.left == 0 {
		l.stopped = root
		l.truncated = fmt.Sprintf("the first %s are shown", text.Count(l.hits(), l.noun, l.plural))
		return errFull
	}
	if !l.reply.Take(len(line) + 1) {
		l.stopped = root
		l.truncated = fmt.Sprintf("the first %s are shown, because an answer is limited to %s",
			text.Count(l.hits(), l.noun, l.plural), text.Size(l.reply.Bound))
		return errFull
	}
	l.left--
	l.counts[root].hits++
	l.locations = append(l.locations, backend.Locations(path, number)...)
	if l.open != root {
		l.open = root
		heading := "**" + text.Code(l.roots[root].Label) + "**\n\n"
		if err := l.reply.Write(heading); err != nil {
			return err
		}
	}
	l.reply.WriteLine(line) // it begins with the name of a file
	return nil
}

func (l *listing) hits() int {
	n := 0
	for _, c := range l.counts {
		n += c.hits
	}
	return n
}

// summary returns a summary of what was found in each root. It says that nothing was found only for
// roots that were searched completely.
func (l *listing) summary(tally tools.Tally, maxFiles int) string {
	var parts, names []string
	complete := true
	for i, c := range l.counts {
		label := text.Code(l.roots[i].Label)
		names = append(names, label)
		coverage := tally.Roots[i]
		complete = complete && coverage == tools.Complete
		found := text.Count(c.hits, l.noun, l.plural)
		if c.files > 0 {
			found += " in " + text.Count(c.files, "file", "files")
		}
		if c.hits == 0 {
			found = "none"
		}
		switch {
		case coverage == tools.NotVisited:
			found = "not searched"
		case c.hits == 0 && l.stopped == i:
			found = "not shown"
		case coverage == tools.Limited:
			found += " among the first " + text.Count(maxFiles, "file", "files")
		case c.hits == 0 && coverage == tools.Incomplete:
			found = "none in what was searched"
		}
		parts = append(parts, label+": "+found)
	}
	if l.hits() == 0 && complete {
		return fmt.Sprintf("No %s found in %s.", l.plural, strings.Join(names, ", "))
	}
	return strings.Join(parts, "; ") + "."
}

// finish ends a search that returned err.
func (t *commandTurn) finish(err error, call commands.ShownCall, list *listing, tally tools.Tally) error {
	if err != nil && err != errFull {
		return err
	}
	summary := list.summary(tally, t.limits.files)
	if tally.Full {
		summary += fmt.Sprintf(" Only the first %d files of a folder are searched.", t.limits.files)
	}
	if list.truncated != "" {
		summary += " Only " + list.truncated + ". Narrow the search to see the rest."
	} else if left := t.leftOut(tally.Skipped); left != "" {
		summary += " " + left
	}
	if err := call.End(sdk.ToolCallStatusCompleted, summary, list.locations); err != nil {
		return err
	}
	return t.Write(summary + "\n")
}

// leftOut says which files were not searched, "" if all were.
func (t *commandTurn) leftOut(s tools.Skipped) string {
	var parts []string
	if s.Binary > 0 {
		parts = append(parts, text.Count(s.Binary, "binary file", "binary files"))
	}
	if s.Large > 0 {
		parts = append(parts,
			text.Count(s.Large, "file", "files")+" over "+text.Size(t.limits.fileSize))
	}
	if s.Unreadable > 0 {
		first := t.roots[s.First.Root.Index].Show(s.First.Rel) + ": " + reason(s.First.Err)
		parts = append(parts,
			text.Count(s.Unreadable, "entry", "entries")+" that could not be read ("+first+")")
	}
	if s.Ignored > 0 {
		parts = append(parts, text.Count(s.Ignored, "entry", "entries")+" that git ignores")
	}
	for _, dir := range s.System {
		parts = append(parts, text.Code(dir))
	}
	if refused := s.Refusals(); refused != "" {
		parts = append(parts, text.Plain(refused))
	}
	if len(parts) == 0 {
		return ""
	}
	return "Left out: " + strings.Join(parts, ", ") + "."
}
