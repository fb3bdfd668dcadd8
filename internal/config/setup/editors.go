package setup

import (
	"cmp"
	_ "embed"
	"strings"

	"github.com/go-json-experiment/json"
)

// An editor is a program that acp-agent can be added to.
type editor struct {
	name  string // for --editor
	Title string `json:"title"` // as in docs/editors.md
	// Files says where the snippet belongs, by operating system or "" for all others.
	Files map[string]string `json:"files"`
	// Names are the editor's names for known agents, nil if the user chooses the name.
	Names   map[string]string `json:"names"`
	Between string            `json:"between"` // the arguments; default ", "
	Needs   string            `json:"needs"`   // the versions that it needs, "" for any
	// Roots is the text that the user types for the command /roots, if that is something else.
	Roots string `json:"roots"`
	// SendsFolders means that sessions always have the folders that the editor shows.
	SendsFolders bool `json:"sendsFolders"`
	// snippet is the text to add. <name> stands for the editor's name for the agent, <program>
	// for the quoted path of acp-agent, <args> for its quoted arguments and <line> for both.
	snippet string
}

// editorsText has the editors that docs/editors.md describes, with the same snippets, and at the
// end one that stands for all others.
//
//go:embed editors.txt
var editorsText string

// entries yields the names of the editors, and the rest of what editorsText has of them.
func entries(yield func(name, entry string) bool) {
	for entry := range strings.SplitSeq("\n"+editorsText, "\n== ") {
		name, rest, ok := strings.Cut(entry, " ")
		if ok && !yield(name, rest) {
			return
		}
	}
}

// EditorNames returns the names that --editor accepts. Each start of the program needs them.
func EditorNames() (names []string) {
	for name := range entries {
		names = append(names, name)
	}
	return names
}

// editors returns the editors.
func editors() (all []editor) {
	for name, entry := range entries {
		about, snippet, _ := strings.Cut(strings.TrimSuffix(entry, "\n")+"\n", "\n--\n")
		e := editor{name: name, snippet: snippet}
		if err := json.Unmarshal([]byte(about), &e); err != nil {
			panic(err) // the tests read all of them
		}
		all = append(all, e)
	}
	return all
}

// defaultName is the name of an agent that a plugin knows. It is used for agents that the plugin
// does not know.
const defaultName = "opencode"

// nameOf returns the editor's name for an agent, or "" if the editor does not know the agent.
func (e editor) nameOf(agent string) string {
	if e.Names == nil {
		return "acp-agent"
	}
	return cmp.Or(e.Names[agent], e.Names[defaultName])
}

// path returns where the snippet belongs on an operating system, "" if that is not known.
func (e editor) path(system string) string { return cmp.Or(e.Files[system], e.Files[""]) }

// render returns the snippet.
func (e editor) render(name, program string, args []string) string {
	between := cmp.Or(e.Between, ", ")
	words := make([]string, len(args)+1)
	for i, word := range append([]string{program}, args...) {
		quoted, _ := json.Marshal(word) // which is also valid in Lua and Lisp
		words[i] = string(quoted)
	}
	return strings.NewReplacer("<name>", name, "<program>", words[0],
		"<args>", strings.Join(words[1:], between),
		"<line>", strings.Join(words, between)).Replace(e.snippet)
}
