// Package text prepares text for people: it truncates it, flattens it to one line, makes invisible
// characters visible, and quotes it as Markdown. Its results cannot close the quotation that
// contains them, or send control characters to a terminal.
package text

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Identifier returns s with "_" in place of each character but ASCII letters, digits, "_" and "-",
// and "_" for "".
func Identifier(s string) string {
	return cmp.Or(strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}, s), "_")
}

// Prefix returns the longest prefix of s that has at most max bytes and does not split a character.
func Prefix(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}

// Truncate returns s if it has at most max bytes, otherwise its Prefix of that size followed by
// "…". Bytes that are not UTF-8 are removed.
func Truncate(s string, max int) string {
	s = strings.ToValidUTF8(s, "")
	if kept := Prefix(s, max); len(kept) < len(s) {
		return kept + "…"
	}
	return s
}

// Shorten returns s if it has at most max bytes, otherwise its beginning and its end with "…" in
// between, because an error often begins with a path and ends with the problem. Bytes that are not
// UTF-8 are removed.
func Shorten(s string, max int) string {
	if len(s) <= max {
		return s
	}
	end := len(s) - max/4
	for end < len(s) && !utf8.RuneStart(s[end]) {
		end++
	}
	return strings.ToValidUTF8(Prefix(s, max-max/4)+"…"+s[end:], "")
}

// Line returns s as one line of at most max characters: each run of white space and of characters
// that would break the line, reorder it or not be visible becomes one space, and a longer line ends
// in "…".
func Line(s string, max int) string {
	var line strings.Builder // reads no more of s than is shown
	characters, gap := 0, false
	for i, r := range s {
		if unicode.IsSpace(r) || misleads(r) && !joins(r) {
			gap = characters > 0
			continue
		}
		if gap {
			line.WriteByte(' ')
			characters++
		}
		if characters >= max {
			return strings.TrimSpace(string([]rune(line.String())[:max-1])) + "…"
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		line.WriteString(s[i : i+size])
		characters, gap = characters+1, false
	}
	return line.String()
}

// Printable returns a file name, path or other identifier for display on one line. It is unchanged,
// or quoted by Quote if it contains characters that would break the line, reorder it or not be
// visible, or begins or ends with white space.
func Printable(name string) string {
	if utf8.ValidString(name) && strings.IndexFunc(name, misleads) < 0 &&
		strings.TrimSpace(name) == name {
		return name
	}
	return Quote(name)
}

// MaxName is the most bytes of a name that are shown in a sentence.
const MaxName = 100

// Name returns a foreign name for use in a sentence: truncated, and with invisible characters
// marked.
func Name(name string) string { return Printable(Truncate(name, MaxName)) }

// QuotedName returns a foreign name in quotes, so that it cannot pass for what follows it.
func QuotedName(name string) string { return Quote(Truncate(name, MaxName)) }

// MaxArgument is the most bytes of an argument, such as a path, that are shown in a title.
const MaxArgument = 200

// Argument returns an argument for a title.
func Argument(s string) string { return Printable(Truncate(s, MaxArgument)) }

// Path returns a path for a sentence: in quotes if it has white space, which could pass for words
// of the sentence.
func Path(path string) string {
	if strings.ContainsFunc(path, unicode.IsSpace) || strings.HasPrefix(path, `"`) {
		return Quote(path)
	}
	return Printable(path)
}

// CutWord returns the part of s before the first white space, and the rest after it, trimmed with
// [TrimTyped].
func CutWord(s string) (word, rest string) {
	i := strings.IndexFunc(s, unicode.IsSpace)
	if i < 0 {
		return s, ""
	}
	_, separator := utf8.DecodeRuneInString(s[i:])
	return s[:i], TrimTyped(s[i+separator:])
}

// TrimTyped removes the white space that people type around arguments: other white space, such as
// U+202F in the names of screenshots, may be part of a name.
func TrimTyped(s string) string { return strings.Trim(s, " \t\r\n") }

// Attributed returns a foreign description on one line of at most max characters, after a label
// that names its source.
func Attributed(label, description string, max int) string {
	label = Printable(label)
	description = Line(description, max)
	if description == "" {
		return label
	}
	return label + ": " + Printable(description)
}

// Quote returns s quoted in Go syntax, with an escape in place of each character that would break
// the line, reorder it or not be visible.
func Quote(s string) string {
	quoted := strconv.Quote(s)
	if strings.IndexFunc(quoted, misleads) < 0 {
		return quoted
	}
	var b strings.Builder
	for _, r := range quoted { // strconv treats some invisible characters as letters and symbols
		if misleads(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// ShellWord returns s as one word of a shell's command line.
func ShellWord(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\n\"'`\\$&|;<>()*?[]{}#~!") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// ShellLine returns a command line that a shell splits into these words.
func ShellLine(words ...string) string {
	return JoinFunc(words, " ", ShellWord)
}

// Plain returns s without characters that a terminal would obey instead of show. It removes
// carriage returns. It replaces other control characters, except tabs and line feeds, and
// characters that reorder text or are not visible, by U+FFFD.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return -1
		case misleads(r) && !joins(r) && r != '\t' && r != '\n':
			return unicode.ReplacementChar
		default:
			return r
		}
	}, s)
}

// IsVisible reports whether every character of s is visible or an ASCII space. That means that
// Plain returns s unchanged, and that characters which Plain keeps for other scripts and emoji,
// such as joiners and special spaces, do not follow an ASCII character.
func IsVisible(s string) bool {
	ascii := true
	for _, r := range s {
		if ascii && r > unicode.MaxASCII &&
			(misleads(r) || r == '\ufe0e' || r == '\ufe0f' || unicode.IsSpace(r)) {
			return false
		}
		ascii = r <= unicode.MaxASCII
	}
	return Plain(s) == s
}

// EscapeJSON returns JSON text in which each character that would break the line, reorder it or not
// be visible is written as an escape. The value stays the same.
func EscapeJSON(raw []byte) []byte {
	if bytes.IndexFunc(raw, escapedInJSON) < 0 {
		return raw
	}
	var b []byte
	for _, r := range string(raw) {
		switch {
		case !escapedInJSON(r):
			b = utf8.AppendRune(b, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return b
}

// escapedInJSON reports whether EscapeJSON escapes r. JSON strings cannot contain the control
// characters of ASCII before DEL.
func escapedInJSON(r rune) bool { return r > '~' && misleads(r) }

// misleads reports whether r breaks a line, reorders it or is not visible.
func misleads(r rune) bool {
	if r < unicode.MaxASCII {
		return r < ' '
	}
	// the styles follow common symbols and emoji
	const brailleBlank, textStyle, emojiStyle = '\u2800', '\ufe0e', '\ufe0f'
	return r == brailleBlank || r != textStyle && r != emojiStyle && unicode.In(r, unicode.Cc,
		unicode.Cf, unicode.Zl, unicode.Zp,
		unicode.Bidi_Control, unicode.Other_Default_Ignorable_Code_Point,
		unicode.Variation_Selector)
}

// joins reports whether r is a joiner, which emoji and some scripts need.
func joins(r rune) bool { return r == '\u200c' || r == '\u200d' }

// Block returns s as a fenced Markdown code block, ending in a line feed. info follows the opening
// fence.
func Block(info, s string) string {
	fence := strings.Repeat("`", max(3, longestRun(s)+1)) // which s cannot close
	if !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return fence + info + "\n" + s + fence + "\n"
}

// CutBlock returns the content of the fenced Markdown code block at the beginning of s, without its
// last line end, and the text after the block. Empty lines may precede it. ok is false if s does
// not begin with a complete block.
func CutBlock(s string) (content, rest string, ok bool) {
	opening, body, _ := strings.Cut(s, "\n")
	for strings.TrimSpace(opening) == "" && body != "" {
		opening, body, _ = strings.Cut(body, "\n")
	}
	mark := opening[:min(len(opening), 1)]
	fence := opening[:len(opening)-len(strings.TrimLeft(opening, mark))]
	if len(fence) < 3 || mark != "`" && mark != "~" {
		return "", s, false
	}
	end := 0
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, fence) && strings.Trim(line, mark+" \t\r\n") == "" {
			return strings.TrimSuffix(body[:end], "\n"), body[end+len(line):], true
		}
		end += len(line)
	}
	return "", s, false
}

// Code returns s as a Markdown code span on one line.
func Code(s string) string {
	s = Printable(s)
	ticks := strings.Repeat("`", longestRun(s)+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") || s == "" {
		s = " " + s + " "
	}
	return ticks + s + ticks
}

// longestRun returns the length of the longest run of backticks in s.
func longestRun(s string) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// Count returns n with its noun, such as "1 file" or "3 files".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Size returns a number of bytes, in MiB or KiB where it is a whole number of them.
func Size[N int | int64](n N) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	default:
		return Count(int(n), "byte", "bytes")
	}
}

// IsUTF16 reports whether b, which should be UTF-8 text such as JSON, is UTF-16: it begins with a
// byte order mark, or one of its first two bytes is zero.
func IsUTF16(b []byte) bool {
	const le, be = "\xff\xfe", "\xfe\xff"
	return len(b) > 1 && (string(b[:2]) == le || string(b[:2]) == be || (b[0] == 0) != (b[1] == 0))
}

// JoinFunc joins what show returns of each value with sep.
func JoinFunc[T any](values []T, sep string, show func(T) string) string {
	shown := make([]string, len(values))
	for i, value := range values {
		shown[i] = show(value)
	}
	return strings.Join(shown, sep)
}

// Amounts returns sums of money, each with its currency or unit.
func Amounts(byUnit map[string]float64) (list []string) {
	for _, unit := range slices.Sorted(maps.Keys(byUnit)) {
		list = append(list, Money(byUnit[unit], unit))
	}
	return list
}

// Money returns an amount with its currency or unit.
func Money(amount float64, unit string) string {
	return fmt.Sprintf("%.4f %s", amount, strings.TrimSpace(Plain(unit)))
}

// Pattern returns a function that returns a compiled regular expression. It is compiled when it is
// needed, to keep the start of the program fast.
func Pattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// GlobChoices returns at least the number of globs without braces that a glob stands for, without
// counting far beyond most. A brace within a set, or behind a backslash, closes nothing.
func GlobChoices(glob string, most int) int {
	n, open := 1, []int{} // alternatives of each open brace
	for i := 0; i < len(glob) && n <= most; i++ {
		switch last := len(open) - 1; {
		case glob[i] == '\\':
			i++
		case glob[i] == '[':
			i += GlobSetEnd(glob[i:])
		case glob[i] == '{':
			open = append(open, 1)
		case glob[i] == ',' && last >= 0:
			open[last]++
		case glob[i] == '}' && last >= 0:
			n *= open[last]
			open = open[:last]
		}
	}
	return n
}

// GlobSetEnd returns the index of the "]" that closes the set at the beginning of glob, or of the
// last byte if none does.
func GlobSetEnd(glob string) int {
	for i := 1; i < len(glob); i++ {
		switch glob[i] {
		case '\\':
			i++
		case ']':
			return i
		}
	}
	return len(glob) - 1
}

// Meant returns "; did you mean …?" with the value of the key in names that word most likely stands
// for, or "". Upper case, dashes, underscores and spaces do not matter.
func Meant(word string, names map[string]string) string {
	meant, _ := nearest(word, names)
	if meant == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", Plain(meant))
}

// Misspelled reports whether word is most likely one of names with a few wrong letters.
func Misspelled(word string, names map[string]string) bool {
	_, d := nearest(word, names)
	return d < part
}

// nearest returns the value of the key in names that is most similar to word, and its distance.
func nearest(word string, names map[string]string) (meant string, best int) {
	best = none
	typed := bare(word)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if d := distance(typed, bare(name)); d < best {
			best, meant = d, names[name]
		}
	}
	return meant, best
}

// part is the least distance of words of which one is a part of the other, and none that of words
// that are not similar.
const part, none = 100, 1000

// Same returns names for [Meant] that stand for themselves.
func Same(names []string) map[string]string {
	same := make(map[string]string, len(names))
	for _, name := range names {
		same[name] = name
	}
	return same
}

// bare returns the letters and digits of a word.
func bare(word string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(word))
}

// distance returns how many letters are missing, too many, wrong or swapped in word, part and more
// if word begins name or contains it, or none. The end of a name says little: --file is not
// --log-file.
func distance(word, name string) int {
	a, b := []rune(word), []rune(name)
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
		for j := range b {
			rows[0][j+1] = j + 1
			if i == 0 {
				continue
			}
			wrong := 1
			if a[i-1] == b[j] {
				wrong = 0
			}
			rows[i][j+1] = min(rows[i-1][j+1]+1, rows[i][j]+1, rows[i-1][j]+wrong)
			if i > 1 && j > 0 && a[i-1] == b[j-1] && a[i-2] == b[j] {
				rows[i][j+1] = min(rows[i][j+1], rows[i-2][j-1]+1)
			}
		}
	}
	d := rows[len(a)][len(b)]
	const shortest = 3 // of a part that says something
	switch {
	case len(a) > 1 && d <= min(2, max(1, len(a)/3)):
		return d
	case min(len(a), len(b)) >= shortest &&
		(strings.HasPrefix(name, word) || strings.Contains(word, name)):
		return part + d
	}
	return none
}
