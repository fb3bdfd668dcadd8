package permission

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/permission/commandline"
	"github.com/acp-agent/acp-agent/internal/text"
)

// runRule is a rule for Run, about the command with these words. Without words it is about all
// commands.
type runRule struct {
	words []string
	more  bool // other words may follow
}

// parseRun reads words, which must be plain ones for a shell.
func parseRun(line string) (matcher, error) {
	var r runRule
	if line == "" {
		return r, nil
	}
	for _, mark := range []string{" ...", " …"} {
		if before, found := strings.CutSuffix(line, mark); found {
			line, r.more = before, true
		}
	}
	words, err := commandline.Plain(line)
	if err != nil {
		return r, fmt.Errorf("a run rule has plain words: %w", err)
	}
	r.words = words
	return r, nil
}

func (r runRule) String() string {
	written := text.JoinFunc(r.words, " ", shellWord)
	if r.more {
		written = strings.TrimPrefix(written+" ...", " ")
	}
	return written
}

// shellWord returns a word as a shell would have to be given it.
func shellWord(word string) string {
	if words, err := commandline.Plain(word); err == nil && slices.Equal(words, []string{word}) {
		return word
	}
	return "'" + word + "'" // one with a quote is not plain when it is read again
}

// check returns an error if an allow rule would allow nothing, or too much.
func (r runRule) check() error {
	switch {
	case r.words == nil:
		return errors.New("rule run: an allow rule names a command, as run go test ... does")
	case r.more && !commandline.Begins(r.words):
		return fmt.Errorf("rule %s: it is not known which words may follow there; without ... the "+
			"rule allows exactly this command", text.Quote("run "+r.String()))
	}
	return nil
}

func (r runRule) allows(a Action) bool {
	if r.more {
		return len(a.Command.Known) >= len(r.words) && slices.Equal(a.Command.Known[:len(r.words)], r.words)
	}
	return slices.Equal(a.Command.Words, r.words)
}

func (r runRule) touches(a *prepared) bool {
	if r.words == nil {
		return a.Verb != Tool || a.Command.Line != "" // it says a command
	}
	return slices.ContainsFunc(a.said, func(s saying) bool {
		return slices.ContainsFunc(s.line.Any, r.follows)
	})
}

// mayTouch reports whether a tool gets the words, in any order, or a command may make them.
func (r runRule) mayTouch(a *prepared) bool {
	if r.words == nil {
		return false
	}
	for i, wanted := range r.words {
		is := func(word string) bool { return isWord(wanted, word, i == 0) }
		if !a.Hints.More && !slices.ContainsFunc(a.Hints.Words, is) {
			return false
		}
	}
	return true
}

// follows reports whether words contain those of the rule in their order, wherever they stand in a
// command: after assignments, in quotes, behind another program. The first may have a directory
// before it.
func (r runRule) follows(words []string) bool {
	found := 0
	for _, word := range words {
		if found < len(r.words) && isWord(r.words[found], word, found == 0) {
			found++
		}
	}
	return found == len(r.words)
}

// isWord reports whether a word of a command is the one of a rule, or a pattern of a shell that
// matches it.
func isWord(wanted, word string, isProgram bool) bool {
	wanted, word = strings.ToLower(wanted), strings.ToLower(word)
	if wanted == word || matchesWord(word, wanted) {
		return true
	}
	if !isProgram {
		return false
	}
	base := path.Base(strings.ReplaceAll(word, `\`, "/"))
	return wanted == base || wanted == strings.TrimSuffix(base, ".exe") ||
		matchesWord(base, wanted)
}

// matchesWord reports whether a word is a pattern of a shell that matches another one.
func matchesWord(pattern, word string) bool {
	matches, _ := path.Match(pattern, word)
	return matches && commandline.IsPattern(pattern)
}

// exactRule is a rule for Run without a text that users write: about a line in a folder, while
// the files that it names are unchanged.
type exactRule struct{ line, state string }

func (r exactRule) String() string { return r.line }

func (r exactRule) allows(a Action) bool {
	return r.line == a.Command.Line && r.state == a.Command.State
}

func (exactRule) touches(*prepared) bool { return false }

func (exactRule) mayTouch(*prepared) bool { return false }

func (r Rule) allowsExactly(a *prepared) bool {
	return a.complete && is[exactRule](r) && r.allows(a.Action)
}

func offerRun(a Action) (written string, in Scope) {
	in.Root = a.Where.Root
	r := runRule{words: a.Command.Known, more: commandline.TakesMore(a.Command.Known)}
	switch {
	case r.words != nil:
	case a.Standing:
		return "", in
	default: // the words mean something else in another folder, and the agent can write the file
		r.words, in.Within = a.Command.Words, a.Where.Within
		if a.Command.Local {
			in.Session = a.Session
		}
	}
	return "run " + r.String(), in
}
