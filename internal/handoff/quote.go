package handoff

import (
	"strings"

	"github.com/acp-agent/acp-agent/internal/secret"
	"github.com/acp-agent/acp-agent/internal/text"
)

// quotation begins each line of foreign text. Lines of our own never begin with it.
const quotation = "> "

// quote returns foreign text of at most the given number of bytes, its beginning and its end, as
// quoted lines. What looks like a secret is masked.
func quote(s string, most int) string {
	s = secret.Mask(strings.TrimSpace(text.Unhide(text.Plain(s))))
	s = text.Shorten(s, max(most, 0))
	var b strings.Builder
	for line := range strings.SplitSeq(s, "\n") {
		b.WriteString(quotation + strings.TrimRight(line, " \t") + "\n")
	}
	return b.String()
}

// quoteTail is quote for the end of a text.
func quoteTail(s string, most int) string {
	s = strings.TrimSpace(s)
	if len(s) > most {
		// not in the middle of a word or character, if there is a space
		s = strings.ToValidUTF8(s[len(s)-most:], "")
		if _, rest, ok := strings.Cut(s, "\n"); ok && len(rest) > most/2 {
			s = rest
		}
		s = "…" + s
	}
	return quote(s, most+len("…"))
}

// speaker returns a name that can stand in a line of our own.
func speaker(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' ||
			r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, text.Prefix(name, 40))
	if name == "" || strings.EqualFold(name, "user") {
		return "agent"
	}
	return name
}
