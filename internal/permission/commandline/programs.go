package commandline

import (
	_ "embed"
	"errors"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/worktree"
)

// usage says how a program may be called by a rule, as programs.txt describes it. A word that it
// does not list is not understood. In all of its lists, items are separated by spaces.
type usage struct{ words, letters, options, passed, operands, prints string }

//go:embed programs.txt
var table string

// programs returns the table. It is read when it is needed, to keep the start of the program fast.
func programs() []usage { all, _ := readTable(); return all }

// Program returns the name of a program without its folder.
func Program(word string) string {
	return strings.TrimSuffix(path.Base(strings.ReplaceAll(word, `\`, "/")), ".exe")
}

// set returns the items of a set of the table, or "".
func set(name string) string { _, sets := readTable(); return sets[name] }

// In reports whether a set of the table lists a word.
func In(name, word string) bool { return slices.Contains(strings.Fields(set(name)), word) }

var readTable = sync.OnceValues(func() (all []usage, sets map[string]string) {
	sets = make(map[string]string)
	var last *string
	for line := range strings.Lines(table) {
		indented := strings.HasPrefix(line, "\t")
		key, rest := text.CutWord(strings.TrimSpace(line))
		switch {
		case key == "" || key[0] == '#':
			continue
		case !indented:
			all = append(all, usage{words: strings.TrimSpace(line)})
			continue
		case !strings.HasPrefix(line, "\t\t"):
			u := &all[len(all)-1]
			last = map[string]*string{"letters": &u.letters, "options": &u.options,
				"passed": &u.passed, "operands": &u.operands, "prints": &u.prints}[key]
		default:
			rest = strings.TrimSpace(line)
		}
		for item := range strings.FieldsSeq(rest) {
			if set, is := sets[item]; is {
				item = set
			}
			*last = strings.TrimSpace(*last + " " + item)
		}
		if u := all[len(all)-1]; u.words[0] == '@' {
			sets[u.words] = u.options
		}
	}
	return slices.DeleteFunc(all, func(u usage) bool { return u.words[0] == '@' }), sets
})

// complete completes a command whose words are read. It returns an error if there is no environment
// in which it surely runs nothing else.
func (r *reader) complete(c *Command) error {
	const variable = "RIPGREP_CONFIG_PATH" // which may let rg follow links
	switch r.usage.prints {
	case "repository":
		in, err := r.repository()
		if err == nil {
			c.Env, c.Bare = worktree.Environment(in.top), in.bare
			c.Reads = r.gitReads(c.Rule[1], in.top, in.tracked)
		}
		return err
	case "rg", "names":
		if os.Getenv(variable) != "" {
			c.Bare = errors.New(variable + " is set")
		}
		c.Env = []string{variable + "="}
	}
	c.Reads = r.folders(r.operands)
	return nil
}

// match returns how many words of a command the usage's own words cover, or 0.
func (u usage) match(words []string) int {
	items := strings.Fields(u.words)
	if len(words) < len(items) {
		return 0
	}
	for i, item := range items {
		isTask := item == "TASK" && isKind(item, words[i])
		if !isTask && !slices.Contains(strings.Split(item, "|"), words[i]) {
			return 0
		}
	}
	return len(items)
}
