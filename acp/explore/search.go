package explore

import (
	"context"
	"fmt"
	"strings"
)

// search answers /search.
func (t *turn) search(ctx context.Context, p prompt) error {
	if p.text == "" {
		return t.write("Say what to search for: " + code("/search REGEXP") + ", such as " + code("/search func New") + ".\n")
	}
	query, err := newPattern(p.text)
	if err != nil {
		return t.write(fmt.Sprintf("%s cannot be searched for: %v. Regular expressions are those of Go (RE2).\n",
			code(clip(p.text, 200)), err))
	}
	call, err := t.begin(toolSearch, "Search for "+clip(p.text, 200), map[string]string{"regexp": p.text})
	if err != nil {
		return err
	}
	files, list := t.tree(), t.listing("line", "lines")
	err = t.crew(query, files, list.found).search(ctx, files)
	return t.finish(err, call, list, files)
}

// crew searches files for a query and gives each finding to found.
func (t *turn) crew(q query, files *tree, found func(*folder, finding) error) *crew {
	return &crew{
		workers: workers(),
		make: func() *worker {
			return &worker{query: q, maxFileSize: t.options.MaxFileSize, maxHits: t.options.MaxHits}
		},
		idle: t.flush,
		emit: func(j *job) error {
			files.skipped.add(j.skipped)
			for _, one := range j.findings {
				if err := found(j.folder, one); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// found lists the lines of one file.
func (l *listing) found(f *folder, in finding) error {
	name, path := f.root.show(in.rel), f.root.path(in.rel)
	for i, h := range in.hits {
		line := fmt.Sprintf("%s:%d: %s", name, h.number, h.excerpt)
		if err := l.add(f.root.Index, line, location{Path: path, Line: h.number}); err != nil {
			return err
		}
		if i == 0 {
			l.tally[f.root.Index].files++
		}
	}
	return nil
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
	files, list := t.tree(), t.listing("line", "lines")
	best := &runnersUp{bound: t.options.MaxHits}
	err = t.crew(query, files, func(f *folder, in finding) error {
		if in.score < query.full() {
			best.keep(f, in)
			return nil
		}
		best.drop()
		return list.found(f, in)
	}).search(ctx, files)
	if err == nil && list.hits() == 0 && best.score > 0 {
		err = t.write(fmt.Sprintf("No line has all %d words. These have %d of them:\n\n", query.full(), best.score))
		if err == nil {
			err = best.list(list)
		}
	}
	return t.finish(err, call, list, files)
}
