package gitignore

import "strings"

// byteSet is a set of bytes.
type byteSet [4]uint64

func (s *byteSet) has(c byte) bool { return s[c>>6]&(1<<(c&63)) != 0 }

func (s *byteSet) add(first, last byte) {
	for c := int(first); c <= int(last); c++ {
		s[c>>6] |= 1 << (c & 63)
	}
}

func (s *byteSet) invert() {
	for i := range s {
		s[i] = ^s[i]
	}
}

// parseSet reads the set at the beginning of text, which is a "[". size is the
// bytes that it takes up. ok is false if it is not closed or names an unknown class.
func parseSet(text string) (set *byteSet, size int, ok bool) {
	set = &byteSet{}
	i := 1
	negated := i < len(text) && (text[i] == '!' || text[i] == '^')
	if negated {
		i++
	}
	// A "]" right at the beginning is a member. low is the member before, from which a "-"
	// makes a range; nothing to begin one from is -1.
	for first, low := i, -1; ; {
		if i >= len(text) {
			return nil, 0, false
		}
		if text[i] == ']' && i > first {
			break
		}
		if text[i] == '-' && low >= 0 && i+1 < len(text) && text[i+1] != ']' {
			high, size, ok := member(text[i+1:])
			if !ok {
				return nil, 0, false
			}
			set.add(byte(low), high)
			i, low = i+1+size, -1
			continue
		}
		name, size, isClass := classAt(text[i:])
		if isClass {
			if !set.addClass(name) {
				return nil, 0, false
			}
			i, low = i+size, -1
			continue
		}
		c, size, ok := member(text[i:])
		if !ok {
			return nil, 0, false
		}
		set.add(c, c)
		i, low = i+size, int(c)
	}
	if negated {
		set.invert()
	}
	return set, i + 1, true
}

// member reads one byte, which may be quoted.
func member(text string) (c byte, size int, ok bool) {
	if text[0] != '\\' {
		return text[0], 1, true
	}
	if len(text) == 1 {
		return 0, 0, false
	}
	return text[1], 2, true
}

// classAt reads a "[:name:]" at the beginning of text.
func classAt(text string) (name string, size int, ok bool) {
	rest, ok := strings.CutPrefix(text, "[:")
	if !ok {
		return "", 0, false
	}
	end := strings.IndexByte(rest, ']')
	if end < 1 || rest[end-1] != ':' {
		return "", 0, false
	}
	return rest[:end-1], len("[:") + end + 1, true
}

// addClass adds a POSIX class, in ASCII. It reports whether there is one of that name.
func (s *byteSet) addClass(name string) bool {
	switch name {
	case "alnum":
		s.add('0', '9')
		s.add('A', 'Z')
		s.add('a', 'z')
	case "alpha":
		s.add('A', 'Z')
		s.add('a', 'z')
	case "blank":
		s.add(' ', ' ')
		s.add('\t', '\t')
	case "cntrl":
		s.add(0, 31)
		s.add(127, 127)
	case "digit":
		s.add('0', '9')
	case "graph":
		s.add('!', '~')
	case "lower":
		s.add('a', 'z')
	case "print":
		s.add(' ', '~')
	case "punct":
		s.add('!', '/')
		s.add(':', '@')
		s.add('[', '`')
		s.add('{', '~')
	case "space":
		s.add('\t', '\r')
		s.add(' ', ' ')
	case "upper":
		s.add('A', 'Z')
	case "xdigit":
		s.add('0', '9')
		s.add('A', 'F')
		s.add('a', 'f')
	default:
		return false
	}
	return true
}
