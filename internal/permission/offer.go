package permission

import (
	"path"
	"strings"

	"github.com/acp-agent/acp-agent/internal/permission/commandline"
	"github.com/acp-agent/acp-agent/internal/text"
)

// Offer returns the narrowest rule that allows an action from now on, and where it holds. ok is
// false if there is none. With lasting false, rules only hold in the session.
func Offer(a Action, lasting bool) (r Rule, ok bool) {
	if a.Unclear != "" {
		return r, false
	}
	r = Rule{verb: a.Verb, Root: a.Root}
	switch a.Verb {
	case Read, Edit:
		if !a.Standing {
			r, ok = offerFiles(a)
		}
	case Run:
		switch {
		case a.Odd != "" || a.Words == nil:
		case a.Known != nil:
			r.words, ok = a.Known, true
			r.more = commandline.Show(a.Known) != strings.Join(a.Known, " ")
		case !a.Standing:
			// The words mean something else in another folder, and the agent can write the file.
			r.words, r.Within, ok = a.Words, a.Within, true
			lasting = lasting && !a.Local
		}
	case Tool:
		r.server, r.tool, r.Server, ok = a.Server, a.Tool, a.Config, a.Config != "" || a.Found
		lasting = lasting && !a.Found
	case Fetch:
		r.host, ok = a.Host, a.Host != ""
	}
	if !lasting {
		r.Session = a.Session
	}
	again, err := Parse(r.String()) // it is stored as its text
	again.Root, again.Server, again.Session, again.Within = r.Root, r.Server, r.Session, r.Within
	if !ok || err != nil || again.String() != r.String() ||
		Decide(a, Rules{Allow: []Rule{again}}).Effect != Allow {
		return Rule{}, false
	}
	return again, true
}

// offerFiles returns the rule for a file that is written, or for all files of a root that are read.
func offerFiles(a Action) (Rule, bool) {
	if len(a.Files) != 1 {
		return Rule{}, false
	}
	f := a.Files[0]
	switch {
	case f.Root == "":
		return Rule{verb: Read, outside: f.Real, Session: a.Session}, f.Real != ""
	case a.Verb == Read:
		return Rule{verb: Read, Root: f.Root}, true
	}
	return Rule{verb: Edit, glob: literal(f.Names[0]), Root: f.Root}, true
}

// literal returns a pattern that matches only this name.
func literal(name string) string {
	var b strings.Builder
	for _, r := range name {
		if strings.ContainsRune(`*?[{}`, r) {
			b.WriteString("[" + string(r) + "]")
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Explain says in Markdown what a rule covers besides its words, "" for nothing.
func (r Rule) Explain() string {
	if r.verb != Run || !r.more {
		return ""
	}
	return commandline.Describe(r.words)
}

// Label says what a person allows by choosing a rule for an action, as the name of an option.
func (r Rule) Label(a Action) string {
	what := r.String()
	switch {
	case r.verb == Read && r.glob == "" && r.outside == "":
		what = "read files"
	case r.verb == Run:
		what = "run " + text.Code(strings.TrimPrefix(what, "run "))
	}
	root := path.Base(strings.ReplaceAll(r.Root, `\`, "/"))
	where := " in " + text.Printable(path.Join(root, r.Within))
	switch {
	case r.Session != "" && r.Within != "":
		where += " in this session"
	case r.Session != "":
		where = " in this session"
	case r.verb != Read && r.verb != Edit && !a.RootTold:
		where = " in sessions of" + strings.TrimPrefix(where, " in")
	}
	return "Always: " + text.Line(what, 200) + where
}
