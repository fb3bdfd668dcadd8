package permission

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/acp-agent/acp-agent/internal/permission/commandline"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/text"
)

// Verb is what an action does.
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
//	run WORDS               run exactly this command
//	run WORDS ...           run it, followed by what package commandline lists
//	run                     run any command; not to allow
//	tool SERVER.TOOL        call a tool of an MCP server; TOOL may be "*"
//	tool SERVER.* read-only call the tools that claim to change nothing
//	fetch HOST              get something from a host; "*.HOST" means all below it
type Rule struct {
	verb     Verb
	glob     string   // of files, "" for all
	spelled  []string // what a deny rule's glob matches in some spelling, by [Rule.matches]
	outside  string   // an absolute path
	words    []string
	more     bool // other words may follow
	server   string
	tool     string // "*" for all
	readOnly bool
	host     string

	// Root is the real path of the root in which a remembered rule holds, "" for all. Server
	// identifies the configuration of the MCP server that such a rule was made for, Session the
	// only session in which it holds, and Within the only folder in the root, "" for all.
	Root, Server, Session, Within string
	// Given is the consent to a rule that the user gave for good, zero for others.
	Given consent.Consent
	// Preset means that the rule comes from the mode of the session.
	Preset bool
}

// maxRule is the length of the longest rule, in bytes.
const maxRule = 4 << 10

// Parse returns the rule with this text.
func Parse(written string) (Rule, error) {
	verb, rest := text.CutWord(strings.TrimSpace(written))
	r := Rule{verb: Verb(verb)}
	var err error
	switch {
	case len(written) > maxRule:
		err = fmt.Errorf("it is longer than %d bytes", maxRule)
	case !text.IsVisible(written):
		err = errors.New("it has characters that cannot be seen")
	case r.verb == Read && (rest == "outside" || strings.HasPrefix(rest, "outside ")):
		r.outside, err = parseOutside(strings.TrimSpace(strings.TrimPrefix(rest, "outside")))
	case r.verb == Read, r.verb == Edit:
		r.glob, err = parseGlob(rest)
		r.spelled = spelledGlobs(r.glob)
	case r.verb == Run:
		r.words, r.more, err = parseWords(rest)
	case r.verb == Tool:
		err = r.parseTool(rest)
	case r.verb == Fetch:
		r.host, err = parseHost(rest)
	default:
		err = errors.New("it must begin with read, edit, run, tool or fetch")
	}
	if err != nil {
		return Rule{}, fmt.Errorf("rule %s: %w", text.Quote(text.Truncate(written, 100)), err)
	}
	return r, nil
}

func parseOutside(name string) (string, error) {
	if !filepath.IsAbs(name) || filepath.Clean(name) != name {
		return "", errors.New("read outside needs an absolute path, without . or .. in it")
	}
	return name, nil
}

func parseGlob(glob string) (string, error) {
	switch {
	case glob == "":
		return "", nil
	case path.IsAbs(glob), filepath.IsAbs(glob), strings.HasPrefix(glob, "~"),
		strings.Contains(glob, `\`), slices.Contains(strings.Split(glob, "/"), ".."):
		return "", errors.New("a pattern is relative to each folder, with / and without .. or ~; " +
			"read outside PATH is for other files")
	case slices.Contains(strings.Split(glob, "/"), "..."):
		return "", errors.New("the files in a folder are FOLDER/**; ... is for words of a command")
	case !doublestar.ValidatePattern(glob):
		return "", errors.New("it is not a valid pattern")
	case strings.HasSuffix(glob, "/"):
		return path.Join(glob, "**"), nil
	}
	if glob = path.Clean(glob); glob == "." {
		return "**", nil
	}
	return glob, nil
}

// spelledGlobs returns a pattern in the spellings in which names are compared with it. One that names
// a folder matches all files in it.
func spelledGlobs(glob string) []string {
	if !strings.ContainsAny(path.Base(glob), "*?[") {
		glob += "/**"
	}
	return slices.Compact([]string{glob, strings.ToLower(glob), path.Join(namesIn(glob, spelling)...)})
}

// parseWords returns the words of a run rule, which must be plain ones for a shell.
func parseWords(line string) (words []string, more bool, err error) {
	if line == "" {
		return nil, false, nil
	}
	for _, mark := range []string{" ...", " …"} {
		if before, found := strings.CutSuffix(line, mark); found {
			line, more = before, true
		}
	}
	words, err = commandline.Plain(line)
	if err != nil {
		return nil, false, fmt.Errorf("a run rule has plain words: %w", err)
	}
	return words, more, nil
}

func (r *Rule) parseTool(rest string) error {
	rest, r.readOnly = strings.CutSuffix(rest, " read-only")
	r.server, r.tool, _ = strings.Cut(rest, ".")
	if r.server == "" || r.tool == "" || strings.ContainsAny(rest, " \t") {
		return errors.New("a tool rule is tool SERVER.TOOL or tool SERVER.*, with read-only after it " +
			"for those that only read")
	}
	if r.readOnly && r.tool != "*" {
		return errors.New("read-only follows SERVER.*")
	}
	return nil
}

// parseHost returns a name of a host in lower case, which may begin with "*.".
func parseHost(name string) (string, error) {
	host := strings.ToLower(name)
	if !isHost(strings.TrimPrefix(host, "*.")) {
		return "", errors.New("a fetch rule has the name of a host, without a scheme, a port or a path")
	}
	return host, nil
}

// isHost reports whether a name is one of a host in lower case that is read in one way only.
func isHost(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789-_"
	labels := strings.Split(name, ".")
	last := labels[len(labels)-1]
	return len(name) <= 253 && !slices.Contains(labels, "") &&
		strings.Trim(name, letters+".") == "" && strings.Trim(last, "0123456789") != "" &&
		!strings.HasPrefix(last, "0x")
}

// String returns the text of the rule.
func (r Rule) String() string {
	switch {
	case r.outside != "":
		return "read outside " + r.outside
	case r.verb == Run:
		written := []string{"run"}
		for _, word := range r.words {
			written = append(written, shellWord(word))
		}
		if r.more {
			written = append(written, "...")
		}
		return strings.Join(written, " ")
	case r.verb == Tool && r.readOnly:
		return "tool " + r.server + "." + r.tool + " read-only"
	case r.verb == Tool:
		return "tool " + r.server + "." + r.tool
	case r.verb == Fetch:
		return "fetch " + r.host
	}
	return strings.TrimSpace(string(r.verb) + " " + r.glob)
}

// shellWord returns a word as a shell would have to be given it.
func shellWord(word string) string {
	if words, err := commandline.Plain(word); err == nil && slices.Equal(words, []string{word}) {
		return word
	}
	return "'" + word + "'" // one with a quote is not plain when it is read again
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
	switch {
	case r.verb == Run && r.words == nil:
		return errors.New("rule run: an allow rule needs the words of a command")
	case r.verb == Run && r.more && !commandline.Begins(r.words):
		return fmt.Errorf("rule %s: it is not known which words may follow there; without ... the "+
			"rule allows exactly this command", text.Quote(r.String()))
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
			if err != nil || len(names) == 0 || r.glob == "" {
				continue
			}
			for _, rest := range remainders(r.glob, names) {
				if rest = string(r.verb) + " " + rest; !slices.Contains(all, rest) {
					all = append(all, rest)
				}
			}
		}
		return all
	}
	return Permissions{Ask: both(p.Ask), Deny: both(p.Deny)}
}

// remainders returns what is left of a pattern after some names of folders have matched its
// beginning. All is left of a folder that the pattern names.
func remainders(glob string, names []string) (all []string) {
	parts := strings.Split(glob, "/")
	at := []int{0} // how many parts have matched
	for _, name := range names {
		var next []int
		for i := 0; i < len(at); i++ {
			switch n := at[i]; {
			case n == len(parts):
				next = append(next, n)
			case parts[n] == "**":
				next = append(next, n)
				at = append(at, n+1)
			default:
				matches, _ := doublestar.Match(strings.ToLower(parts[n]), strings.ToLower(name))
				if matches {
					next = append(next, n+1)
				}
			}
		}
		slices.Sort(next)
		at = slices.Compact(next)
	}
	for _, n := range at {
		switch {
		case n < len(parts):
			all = append(all, strings.Join(parts[n:], "/"))
		case !strings.ContainsAny(parts[n-1], "*?["):
			all = append(all, "**")
		}
	}
	return all
}

// Preset returns the rules of a mode of a session.
func Preset(allow, deny []Verb) (rules Rules) {
	for _, verb := range allow {
		rules.Allow = append(rules.Allow, Rule{verb: verb, Preset: true})
	}
	for _, verb := range deny {
		rules.Deny = append(rules.Deny, Rule{verb: verb, Preset: true})
	}
	return rules
}

// Rules are what is allowed, asked and denied.
type Rules struct{ Allow, Ask, Deny []Rule }

// With returns the rules of both.
func (r Rules) With(other Rules) Rules {
	both := func(a, b []Rule) []Rule {
		if len(b) == 0 { // for each file that is read there may be many to copy
			return a
		}
		return slices.Concat(a, b)
	}
	return Rules{both(r.Allow, other.Allow), both(r.Ask, other.Ask), both(r.Deny, other.Deny)}
}

// hostOf returns the host of an http or https URL that is read in one way only, with the default
// port and without a user.
func hostOf(address string) (string, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil, !text.IsVisible(address), strings.ContainsAny(address, "\\ \t\r\n"),
		u.Scheme != "https" && u.Scheme != "http", u.User != nil, u.Port() != "",
		strings.HasSuffix(u.Host, ":"):
		return "", fmt.Errorf("%s is not a plain address", text.Quote(text.Truncate(address, 100)))
	}
	host := strings.ToLower(u.Hostname())
	if !isHost(host) {
		return "", fmt.Errorf("%s is not the name of a host", text.Quote(text.Truncate(host, 100)))
	}
	return host, nil
}
