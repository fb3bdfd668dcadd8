package explore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/workspace/tools"
)

// search answers /search.
func (t *turn) search(ctx context.Context, p prompt) error {
	if p.text == "" {
		return t.write("Say what to search for: " + code("/search REGEXP") + ", such as " + code("/search func New") + ".\n")
	}
	query, err := tools.NewPattern(p.text, tools.Expression, tools.CaseMatters)
	if err != nil {
		var bad *tools.PatternError
		_ = errors.As(err, &bad)
		return t.write(fmt.Sprintf("%s cannot be searched for: %s. Regular expressions are those of Go (RE2).\n",
			code(clip(p.text, 200)), bad.Why))
	}
	call, err := t.begin(toolSearch, "Search for "+clip(p.text, 200), map[string]string{"regexp": p.text})
	if err != nil {
		return err
	}
	list := t.listing("line", "lines")
	tally, err := t.scan().Search(ctx, t.lookup(query), list.found)
	return t.finish(err, call, list, tally)
}

// lookup says how found lines are shown. Of one file there is one more than of all, to know that there are more.
func (t *turn) lookup(q tools.Query) tools.Lookup {
	return tools.Lookup{
		Query: q, MaxFileSize: t.options.MaxFileSize, MaxHits: t.options.MaxHits + 1,
		Show: func(line []byte, at int) string { return excerpt(string(line), at) },
	}
}

// found lists the lines of one file.
func (l *listing) found(in tools.Found) error {
	root := l.roots[in.Root().Index]
	name := root.show(in.Rel())
	for i, h := range in.Lines {
		line := fmt.Sprintf("%s:%d: %s", name, h.Number, h.Text)
		if err := l.add(root.Index, line, location{Path: in.Path(), Line: h.Number}); err != nil {
			return err
		}
		if i == 0 {
			l.tally[root.Index].files++
		}
	}
	return l.reply.flushNow()
}

// searchWords answers a prompt that is no command.
func (t *turn) searchWords(ctx context.Context, p prompt) error {
	query, left := newWords(p.text)
	if left > 0 {
		if err := t.write(fmt.Sprintf("Only the first %d words are searched for.\n\n", maxWords)); err != nil {
			return err
		}
	}
	title := "Search for " + clip(strings.Join(query.strings(), " "), 200)
	call, err := t.begin(toolSearch, title, map[string][]string{"words": query.strings()})
	if err != nil {
		return err
	}
	list := t.listing("line", "lines")
	best := &runnersUp{bound: t.options.MaxHits}
	tally, err := t.scan().Search(ctx, t.lookup(query), func(in tools.Found) error {
		if in.Score < query.Full() {
			best.keep(in)
			return nil
		}
		best.drop()
		return list.found(in)
	})
	if err == nil && list.hits() == 0 && best.score > 0 {
		err = t.write(fmt.Sprintf("No line has all %d words. These have %d of them:\n\n", query.Full(), best.score))
		if err == nil {
			err = best.list(list)
		}
	}
	return t.finish(err, call, list, tally)
}
