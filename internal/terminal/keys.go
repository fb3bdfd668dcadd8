package terminal

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/internal/text"
)

// The keys that are not text, as nextKey returns them.
const (
	keyUp, keyDown         = "\x1b[A", "\x1b[B"
	keyPageUp, keyPageDown = "\x1b[5~", "\x1b[6~"
	keyHome, keyEnd        = "\x1b[H", "\x1b[F"
	keyEscape, keyEnter    = "\x1b", "\r"
	keyDelete              = "\x7f"
	keyInterrupt           = "\x03" // Ctrl-C
	keyEndOfInput          = "\x04" // Ctrl-D
	keyClear               = "\x15" // Ctrl-U
	keySuspend             = "\x1a" // Ctrl-Z

	pasteStart, pasteEnd = "\x1b[200~", "\x1b[201~"
)

// keyTick is how long to wait for a key before looking whether something else has changed, such as
// the size of the terminal.
const keyTick = 250 * time.Millisecond

// keyboard reads the keys that are typed on a terminal.
type keyboard struct {
	screen *Screen
	typed  string // and not used
}

// ready reports whether a key was read and not used.
func (k *keyboard) ready() bool {
	key, _ := nextKey(k.typed)
	return key != ""
}

// next returns the next key, "" if none is typed within wait.
func (k *keyboard) next(wait time.Duration) (string, error) {
	const (
		keyTime   = 50 * time.Millisecond // in which the rest of a key arrives
		pasteTime = 5 * time.Second       // in which more of a pasted text arrives
	)
	for {
		key, rest := nextKey(k.typed)
		if key != "" {
			k.typed = rest
			return key, nil
		}
		switch {
		case strings.HasPrefix(k.typed, pasteStart):
			wait = pasteTime
		case k.typed != "":
			wait = keyTime
		}
		more, err := k.screen.read(wait)
		if err != nil {
			return "", err
		}
		if more == "" {
			key, k.typed = k.typed, ""
			return key, nil // Escape, or what is not a key
		}
		k.typed += more
	}
}

// nextKey returns the first key of what was typed: its character, its sequence, or pasteStart with
// the text that was pasted. The key is "" if more of it may follow, or nothing was typed.
func nextKey(typed string) (key, rest string) {
	if pasted, ok := strings.CutPrefix(typed, pasteStart); ok {
		pasted, rest, ok = strings.Cut(pasted, pasteEnd)
		if !ok {
			return "", typed
		}
		return pasteStart + strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(pasted), rest
	}
	size := 0
	switch {
	case !utf8.FullRuneInString(typed) || typed == keyEscape:
		return "", typed
	case typed[0] != '\x1b':
		_, size = utf8.DecodeRuneInString(typed)
	case typed[1] == '\x1b':
		size = 1
	case typed[1] != '[' && typed[1] != 'O': // with Alt
		_, size = utf8.DecodeRuneInString(typed[1:])
		size++
	default:
		last := strings.IndexFunc(typed[2:], func(r rune) bool { return r >= '@' && r <= '~' })
		if last < 0 {
			return "", typed
		}
		size = 2 + last + 1
	}
	key, rest = typed[:size], typed[size:]
	switch key {
	case "\x1b[1~", "\x1bOH":
		key = keyHome
	case "\x1b[4~", "\x1bOF":
		key = keyEnd
	case "\x1bOA", "\x1bOB":
		key = "\x1b[" + key[2:]
	}
	return key, rest
}

// typedText returns the text of a key, "" if it is another one.
func typedText(key string) string {
	if pasted, ok := strings.CutPrefix(key, pasteStart); ok {
		return pasted
	}
	if r, _ := utf8.DecodeRuneInString(key); !unicode.IsPrint(r) {
		return ""
	}
	return key
}

// lineOf returns typed text as a part of a line.
func lineOf(typed string) string {
	const most = 1000
	return OneLine(text.Prefix(typed, most))
}

// withoutLast returns s without its last character.
func withoutLast(s string) string {
	_, size := utf8.DecodeLastRuneInString(s)
	return s[:len(s)-size]
}
