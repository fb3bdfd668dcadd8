package permission

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/permission/commandline"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/text"
)

// Verb says what an action does.
type Verb string

// The verbs of actions, which are also the first words of rules. The zero Verb is that of actions
// that no rule allows.
const (
	Read  Verb = "read"
	Edit  Verb = "edit"
	Run   Verb = "run"
	Tool  Verb = "tool"
	Fetch Verb = "fetch"
)

// Rule matches actions. Users write it as text:
//
//	read [GLOB]             read and search files in the session's folders
//	read outside PATH       read a file, or the files below a folder, outside of them
//	edit [GLOB]             write files in the session's folders
//	edit outside PATH       write a file, or files below a folder, anywhere; not to allow
//	run WORDS               run exactly this command
//	run WORDS ...           run it, followed by what package commandline lists
//	run                     run any command; not to allow
//	tool SERVER.TOOL        call a tool of an MCP server; TOOL may be "*"
//	tool SERVER.* read-only call the tools that claim to change nothing
//	fetch HOST              get something from a host; "*.HOST" means all below it
type Rule struct {
	verb Verb
	matcher
	Scope

	// Given is the consent to a rule that the user gave for good, zero for others.
	Given consent.Consent
	// Preset means that the rule comes from the mode of the session.
	Preset bool
}

// Scope is where an allow rule holds. The zero Scope, which other rules have, is everywhere.
type Scope struct {
	// Root is the real path of the root in which a remembered rule holds, "" for all. Server
	// identifies the configuration of the MCP server that such a rule was made for, Session the
	// only session in which it holds, and Within the only folder in the root, "" for all.
	Root, Server, Session, Within string
}

// matcher is the part of a rule after its verb.
type matcher interface {
	// String returns its text.
	String() string
	// allows reports whether it matches all of an action of its verb.
	allows(a Action) bool
	// touches reports whether it matches any part of an action.
	touches(a *prepared) bool
	// mayTouch reports whether it may match what an action does without naming it: what a command
	// reads, or what a tool does with its arguments.
	mayTouch(a *prepared) bool
}

// kind holds the properties of the rules for a verb.
type kind struct {
	parse func(rest string) (matcher, error)
	// offer returns the text of the narrowest rule for an action, "" for none, and where it holds.
	offer func(a Action) (written string, in Scope)
	// never are the verbs of actions that such a rule does not touch.
	never []Verb
}

var kinds = map[Verb]kind{
	Read:  {parseFiles(Read), offerFiles, []Verb{Edit, Fetch}},
	Edit:  {parseFiles(Edit), offerFiles, []Verb{Read, Fetch}},
	Run:   {parseRun, offerRun, []Verb{Read, Edit, Fetch}},
	Tool:  {parseTool, offerTool, nil},
	Fetch: {parseFetch, offerFetch, nil},
}

// maxRule is the length of the longest rule, in bytes.
const maxRule = 4 << 10

// Parse returns the rule with this text.
func Parse(written string) (Rule, error) {
	verb, rest := text.CutWord(strings.TrimSpace(written))
	r := Rule{verb: Verb(verb)}
	k, known := kinds[r.verb]
	var err error
	switch {
	case len(written) > maxRule:
		err = fmt.Errorf("it is longer than %d bytes", maxRule)
	case !text.IsVisible(written):
		err = errors.New("it has characters that cannot be seen")
	case !known:
		err = errors.New("it must begin with read, edit, run, tool or fetch")
	default:
		r.matcher, err = k.parse(rest)
	}
	if err != nil {
		return Rule{}, fmt.Errorf("rule %s: %w", text.Quote(text.Truncate(written, 100)), err)
	}
	return r, nil
}

// String returns the text of the rule, "" for the zero Rule.
func (r Rule) String() string {
	if r.matcher == nil {
		return ""
	}
	return strings.TrimSpace(string(r.verb) + " " + r.matcher.String())
}

// allows reports whether the rule allows an action, of which it matches all, where it holds. A file
// in a root may have chosen the name of a server: then the rule must be from this session.
func (r Rule) allows(a Action) bool {
	return r.verb == a.Verb && r.matcher.allows(a) &&
		(r.Session == "" || r.Session == a.Session) &&
		(r.Root == "" || r.Root == a.Where.Root) &&
		(r.Within == "" || r.Within == a.Where.Within) &&
		(r.Server == "" || r.Server == a.Tool.Config) && (r.Session != "" || !a.Tool.Found)
}

func (r Rule) touches(a *prepared) bool {
	return !slices.Contains(kinds[r.verb].never, a.Verb) && r.matcher.touches(a)
}

// is reports whether a rule has a matcher of this type.
func is[M matcher](r Rule) bool {
	_, is := r.matcher.(M)
	return is
}

// Permissions are the texts of rules, as a configuration has them.
type Permissions struct {
	Allow []string `json:"allow"`
	Ask   []string `json:"ask"`
	Deny  []string `json:"deny"`

	// Only means that no other rules hold, such as those that the user gave for good.
	Only bool `json:"-"`
}

// Rules returns the rules. An error names the first that is not one.
func (p Permissions) Rules() (rules Rules, err error) {
	for _, list := range []struct {
		from []string
		to   *[]Rule
	}{{p.Allow, &rules.Allow}, {p.Ask, &rules.Ask}, {p.Deny, &rules.Deny}} {
		for _, written := range list.from {
			r, err := Parse(written)
			if err != nil {
				return Rules{}, err
			}
			if err := r.checkAllow(); err != nil && list.to == &rules.Allow {
				return Rules{}, err
			}
			*list.to = append(*list.to, r)
		}
	}
	return rules, nil
}

// checkAllow returns an error if the rule could allow nothing, or too much.
func (r Rule) checkAllow() error {
	if m, is := r.matcher.(interface{ check() error }); is {
		return m.check()
	}
	return nil
}

// With returns the rules of both, each once.
func (p Permissions) With(other Permissions) Permissions {
	both := func(a, b []string) []string {
		return append(slices.Clip(a), slices.DeleteFunc(slices.Clone(b), func(rule string) bool {
			return slices.Contains(a, rule)
		})...)
	}
	return Permissions{both(p.Allow, other.Allow), both(p.Ask, other.Ask), both(p.Deny, other.Deny),
		p.Only || other.Only}
}

// Below returns the ask and deny rules as they are for sessions in a folder below the one for which
// they were written: a pattern also holds for what is left of it there.
func (p Permissions) Below(folder string) Permissions {
	names := strings.FieldsFunc(path.Join("/", filepath.ToSlash(folder)),
		func(r rune) bool { return r == '/' })
	both := func(written []string) (all []string) {
		all = slices.Clone(written)
		for _, one := range written {
			r, err := Parse(one)
			files, _ := r.matcher.(fileRule)
			if err != nil || len(names) == 0 || files.glob == "" {
				continue
			}
			for _, rest := range remainders(files.glob, names) {
				if rest = string(r.verb) + " " + rest; !slices.Contains(all, rest) {
					all = append(all, rest)
				}
			}
		}
		return all
	}
	return Permissions{Ask: both(p.Ask), Deny: both(p.Deny)}
}

// The rules of modes of a session: about all edits, and about all commands.
var (
	AllEdits = Rule{verb: Edit, matcher: fileRule{verb: Edit}, Preset: true}
	AllRuns  = Rule{verb: Run, matcher: runRule{}, Preset: true}
)

// Rules are what is allowed, asked and denied.
type Rules struct{ Allow, Ask, Deny []Rule }

// With returns the rules of both. It copies none to which no others are added, because it is called
// for each file that is read.
func (r Rules) With(other Rules) Rules {
	return Rules{append(slices.Clip(r.Allow), other.Allow...),
		append(slices.Clip(r.Ask), other.Ask...), append(slices.Clip(r.Deny), other.Deny...)}
}

// Offer returns the narrowest rule that allows an action from now on, and where it holds. ok is
// false if there is none. With lasting false, rules only hold in the session.
func Offer(a Action, lasting bool) (r Rule, ok bool) {
	if a.whyUnclear() != "" {
		return r, false
	}
	written, in := kinds[a.Verb].offer(a)
	if !lasting {
		in.Session = a.Session
	}
	r, err := Parse(written) // it is stored as its text
	r.Scope = in
	if err != nil || r.String() != written ||
		Decide(a, Rules{Allow: []Rule{r}}).Effect != Allow {
		return Rule{}, false
	}
	return r, true
}

// Explain says in Markdown what a rule covers besides its words, "" for nothing.
func (r Rule) Explain() string {
	run, _ := r.matcher.(runRule)
	if !run.more {
		return ""
	}
	return commandline.Describe(run.words)
}

// Label says what a person allows by choosing a rule for an action, as the name of an option.
func (r Rule) Label(a Action) string {
	what := r.String()
	switch {
	case what == "read":
		what = "read files"
	case r.verb == Run:
		what = "run " + text.Code(r.matcher.String())
	}
	root := path.Base(strings.ReplaceAll(r.Root, `\`, "/"))
	where := " in " + text.Printable(path.Join(root, r.Within))
	switch {
	case r.Session != "" && r.Within != "":
		where += " in this session"
	case r.Session != "":
		where = " in this session"
	case r.verb != Read && r.verb != Edit && a.Where.Within == "":
		where = " in sessions of" + strings.TrimPrefix(where, " in")
	}
	return "Always: " + text.Line(what, 200) + where
}
