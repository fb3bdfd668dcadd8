package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// search answers /search.
func (t *commandTurn) search(ctx context.Context, p prompt) error {
	if p.text == "" {
		return t.Refuse("Give a regular expression: " + text.Code("/search REGEXP") +
			", for example " + text.Code("/search func New") + ".\n")
	}
	pattern, err := tools.NewPattern(p.text)
	if err != nil {
		var invalid *tools.PatternError
		_ = errors.As(err, &invalid)
		return t.Refuse(fmt.Sprintf("Invalid regular expression %s: %s. Use Go's syntax (RE2).\n",
			text.Code(text.Truncate(p.text, 200)), invalid.Why))
	}
	return t.searchFor(ctx, pattern, p.text, map[string]string{"regexp": p.text})
}

// searchWords answers a prompt that is not a command.
func (t *commandTurn) searchWords(ctx context.Context, p prompt) error {
	query, dropped := newWords(p.text)
	if len(query.texts) == 0 { // only spaces of other kinds
		return t.help(ctx, p)
	}
	if dropped {
		if err := t.Write(fmt.Sprintf("Only the first %d words are searched for.\n\n",
			maxWords)); err != nil {
			return err
		}
	}
	return t.searchFor(ctx, query, strings.Join(query.texts, " "),
		map[string][]string{"words": query.texts})
}

// searchFor searches all roots. title and input describe the query in the tool call.
func (t *commandTurn) searchFor(ctx context.Context, query tools.Query, title string, input any) error {
	call, err := t.Begin(sdk.ToolKindSearch, "Search for "+text.Truncate(title, 200), input)
	if err != nil {
		return err
	}
	list := t.newListing("line", "lines")
	options := tools.SearchOptions{
		// one more shows that there are more
		Query: query, MaxFileSize: t.limits.fileSize, MaxHits: t.limits.hits + 1,
		Show: func(line []byte, at int) string { return excerpt(string(line), at) },
	}
	tally, err := t.scan(call).Search(ctx, options, list.addFile)
	return t.finish(err, call, list, tally)
}

// addFile writes the lines found in one file.
func (l *listing) addFile(in tools.Found) error {
	root := l.roots[in.Root().Index]
	name := root.Show(in.Rel())
	for i, h := range in.Lines {
		if err := l.add(root.Index, fmt.Sprintf("%s:%d: %s", name, h.Number, h.Text), in.Path(),
			h.Number); err != nil {
			return err
		}
		if i == 0 {
			l.counts[root.Index].files++
		}
	}
	return l.reply.FlushSoon()
}

// excerpt returns a line as answers show it: without indentation and control characters. If it is
// long, only the part around the match at offset at is shown.
func excerpt(line string, at int) string {
	const before, longest = 80, 300
	start := len(line) - len(strings.TrimLeft(line, " \t"))
	lead := ""
	if at-start > longest-before {
		start, lead = at-before, "…"
		for !utf8.RuneStart(line[start]) {
			start--
		}
	}
	return lead + text.Plain(text.Truncate(strings.TrimRight(line[start:], " \t\r"), longest))
}

// maxWords is the maximum number of words of one search, and maxWord the maximum length of each, in
// bytes.
const maxWords, maxWord = 16, 1000

// words is a [tools.Query] for lines that contain all of the words, in any order and case.
type words struct {
	texts    []string         // in lower case
	patterns []*tools.Pattern // of the words, the longest first
}

// newWords returns the distinct words of s, without surrounding punctuation. dropped reports whether
// there were more than maxWords.
func newWords(s string) (w words, dropped bool) {
	for word := range strings.FieldsSeq(strings.ToLower(s)) {
		word = text.Prefix(cmp.Or(strings.TrimFunc(word, unicode.IsPunct), word), maxWord)
		if slices.Contains(w.texts, word) {
			continue
		}
		if len(w.texts) == maxWords {
			dropped = true
			break
		}
		w.texts = append(w.texts, word)
	}
	longest := slices.Clone(w.texts)
	slices.SortStableFunc(longest, func(a, b string) int { return len(b) - len(a) })
	for _, word := range longest {
		pattern, _ := tools.NewPattern("(?i)" + regexp.QuoteMeta(word)) // it is short enough
		w.patterns = append(w.patterns, pattern)
	}
	return w, dropped
}

// Find calls found with each line that contains all words.
func (w words) Find(ctx context.Context, content []byte, found func(tools.Match) bool) error {
	return w.patterns[0].Find(ctx, content, func(m tools.Match) bool {
		for _, other := range w.patterns[1:] {
			at := other.In(ctx, content[m.Start:m.End])
			if at < 0 {
				return true
			}
			m.At = min(m.At, at)
		}
		return found(m)
	})
}
