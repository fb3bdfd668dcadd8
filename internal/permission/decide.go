package permission

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/acp-agent/acp-agent/internal/text"
)

// Effect is what happens to an action.
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
	// Names are the paths that an allow rule's pattern must match, all of them: the action's path and
	// the real one, relative to the root. Others are further names that a deny rule may match.
	Names, Others []string
	// Root is the real path of the root that the file is in, for this and other processes; "" if it
	// is in none.
	Root string
	// Folder means that it is a folder, of which everything may be read.
	Folder bool
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
	// Passed is what the arguments of a tool may mean besides Line and Files.
	Passed Passed
	// Host is what Fetch connects to.
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
	// exactly this action. Given means that the user has chosen it before.
	Standing, Given bool
}

// Passed are the words in texts that a tool gets, in no order, and the files that they may name.
// Long means that there are more than are looked at.
type Passed struct {
	Words []string
	Files []File
	Long  bool
}

// Verdict is the answer to an action.
type Verdict struct {
	Effect Effect
	// Rule is the rule that decided, the zero Rule if none did.
	Rule Rule
	// Why says why the user is asked although there are rules.
	Why string
	// Again means that an ask or deny rule may be about the action, so that the user is asked again
	// whatever else is allowed.
	Again bool
}

// Decide decides about an action.
func Decide(a Action, rules Rules) Verdict {
	rules = rules.With(a.Mode)
	a.Names = spelledNames(a.Names)
	a.Files, a.Reads, a.Passed.Files = spell(a.Files), spell(a.Reads), spell(a.Passed.Files)
	said, complete := a.said()
	for _, r := range rules.Deny {
		if r.holds(a) && r.touches(a, said) {
			return Verdict{Effect: Deny, Rule: r}
		}
	}
	for _, r := range rules.Ask {
		if r.holds(a) && r.touches(a, said) {
			return Verdict{Effect: Ask, Rule: r, Why: "a rule says to ask"}
		}
	}
	if !complete {
		return Verdict{Effect: Ask, Why: "it is too long to look for what rules are about"}
	}
	if a.Given {
		return Verdict{Effect: Allow, Rule: Rule{verb: a.Verb, Preset: true}}
	}
	if a.Unclear != "" {
		return Verdict{Effect: Ask, Why: a.Unclear}
	}
	switch a.Verb {
	case Read, Edit:
		return decideFiles(a, rules)
	case Run:
		if a.Words == nil {
			return Verdict{Effect: Ask, Why: "the command is more than plain words"}
		}
		if a.Odd != "" {
			return Verdict{Effect: Ask, Why: a.Odd}
		}
	case Tool, Fetch:
	default:
		return Verdict{Effect: Ask, Why: "no rule can allow this"}
	}
	for _, r := range slices.Concat(rules.Deny, rules.Ask) {
		if r.holds(a) && r.mayTouch(a) {
			about := text.Code(r.String())
			why := "it may be about what the rule " + about + " is about"
			return Verdict{Effect: Ask, Why: why, Again: true}
		}
	}
	for _, r := range rules.Allow {
		if r.holds(a) && r.covers(a) && (r.Root == "" || r.Root == a.Root) &&
			(r.Within == "" || a.RootTold && r.Within == a.Within) {
			return Verdict{Effect: Allow, Rule: r}
		}
	}
	return Verdict{Effect: Ask, Why: "no rule allows it"}
}

// decideFiles allows an action if each of its files is covered by a rule.
func decideFiles(a Action, rules Rules) Verdict {
	var last Rule
	for _, f := range a.Files {
		i := slices.IndexFunc(rules.Allow, func(r Rule) bool {
			return r.holds(a) && r.verb == a.Verb && r.coversFile(f)
		})
		switch {
		case a.Verb == Edit && f.Risk != "":
			return Verdict{Effect: Ask, Why: f.Risk}
		case i < 0:
			return Verdict{Effect: Ask, Why: "no rule allows it"}
		case a.Verb == Read && f.Folder && slices.ContainsFunc(slices.Concat(rules.Deny, rules.Ask),
			func(r Rule) bool { return r.holds(a) && r.mayBeIn(f) }):
			why := "it may read a file in there that a rule is about"
			return Verdict{Effect: Ask, Why: why, Again: true}
		}
		last = rules.Allow[i]
	}
	if len(a.Files) == 0 {
		return Verdict{Effect: Ask, Why: "the request names no file"}
	}
	return Verdict{Effect: Allow, Rule: last}
}

// holds reports whether the rule holds in the session of an action.
func (r Rule) holds(a Action) bool { return r.Session == "" || r.Session == a.Session }

// coversFile reports whether an allow rule for files covers a file, by all of its names.
func (r Rule) coversFile(f File) bool {
	if r.outside != "" {
		return f.Root == "" && f.Real != "" && isBelow(r.outside, f.Real)
	}
	if f.Root == "" || r.Root != "" && r.Root != f.Root || len(f.Names) == 0 {
		return false
	}
	return r.glob == "" || !slices.ContainsFunc(f.Names, func(name string) bool {
		matches, err := doublestar.Match(r.glob, name)
		return err != nil || !matches
	})
}

// folded returns a path in a root as an absolute one, in the only spelling of all that mean it.
func folded(name string) string {
	return filepath.FromSlash(path.Join("/", path.Join(namesOf(name)...)))
}

// mayBeIn reports whether a deny or ask rule may match a file in a folder that is read.
func (r Rule) mayBeIn(folder File) bool {
	if r.verb != Read || r.outside != "" {
		return r.verb == Read && isBelow(folder.Real, r.outside)
	}
	base, _ := doublestar.SplitPattern(r.glob)
	return slices.ContainsFunc(folder.Names, func(name string) bool {
		folder, base := folded(name), folded(base)
		return isBelow(folder, base) || isBelow(base, folder)
	})
}

// covers reports whether an allow rule covers all of an action that is not about files.
func (r Rule) covers(a Action) bool {
	switch {
	case r.verb != a.Verb:
		return false
	case r.verb == Run && r.more:
		return len(a.Known) >= len(r.words) && slices.Equal(a.Known[:len(r.words)], r.words)
	case r.verb == Run:
		return slices.Equal(a.Words, r.words)
	case r.verb == Fetch:
		return a.Host == r.host || strings.HasPrefix(r.host, "*.") && isHost(a.Host) &&
			strings.HasSuffix(a.Host, r.host[1:])
	}
	// A file in a root chooses the name of its server.
	return r.server == a.Server && (r.tool == a.Tool || r.tool == "*") && !strings.Contains(a.Server, ".") &&
		a.Tool != "" && (!r.readOnly || a.ReadOnly) && (!a.Found || r.Session != "") &&
		(r.Server == "" || r.Server == a.Config)
}

// isBelow reports whether name is dir or a path below it. Both are clean and absolute.
func isBelow(dir, name string) bool {
	rest, ok := strings.CutPrefix(name, strings.TrimSuffix(dir, string(filepath.Separator)))
	return ok && (rest == "" || rest[0] == filepath.Separator)
}

// touches reports whether a deny or ask rule matches any part of an action, which says these texts.
func (r Rule) touches(a Action, said []saying) bool {
	switch r.verb {
	case Read, Edit:
		return r.touchesFiles(a)
	case Run:
		if a.Verb == Tool && (r.Preset || r.words == nil && a.Line == "") {
			return false // it says no command, and modes are not about tools
		}
		return (a.Verb == Run || a.Verb == Tool || a.Verb == "") &&
			slices.ContainsFunc(said, func(s saying) bool {
				return slices.ContainsFunc(s.commands(), r.follows)
			})
	case Tool:
		return a.Server != "" && sameName(r.server, a.Server) &&
			(r.tool == "*" || sameName(r.tool, a.Tool)) && (!r.readOnly || a.ReadOnly) ||
			r.tool != "*" && sameName(r.server+r.tool, a.Server+a.Tool)
	default:
		return namesHost(a.Host, r.host) || slices.ContainsFunc(said, func(s saying) bool {
			return namesHost(s.text, r.host)
		})
	}
}

// mayTouch reports whether a deny or ask rule may be about what a command reads, or what a tool
// does with its arguments.
func (r Rule) mayTouch(a Action) bool {
	switch {
	case a.Verb == Run && r.verb == Read:
		return slices.ContainsFunc(a.Reads, func(f File) bool {
			return f.Folder && r.mayBeIn(f) || r.touchesFile(f)
		})
	case a.Verb != Tool || r.Preset:
		return false
	case r.verb == Run:
		return r.words != nil && (a.Passed.Long || r.isAmong(a.Passed.Words))
	case r.verb == Fetch:
		return a.Passed.Long || slices.ContainsFunc(a.Passed.Words, func(word string) bool {
			return namesHost(word, r.host)
		})
	case r.verb == Read, r.verb == Edit:
		return r.glob+r.outside != "" &&
			(a.Passed.Long || slices.ContainsFunc(a.Passed.Files, r.touchesFile))
	}
	return false
}

// touchesFiles reports whether a rule about files matches one of an action. Without a pattern it
// matches what reads or writes files, but not all commands and tools.
func (r Rule) touchesFiles(a Action) bool {
	switch {
	case a.Verb == Fetch, a.Verb == Read && r.verb == Edit, a.Verb == Edit && r.verb == Read:
		return false
	case r.glob == "" && r.outside == "":
		return a.Verb == r.verb
	}
	return r.outside == "" && r.matches(a.Names) ||
		slices.ContainsFunc(a.Files, r.touchesFile)
}

func (r Rule) touchesFile(f File) bool {
	if r.outside != "" {
		return isBelow(fold(r.outside), fold(f.Path)) || isBelow(fold(r.outside), fold(f.Real))
	}
	return r.matches(f.spelled)
}

// matches reports whether one of some names, in all spellings, matches the pattern, or is in a folder
// that the pattern names.
func (r Rule) matches(names []string) bool {
	return slices.ContainsFunc(r.spelled, func(glob string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			matches, _ := doublestar.Match(glob, name)
			return matches
		})
	})
}

// spell returns files with the spellings of their names, which are the same for all rules.
func spell(files []File) []File {
	files = slices.Clone(files)
	for i, f := range files {
		files[i].spelled = spelledNames(slices.Concat(f.Names, f.Others))
	}
	return files
}

// spelledNames returns names in all spellings that patterns are compared with. No file has a name that
// is too long.
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

// DeniedBy returns the rule that a mark in the title of a tool call names, "" if none has refused it.
func DeniedBy(title string) string {
	_, rule, marked := strings.Cut(title, deniedMark)
	if !marked {
		return ""
	}
	return strings.Trim(strings.TrimSuffix(rule, ")"), "` ")
}

// String describes a verdict in one line.
func (v Verdict) String() string {
	if v.Rule.verb != "" {
		return fmt.Sprintf("%s (%s)", v.Effect, v.Rule)
	}
	return fmt.Sprintf("%s (%s)", v.Effect, v.Why)
}
