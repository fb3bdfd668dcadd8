package permission

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/internal/permission/commandline"
	"github.com/acp-agent/acp-agent/internal/text"
)

// Effect says what happens to an action.
type Effect string

// The effects, the default first.
const (
	Ask   Effect = "ask"
	Allow Effect = "allow"
	Deny  Effect = "deny"
)

// File is a file of an action.
type File struct {
	// Path is the absolute path that the action names. Real is the path without links, "" if it is
	// unknown.
	Path, Real string
	// Names are the paths that an allow rule's pattern must match, all of them: the action's path
	// and the real one, relative to the root. Others are further names that a deny rule may match.
	Names, Others []string
	// Root is the real path of the root that the file is in, for this and other processes; "" if it
	// is in none.
	Root string
	// Folder means that it is a folder, of which everything may be read.
	Folder bool
	// Word is the word of a command that names it, "" for other files.
	Word string
	// Risk says why a write is asked about even if edits are allowed; see [WhyAsk].
	Risk string

	spelled []string // Names and Others as deny and ask rules compare them, set by [Decide]
}

// Action is what an agent says that it will do. The zero value is an action of which nothing is
// known.
type Action struct {
	Verb Verb
	// Files are the files of Read and Edit, and what a command may name.
	Files []File
	// Line is the text of a command. Words are its words if it is a single command of plain words,
	// and Known the first of them if package commandline understands the others. Odd says why a
	// command that looks plain is not certain.
	Line         string
	Words, Known []string
	Odd          string
	// Reads are files of which a command may print the content although no word names them.
	Reads []File
	// Local means that a command names a file in the roots, such as the script that it runs.
	Local bool
	// Root is the real path of the root in which a command runs, or of the session. RootTold means
	// that the agent has told where, and Within is the folder in the root then.
	Root     string
	RootTold bool
	Within   string
	// Server and Tool are the names of an MCP server and its tool. ReadOnly is the server's claim
	// that the tool changes nothing. Config identifies the server's configuration, "" if that is
	// unknown. Found means that a file in a root configures the server.
	Server, Tool    string
	ReadOnly, Found bool
	Config          string
	// Passed has what the arguments of a tool, or a command, may mean besides Line and Files.
	Passed Passed
	// Host is the one that Fetch connects to.
	Host string
	// Names are further paths or patterns of the request, which deny and ask rules may match.
	Names []string
	// Texts are other texts of the request, in which deny and ask rules look for their words.
	Texts []string
	// Unclear says why the action is not understood as a whole, "" if it is.
	Unclear string
	// Session is the session that does it.
	Session string
	// Mode has the rules of the session's mode.
	Mode Rules
	// Standing means that the question has an answer of its own that is better than a rule for
	// exactly this action.
	Standing bool
	// State changes when a file changes that a command names, for [Permits.AllowExactly].
	State string

	said []saying // Line and Texts, set by [Decide]
}

// Passed are the words in texts that a tool gets, in no order, and the files that they, or the
// patterns of a command, may name. More means that there may be others: there are more than are
// looked at, or a command makes them when it runs.
type Passed struct {
	Words []string
	Files []File
	More  bool
}

// Verdict is the answer to an action.
type Verdict struct {
	Effect Effect
	// Rule is the rule that decided, the zero Rule if none did.
	Rule Rule
	// Why says why the user is asked although there are rules.
	Why string
	// Again means that Rule, an ask or deny rule, may be about the action, so that the user is
	// asked again even if other rules allow it.
	Again bool
}

// Decide decides about an action.
func Decide(a Action, rules Rules) Verdict {
	if a.Verb != Tool { // modes are not about tools
		rules = rules.With(a.Mode)
	}
	a.Names = spelledNames(a.Names)
	a.Files, a.Reads, a.Passed.Files = spell(a.Files), spell(a.Reads), spell(a.Passed.Files)
	said, complete := a.texts()
	a.said = said
	is := func(r Rule) bool { return r.touches(a) }
	if i := slices.IndexFunc(rules.Deny, is); i >= 0 {
		return Verdict{Effect: Deny, Rule: rules.Deny[i]}
	}
	if i := slices.IndexFunc(rules.Ask, is); i >= 0 {
		return Verdict{Effect: Ask, Rule: rules.Ask[i], Why: "a rule says to ask"}
	}
	is = func(r Rule) bool { return r.isGrant() && r.mayTouch(a) }
	if i := slices.IndexFunc(rules.Deny, is); i >= 0 { // however unclear it is
		return Verdict{Effect: Ask, Rule: rules.Deny[i], Again: true,
			Why: "it may change something in a read-only folder"}
	}
	why := a.whyUnclear()
	exact := slices.IndexFunc(rules.Allow, func(r Rule) bool { return r.isExact() && r.allows(a) })
	if complete && exact >= 0 {
		return Verdict{Effect: Allow, Rule: rules.Allow[exact]}
	}
	for _, list := range [][]Rule{rules.Deny, rules.Ask} { // there may be many to copy
		may := func(r Rule) bool { return r.mayTouch(a) }
		if i := slices.IndexFunc(list, may); i >= 0 {
			why := "the rule " + text.Code(list[i].String()) + " may apply to it"
			return Verdict{Effect: Ask, Rule: list[i], Why: why, Again: true}
		}
	}
	switch {
	case !complete:
		return Verdict{Effect: Ask, Why: "it is too long to compare with the rules"}
	case why != "":
		return Verdict{Effect: Ask, Why: why}
	}
	return a.allowedBy(rules.Allow)
}

// allowedBy allows an action if a rule allows it, or one each of its files.
func (a Action) allowedBy(allow []Rule) (v Verdict) {
	v = Verdict{Effect: Ask, Why: "the request names no file"}
	for _, part := range a.parts() {
		i := slices.IndexFunc(allow, func(r Rule) bool { return r.allows(part) })
		switch {
		case a.Verb == Edit && part.Files[0].Risk != "":
			return Verdict{Effect: Ask, Why: part.Files[0].Risk}
		case i < 0:
			return Verdict{Effect: Ask, Why: "no rule allows it"}
		}
		v = Verdict{Effect: Allow, Rule: allow[i]}
	}
	return v
}

// parts returns what is allowed separately: each file that is read or edited, in its root.
func (a Action) parts() (parts []Action) {
	if a.Verb != Read && a.Verb != Edit {
		return []Action{a}
	}
	for _, f := range a.Files {
		part := a
		part.Files, part.Root = []File{f}, f.Root
		parts = append(parts, part)
	}
	return parts
}

// whyUnclear says why no rule can allow the action, "" if one can.
func (a Action) whyUnclear() string {
	_, known := kinds[a.Verb]
	switch {
	case a.Unclear != "":
		return a.Unclear
	case a.Verb == Run && a.Words == nil:
		return "the command is more than plain words"
	case a.Verb == Run:
		return a.Odd
	case !known:
		return "no rule can allow this"
	}
	return ""
}

// spell returns files with the spellings of their names, which are the same for all rules.
func spell(files []File) []File {
	files = slices.Clone(files)
	for i, f := range files {
		files[i].spelled = spelledNames(slices.Concat(f.Names, f.Others))
	}
	return files
}

// spelledNames returns names in all spellings that patterns are compared with. No file has a name
// that is too long.
func spelledNames(names []string) (all []string) {
	for _, name := range names {
		if len(name) > maxPath {
			continue
		}
		for _, s := range []string{name, strings.ToLower(name), path.Join(namesOf(name)...)} {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}

const (
	allowedMark = " (allowed by the rule "
	deniedMark  = " (refused by the rule "
)

// Mark returns what is added to the title of a tool call about which a rule has decided.
func (v Verdict) Mark() string {
	mark := allowedMark
	if v.Effect == Deny {
		mark = deniedMark
	}
	return mark + text.Code(v.Rule.String()) + ")"
}

// DeniedBy returns the rule that a mark in the title of a tool call names, "" if none has refused
// it.
func DeniedBy(title string) string {
	_, rule, marked := strings.Cut(title, deniedMark)
	if !marked {
		return ""
	}
	return strings.Trim(strings.TrimSuffix(rule, ")"), "` ")
}

// String describes a verdict in one line.
func (v Verdict) String() string {
	if v.Rule.matcher != nil && !v.Again {
		return fmt.Sprintf("%s (%s)", v.Effect, v.Rule)
	}
	return fmt.Sprintf("%s (%s)", v.Effect, v.Why)
}

// saying is a text of an action, which is read once for all rules.
type saying struct {
	text string
	line func() commandline.Line
}

// texts returns the texts of an action in which rules look for words. complete is false if one is
// too long: then only its beginning is there.
func (a Action) texts() (all []saying, complete bool) {
	texts := append([]string{a.Line}, a.Texts...)
	complete = len(texts) <= maxMentions
	for _, s := range texts[:min(len(texts), maxMentions)] {
		complete = complete && len(s) <= commandline.MaxLine
		s = s[:min(len(s), commandline.MaxLine)]
		all = append(all, saying{s, sync.OnceValue(func() commandline.Line { return commandline.Read(s) })})
	}
	return all, complete
}
