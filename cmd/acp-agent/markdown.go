package main

import (
	"regexp"
	"strings"
	"sync"
)

// style is a list of parameters of the escape sequence that styles text on a terminal.
type style []string

const (
	bold      = "1"
	dim       = "2"
	italic    = "3"
	underline = "4"
	red       = "31"
	green     = "32"
	cyan      = "36"
)

// apply returns s in the style.
func (s style) apply(text string) string {
	if len(s) == 0 || text == "" {
		return text
	}
	return "\x1b[" + strings.Join(s, ";") + "m" + text + "\x1b[0m"
}

// markdown renders Markdown that arrives in pieces for a terminal: headings, emphasis, code, lists,
// quotations, rules and links. What it does not know it leaves as it is. It renders whole lines.
type markdown struct {
	pending string // the beginning of a line
	fence   string // what ends the code block that is open, "" outside of code
}

// add adds a piece and returns the lines that it completes.
func (m *markdown) add(piece string) string {
	m.pending += piece
	var b strings.Builder
	for {
		line, rest, ended := strings.Cut(m.pending, "\n")
		if !ended {
			if len(m.pending) > longestRendered {
				b.WriteString(m.pending)
				m.pending = ""
			}
			return b.String()
		}
		m.pending = rest
		b.WriteString(m.line(line))
	}
}

// rest returns the line that is not complete yet, as if it were.
func (m *markdown) rest() string {
	if m.pending == "" {
		return ""
	}
	line := m.pending
	m.pending = ""
	return m.line(line)
}

// markdownSyntax are the expressions of what a line can be.
type markdownSyntax struct{ fence, heading, item, quote, rule, inline *regexp.Regexp }

// syntax is compiled on first use to keep the start of the program fast.
var syntax = sync.OnceValue(func() markdownSyntax {
	return markdownSyntax{
		fence:   regexp.MustCompile("^ {0,3}(```+|~~~+)[^`]*$"),
		heading: regexp.MustCompile(`^#{1,6} +(.*?)[ #]*$`),
		item:    regexp.MustCompile(`^( *)[-*+] +(.*)$`),
		quote:   regexp.MustCompile(`^> ?(.*)$`),
		rule:    regexp.MustCompile(`^ {0,3}(-( *-){2,}|\*( *\*){2,}|_( *_){2,}) *$`),
		inline: regexp.MustCompile("``+ ?(.+?) ?``+|`([^`]+)`|" + // code
			`\*\*(\S(?:.*?\S)?)\*\*|__(\S(?:.*?\S)?)__\b|` + // strong
			`\*([^\s*](?:[^*]*[^\s*])?)\*|\b_([^\s_](?:[^_]*[^\s_])?)_\b|` + // emphasis
			`\[([^\]]+)\]\(([^)\s]+)\)|` + // link
			`\\([[:punct:]])`),
	}
})

// longestRendered is the length of the longest line that is rendered, in bytes: rendering takes
// time that is quadratic in it.
const longestRendered = 8 << 10

// line renders a line, with its line feed.
func (m *markdown) line(line string) string {
	if len(line) > longestRendered {
		return line + "\n"
	}
	s := syntax()
	if m.fence != "" {
		if end := strings.TrimSpace(line); strings.HasPrefix(end, m.fence) &&
			strings.Trim(end, m.fence[:1]) == "" {
			m.fence = ""
			return ""
		}
		return "  " + style{cyan}.apply(line) + "\n"
	}
	if open := s.fence.FindStringSubmatch(line); open != nil {
		m.fence = open[1]
		return ""
	}
	switch {
	case s.rule.MatchString(line):
		return style{dim}.apply(strings.Repeat("─", 20)) + "\n"
	case s.heading.MatchString(line):
		title := s.heading.FindStringSubmatch(line)[1]
		return style{bold, underline}.apply(inlineText(title)) + "\n"
	case s.item.MatchString(line):
		item := s.item.FindStringSubmatch(line)
		return item[1] + "• " + inline(item[2]) + "\n"
	case s.quote.MatchString(line):
		return style{dim}.apply("│ ") + inline(s.quote.FindStringSubmatch(line)[1]) + "\n"
	}
	return inline(line) + "\n"
}

// inline renders what is emphasized, code and links in a line.
func inline(line string) string {
	return replaceInline(line, style.apply)
}

// inlineText returns the text of a line without the marks.
func inlineText(line string) string {
	return replaceInline(line, func(_ style, s string) string { return s })
}

func replaceInline(line string, apply func(style, string) string) string {
	expression := syntax().inline
	var b strings.Builder
	end := 0
	for _, at := range expression.FindAllStringSubmatchIndex(line, -1) {
		group := func(i int) string {
			if at[2*i] < 0 {
				return ""
			}
			return line[at[2*i]:at[2*i+1]]
		}
		b.WriteString(line[end:at[0]])
		end = at[1]
		switch {
		case group(1)+group(2) != "":
			b.WriteString(apply(style{cyan}, group(1)+group(2)))
		case group(3)+group(4) != "":
			b.WriteString(apply(style{bold}, inlineText(group(3)+group(4))))
		case group(5)+group(6) != "":
			b.WriteString(apply(style{italic}, inlineText(group(5)+group(6))))
		case group(7) != "":
			b.WriteString(apply(style{underline}, group(7)) + " (" + group(8) + ")")
		default:
			b.WriteString(group(9))
		}
	}
	return b.String() + line[end:]
}
