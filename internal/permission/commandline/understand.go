package commandline

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// maxWords is the maximum number of words of a command.
const maxWords = 100

// Command is a command whose every word is understood.
type Command struct {
	// Rule are its first words, which a rule for such commands remembers. Every word after them is
	// in the table.
	Rule []string
	// Env are the variables, as NAME=VALUE, with which the command should run. Bare is nil if
	// nothing in the roots can make it run something else without them.
	Env  []string
	Bare error
	// Reads are the files and folders of which the command may print the content, besides the files
	// that its words name. It is empty for programs that run code, which may read anything.
	Reads []Reading
}

// Understand reads a line that a POSIX shell runs in dir, a path in ws. It returns an error unless
// the line is one command of the table, has only plain words, options and operands that are listed
// there, and names no path outside the roots. Paths are resolved by the handles of ws, and must
// mean the same to another process. A change on the disk after that goes unnoticed.
func Understand(ws *workspace.Workspace, dir, line string) (Command, error) {
	words, err := Plain(line)
	if err != nil {
		return Command{}, err
	}
	for i := range ws.Opened() {
		if state, err := ws.State(i); err != nil || state != workspace.OK {
			return Command{}, errors.New("a root was replaced") // paths lead elsewhere
		}
	}
	if slices.ContainsFunc(filepath.SplitList(os.Getenv("PATH")), isRelative) {
		return Command{}, errors.New("PATH has the current directory") // which may have the program
	}
	_, c, err := newPlace(ws, dir).read(words)
	return c, err
}

// place is a folder in which commands run.
type place struct {
	ws         *workspace.Workspace
	dir        string
	repository func() (repository, error)
}

func newPlace(ws *workspace.Workspace, dir string) place {
	return place{ws, dir, sync.OnceValues(func() (repository, error) {
		return examine(ws, dir)
	})}
}

// read reads the words of a command. The reader tells how far it is understood.
func (p place) read(words []string) (r reader, c Command, err error) {
	used, n := find(words)
	if n == 0 {
		return r, c, fmt.Errorf("%s is not known", words[0])
	}
	r = reader{place: p, usage: used, rest: words[n:]}
	if err := r.readAll(); err != nil {
		return r, c, err
	}
	r.understood = true
	c.Rule = words[:n:n]
	err = r.complete(&c)
	return r, c, err
}

func isRelative(dir string) bool { return !filepath.IsAbs(dir) }

// Plain returns the words of a line that is a single command without anything that a shell would
// change.
func Plain(line string) ([]string, error) {
	if runtime.GOOS == "windows" {
		return nil, errors.New("command lines of cmd.exe are not understood")
	}
	tokens, complete := split(strings.TrimRight(line, " \t\n"))
	switch {
	case len(line) > MaxLine:
		return nil, errors.New("the command is too long")
	case !complete:
		return nil, errors.New("a quotation does not end")
	case len(tokens) == 0 || len(tokens) > maxWords:
		return nil, fmt.Errorf("it does not have 1 to %d words", maxWords)
	}
	var words []string
	for _, t := range tokens {
		if t.kind != literal || t.text == "" {
			return nil, fmt.Errorf("%q is more than a plain word", t.text)
		}
		words = append(words, t.text)
	}
	return words, nil
}

// Begins reports whether these words begin the words of a rule.
func Begins(words []string) bool {
	return slices.ContainsFunc(programs(), func(u usage) bool {
		items := strings.Fields(u.words)
		n := min(len(items), len(words))
		return len(words) <= len(items) && (usage{words: strings.Join(items[:n], " ")}).match(words) > 0
	})
}

// find returns the usage of a command, and how many of the words name it.
func find(words []string) (usage, int) {
	for _, u := range programs() {
		if n := u.match(words); n > 0 {
			return u, n
		}
	}
	return usage{}, 0
}

// isKind reports whether a word is of a kind that can be told by the word alone. The patterns are
// compiled when they are needed, to keep the start of the program fast.
func isKind(kind, word string) bool {
	pattern := set("@" + kind)
	return pattern != "" && regexp.MustCompile(pattern).MatchString(word)
}

// option is an item of a usage's options.
type option struct {
	name, kind string
	// inNext says that the value may be the next word, optional that there need be none.
	inNext, optional bool
}

func optionsOf(listed string) []option {
	var all []option
	for item := range strings.FieldsSeq(listed) {
		name, kind, inNext := strings.Cut(item, ":")
		if !inNext {
			name, kind, _ = strings.Cut(item, "=")
		}
		name, optional := strings.CutSuffix(name, "[")
		all = append(all, option{name, strings.TrimSuffix(kind, "]"), inNext, optional})
	}
	return all
}

// reader checks the words after those of a rule.
type reader struct {
	place
	usage    usage
	rest     []string
	passed   bool // the word "--"
	operands []operand
	options  []string

	understood bool // all words are
}

// operand is a word that is not an option, nor the value of one.
type operand struct {
	word, kind string
	passed     bool // after "--"
}

func (r *reader) readAll() error {
	options := optionsOf(r.usage.options)
	for len(r.rest) > 0 {
		word := r.rest[0]
		r.rest = r.rest[1:]
		var err error
		switch {
		case word == "--" && !r.passed:
			r.passed, options, r.usage.letters = true, optionsOf(r.usage.passed), ""
		case !strings.HasPrefix(word, "-"):
			err = r.readOperand(word)
		case !r.readOption(word, options):
			err = fmt.Errorf("%q is not a known option", word)
		default:
			r.options = append(r.options, word)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) readOperand(word string) error {
	listed := strings.Fields(r.usage.operands)
	if len(listed) == 0 {
		return fmt.Errorf("%q is more than the rule covers", word)
	}
	kind, repeated := strings.CutSuffix(listed[min(len(r.operands), len(listed)-1)], "...")
	r.operands = append(r.operands, operand{word, kind, r.passed})
	if len(r.operands) > len(listed) && !repeated {
		return fmt.Errorf("%q is one word too many", word)
	}
	return r.check(kind, word)
}

// readOption reports whether a word is an option of the usage, with a value of the right kind.
func (r *reader) readOption(word string, options []option) bool {
	if letters := word[1:]; letters != "" && strings.Trim(letters, r.usage.letters) == "" {
		return true
	}
	return slices.ContainsFunc(options, func(o option) bool { return r.isOption(o, word) })
}

func (r *reader) isOption(o option, word string) bool {
	isLetter := len(o.name) == len("-n")
	value, hasName := strings.CutPrefix(word, o.name)
	assigned, hasSign := strings.CutPrefix(value, "=")
	switch {
	case o.name == "-NUM":
		return isKind("NUM", word[1:])
	case !hasName:
		return false
	case value == "" && (o.kind == "" || o.optional):
		return true
	case value == "" && o.inNext && len(r.rest) > 0 && r.check(o.kind, r.rest[0]) == nil:
		r.rest = r.rest[1:]
		return true
	case value == "" || o.kind == "":
		return false
	case hasSign && !(o.inNext && isLetter):
		return r.check(o.kind, assigned) == nil
	default: // such as -n5
		return !hasSign && o.inNext && isLetter && r.check(o.kind, value) == nil
	}
}

// check returns an error unless word is of a kind.
func (r *reader) check(kind, word string) error {
	switch {
	case kind == "PATH", kind == "PKG" && isKind(kind, word):
		return inside(r.ws, r.dir, word)
	case kind == "FILE":
		return r.ws.HandOverFile(Absolute(r.dir, word))
	case !isKind(kind, word):
		return fmt.Errorf("%q is not of the kind %s", word, kind)
	default:
		return nil
	}
}

// TakesMore reports whether other words may follow those of a rule.
func TakesMore(rule []string) bool {
	used, _ := find(rule)
	return used.letters+used.options+used.passed+used.operands != ""
}

// Describe says for a person what a rule covers besides its words, in Markdown. It is "" if the
// rule covers nothing else.
func Describe(rule []string) string {
	used, _ := find(rule)
	var covers []string
	var names []string
	for _, letter := range used.letters {
		names = append(names, "-"+string(letter))
	}
	for _, o := range optionsOf(used.options + " " + used.passed) {
		names = append(names, o.name)
	}
	if len(names) > 0 {
		covers = append(covers, "these options: "+text.Code(strings.Join(names, " ")))
	}
	switch operands := used.operands; {
	case slices.ContainsFunc([]string{"FILE", "PATH", "PKG"}, func(kind string) bool {
		return strings.Contains(operands, kind)
	}):
		covers = append(covers, "paths in the folders of this session")
	case operands != "":
		covers = append(covers, "other targets")
	}
	if len(covers) == 0 {
		return ""
	}
	return "If you always allow " + text.Code(strings.Join(rule, " ")) + " in this folder, it is " +
		"not asked for again with " + strings.Join(covers, " and ") +
		". Anything else is asked for."
}
