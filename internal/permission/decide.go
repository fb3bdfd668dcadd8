package permission

import (
	"fmt"
	"slices"
	"strings"

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

// Verdict is the answer to an action. The zero value is that of rules that were not asked.
type Verdict struct {
	Effect Effect
	Action Action
	// Rule is the rule that decided, the zero Rule if none did.
	Rule Rule
	// Why says why the user is asked although there are rules.
	Why string
	// Maybe means that Rule, an ask or deny rule, may be about the action, so that the user is
	// asked again even if other rules allow it.
	Maybe bool
}

// Decide decides about an action.
func Decide(a Action, rules Rules) Verdict {
	if a.Verb != Tool { // modes are not about tools
		rules = rules.With(a.Mode)
	}
	v := a.decidedBy(rules)
	v.Action = a
	return v
}

// decidedBy returns the verdict of rules. The first pass in which a rule matches decides. If none
// does, an action that is clear is allowed if rules allow all of it.
func (a Action) decidedBy(rules Rules) Verdict {
	p := prepare(a)
	for _, pass := range []struct {
		rules   []Rule
		matches func(r Rule, p *prepared) bool
		effect  Effect
		why     string // with the rule in place of RULE
		maybe   bool
	}{
		{rules.Deny, Rule.touches, Deny, "", false},
		{rules.Ask, Rule.touches, Ask, "a rule says to ask", false},
		{rules.Deny, Rule.mayBreakGrant, Ask, "it may change something in a read-only folder", true},
		{rules.Allow, Rule.allowsExactly, Allow, "", false}, // however unclear it is
		{rules.Deny, Rule.mayTouch, Ask, "the rule RULE may apply to it", true},
		{rules.Ask, Rule.mayTouch, Ask, "the rule RULE may apply to it", true},
	} {
		matches := func(r Rule) bool { return pass.matches(r, p) }
		if i := slices.IndexFunc(pass.rules, matches); i >= 0 {
			r := pass.rules[i]
			why := strings.Replace(pass.why, "RULE", text.Code(r.String()), 1)
			return Verdict{Effect: pass.effect, Rule: r, Why: why, Maybe: pass.maybe}
		}
	}
	switch why := a.whyUnclear(); {
	case !p.complete:
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

// Reason says in a sentence without a stop why the user is asked, or an action is denied.
func (v Verdict) Reason() string {
	kept, isGrant := v.Rule.matcher.(readOnlyRule)
	rule := "Your rule " + text.Code(v.Rule.String())
	switch {
	case isGrant && v.Maybe:
		return "The folder " + kept.root.Dir.String() + " is read-only, and this may change it"
	case isGrant:
		return "The folder " + kept.root.Dir.String() + " is read-only"
	case v.Maybe:
		return rule + " may apply to this"
	}
	return rule + " asks about this"
}

// String describes a verdict in one line.
func (v Verdict) String() string {
	if v.Rule.matcher != nil && !v.Maybe {
		return fmt.Sprintf("%s (%s)", v.Effect, v.Rule)
	}
	return fmt.Sprintf("%s (%s)", v.Effect, v.Why)
}

// prepared is an action with what deny and ask rules compare, which is the same for all of them.
type prepared struct {
	Action
	names                []string // of the hints, in all spellings
	files, passed, reads []spelled
	said                 []saying // its texts
	complete             bool     // no text is too long
}

// spelled is a file with its names in all spellings.
type spelled struct {
	File
	names []string
}

// saying is a text in which rules look for words.
type saying struct {
	text string
	line commandline.Line
}

// prepare returns an action with what rules compare. Of a text that is too long it has the
// beginning.
func prepare(a Action) *prepared {
	spell := func(files []File) (all []spelled) {
		for _, f := range files {
			all = append(all, spelled{f, spelledNames(slices.Concat(f.Names, f.Others))})
		}
		return all
	}
	p := &prepared{Action: a, names: spelledNames(a.Hints.Names), files: spell(a.Files),
		passed: spell(a.Hints.Files), reads: spell(a.Hints.Reads)}
	texts := append([]string{a.Command.Line}, a.Hints.Texts...)
	p.complete = len(texts) <= maxMentions
	for _, s := range texts[:min(len(texts), maxMentions)] {
		p.complete = p.complete && len(s) <= commandline.MaxLine
		s = s[:min(len(s), commandline.MaxLine)]
		p.said = append(p.said, saying{s, commandline.Read(s)})
	}
	return p
}
