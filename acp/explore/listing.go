package explore

import (
	"errors"
	"fmt"
	"strings"
)

// errEnough ends a search whose answer is full.
var errEnough = errors.New("enough")

// listing writes hits grouped by root, as they come, up to the bounds of the answer.
type listing struct {
	reply *reply
	roots []root
	// noun names what is counted.
	noun, nouns string
	// left is how many hits may still be shown.
	left int
	// cut says why not all hits are shown, "" if they are.
	cut string
	// open is the root whose group is being written, -1 for none.
	open   int
	tally  []tally // by root
	places []location
}

// tally is how much was shown of a root.
type tally struct{ hits, files int }

func (t *turn) listing(noun, nouns string) *listing {
	return &listing{
		reply: t.reply, roots: t.roots, noun: noun, nouns: nouns,
		left: t.options.MaxHits, open: -1, tally: make([]tally, len(t.roots)),
	}
}

// add writes a hit on a line of its own. The error is errEnough where the answer is full.
func (l *listing) add(root int, line string, place location) error {
	if l.left == 0 {
		l.cut = fmt.Sprintf("the first %s are shown", count(l.hits(), l.noun, l.nouns))
		return errEnough
	}
	if !l.reply.take(len(line) + 1) {
		l.cut = fmt.Sprintf("the first %s are shown, which is all that an answer of %s holds",
			count(l.hits(), l.noun, l.nouns), size(l.reply.bound))
		return errEnough
	}
	l.left--
	l.tally[root].hits++
	if validPath(place.Path) {
		l.places = append(l.places, place)
	}
	return l.reply.write(l.turnTo(root) + line + "\n")
}

// turnTo ends the group of one root and begins that of another. Its fence is safe: every
// line in it begins with the name of a file.
func (l *listing) turnTo(root int) string {
	if l.open == root {
		return ""
	}
	end := l.end()
	l.open = root
	return fmt.Sprintf("%s**%s**\n\n```text\n", end, code(l.roots[root].label))
}

// end ends the group that is open.
func (l *listing) end() string {
	if l.open < 0 {
		return ""
	}
	l.open = -1
	return "```\n\n"
}

func (l *listing) hits() int {
	n := 0
	for _, t := range l.tally {
		n += t.hits
	}
	return n
}

// summary says what was found in each root.
func (l *listing) summary() string {
	if l.hits() == 0 {
		return fmt.Sprintf("No %s in %s.", l.noun, l.where())
	}
	var parts []string
	for i, t := range l.tally {
		part := code(l.roots[i].label) + ": "
		switch {
		case t.hits == 0:
			part += "none"
		case l.noun == "file":
			part += count(t.hits, l.noun, l.nouns)
		default:
			part += fmt.Sprintf("%s in %s", count(t.hits, l.noun, l.nouns), count(t.files, "file", "files"))
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ") + "."
}

// where names the roots.
func (l *listing) where() string {
	var names []string
	for _, r := range l.roots {
		names = append(names, code(r.label))
	}
	return strings.Join(names, ", ")
}
