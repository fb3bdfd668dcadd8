package explore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	if dropped {
		if err := t.Write(fmt.Sprintf("Only the first %d words are searched for.\n\n",
			maxWords)); err != nil {
			return err
		}
	}
	return t.searchFor(ctx, query, strings.Join(query.strings(), " "),
		map[string][]string{"words": query.strings()})
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

// maxWords is the maximum number of words of one search.
const maxWords = 16

// words is a [tools.Query] for lines that contain all of the words, in any order and case.
type words [][]byte

// newWords returns the distinct words of s in lower case, without surrounding punctuation. dropped
// reports whether there were more than maxWords.
func newWords(s string) (w words, dropped bool) {
	seen := make(map[string]bool)
	for word := range strings.FieldsSeq(strings.ToLower(s)) {
		if bare := strings.TrimFunc(word, unicode.IsPunct); bare != "" {
			word = bare
		}
		if seen[word] {
			continue
		}
		if len(w) == maxWords {
			return w, true
		}
		seen[word] = true
		w = append(w, []byte(word))
	}
	return w, false
}

func (w words) strings() []string {
	list := make([]string, len(w))
	for i, word := range w {
		list[i] = string(word)
	}
	return list
}

// checkInterval is how many bytes are searched between two checks of the context.
const checkInterval = 16 << 10

// Find calls found with each line that contains all words.
func (w words) Find(ctx context.Context, content []byte, found func(tools.Match) bool) error {
	// Lower case can change the length of a line, but not where lines end.
	lower := bytes.ToLower(content)
	if w.match(lower) < 0 {
		return nil
	}
	number, start, unchecked := 1, 0, 0
	for start < len(content) {
		end := start + lineSize(content[start:])
		folded := lower[:lineSize(lower)]
		unchecked += end - start + 1
		if unchecked >= checkInterval {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			unchecked = 0
		}
		if at := w.match(folded); at >= 0 {
			if !found(tools.Match{Number: number, Start: start, End: end, At: min(at, end-start)}) {
				return nil
			}
		}
		number++
		start = end + 1
		lower = lower[min(len(folded)+1, len(lower)):]
	}
	return nil
}

// match returns the offset of the first of the words in a lower-case text, or -1 if it does not
// contain all of them.
func (w words) match(folded []byte) int {
	first := len(folded)
	for _, word := range w {
		at := bytes.Index(folded, word)
		if at < 0 {
			return -1
		}
		first = min(first, at)
	}
	return first
}

// lineSize returns the length of the first line without its end.
func lineSize(content []byte) int {
	if end := bytes.IndexByte(content, '\n'); end >= 0 {
		return end
	}
	return len(content)
}
