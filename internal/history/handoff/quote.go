package handoff

import (
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
)

// quotation begins each line of foreign text. Lines of our own never begin with it.
const quotation = "> "

// quote returns foreign text of at most the given number of bytes, its beginning and its end, as
// quoted lines. What looks like a secret is masked, before the text is cut: half of a secret no
// longer looks like one.
func quote(s string, most int) string { return quoted(text.Shorten(visible(s), max(most, 0))) }

// quoteLine is quote for a text that fits into a line, of about the given number of bytes.
func quoteLine(s string, most int) string { return quoted(text.Line(visible(s), most)) }

// quoteTail is quote for the end of a text.
func quoteTail(s string, most int) string {
	if n := 64 * most; len(s) > n { // of a long result, the rest takes no time
		s = strings.ToValidUTF8(s[len(s)-n:], "")
	}
	if s = visible(s); len(s) > most {
		// not in the middle of a word or character, if there is a line
		s = strings.ToValidUTF8(s[len(s)-most:], "")
		if _, rest, ok := strings.Cut(s, "\n"); ok && len(rest) > most/2 {
			s = rest
		}
		s = "…" + s
	}
	return quoted(s)
}

// visible returns foreign text without hidden characters and what looks like a secret.
func visible(s string) string { return secret.Mask(strings.TrimSpace(text.Unhide(text.Plain(s)))) }

// quoted returns text as quoted lines.
func quoted(s string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(s, "\n") {
		b.WriteString(quotation + strings.TrimRight(line, " \t") + "\n")
	}
	return b.String()
}

// speaker returns a name that can stand in a line of our own.
func speaker(name string) string {
	if name == "" || strings.EqualFold(name, "user") {
		return "agent"
	}
	return text.Identifier(text.Prefix(name, 40))
}
