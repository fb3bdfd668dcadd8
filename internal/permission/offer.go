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
	k, known := kinds[a.Verb]
	if !known || a.whyUnclear() != "" {
		return r, false
	}
	if r, ok = k.offer(a); !ok {
		return Rule{}, false
	}
	r.verb = a.Verb
	if !lasting {
		r.Session = a.Session
	}
	again, err := Parse(r.String()) // it is stored as its text
	if err != nil || again.String() != r.String() {
		return Rule{}, false
	}
	r.matcher = again.matcher
	if Decide(a, Rules{Allow: []Rule{r}}).Effect != Allow {
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
	case r.verb != Read && r.verb != Edit && !a.Where.Told:
		where = " in sessions of" + strings.TrimPrefix(where, " in")
	}
	return "Always: " + text.Line(what, 200) + where
}
