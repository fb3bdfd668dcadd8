package permission

import (
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/acp-agent/acp-agent/internal/text"
)

// fileRule is a rule for Read or Edit, about all files, those that match a pattern, or those at or
// below a path outside the roots.
type fileRule struct {
	verb    Verb
	glob    string   // "" for none
	spelled []string // what glob matches in some spelling, for deny and ask rules
	outside string   // an absolute path, "" for none
}

func parseFiles(verb Verb) func(rest string) (matcher, error) {
	return func(rest string) (matcher, error) {
		word, name := text.CutWord(rest)
		if word == "outside" && (verb == Read || filepath.IsAbs(name)) {
			outside, err := parseOutside(name)
			return fileRule{verb: verb, outside: outside}, err
		}
		glob, err := parseGlob(rest)
		return fileRule{verb: verb, glob: glob, spelled: spelledGlobs(glob)}, err
	}
}

func parseOutside(name string) (string, error) {
	if !filepath.IsAbs(name) || filepath.Clean(name) != name {
		return "", errors.New("outside needs an absolute path, without . or .. in it")
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

// spelledGlobs returns a pattern in the spellings in which names are compared with it. One that
// names a folder matches all files in it.
func spelledGlobs(glob string) []string {
	if !strings.ContainsAny(path.Base(glob), "*?[") {
		glob += "/**"
	}
	return spellings(glob, spelling)
}

func (r fileRule) String() string {
	if r.outside != "" {
		return "outside " + r.outside
	}
	return r.glob
}

// check returns an error if an allow rule would allow nothing.
func (r fileRule) check() error {
	if r.verb == Edit && r.outside != "" {
		return errors.New("rule edit outside: no rule can allow writing files outside the folders")
	}
	return nil
}

// isBare reports whether the rule is about all files.
func (r fileRule) isBare() bool { return r.glob+r.outside == "" }

func (r fileRule) allows(a Action) bool {
	return !slices.ContainsFunc(a.Files, func(f File) bool { return !r.covers(f) })
}

// covers reports whether all names of a file are those that the rule allows.
func (r fileRule) covers(f File) bool {
	if r.outside != "" {
		return f.Root == "" && f.Real != "" && isBelow(r.outside, f.Real)
	}
	return f.Root != "" && len(f.Names) > 0 &&
		(r.glob == "" || !slices.ContainsFunc(f.Names, func(name string) bool {
			matches, err := doublestar.Match(r.glob, name)
			return err != nil || !matches
		}))
}

// touches is true without a pattern for what reads or writes files, but not for all commands and
// tools.
func (r fileRule) touches(a *prepared) bool {
	if r.isBare() {
		return a.Verb == r.verb
	}
	return r.matches(a.names) || slices.ContainsFunc(a.files, r.touchesFile)
}

func (r fileRule) mayTouch(a *prepared) bool {
	if !r.isBare() && (a.Hints.More || slices.ContainsFunc(a.passed, r.touchesFile)) {
		return true
	}
	isAround := func(f File) bool { return f.Folder && r.mayBeIn(f) }
	return r.verb == Read && (slices.ContainsFunc(a.Files, isAround) ||
		slices.ContainsFunc(a.Hints.Reads, isAround) || slices.ContainsFunc(a.reads, r.touchesFile))
}

func (r fileRule) touchesFile(f spelled) bool {
	if r.outside != "" {
		return mayBeBelow(r.outside, f.Path) || mayBeBelow(r.outside, f.Real)
	}
	return r.matches(f.names)
}

// matches reports whether one of some names, in all spellings, matches the pattern, or is in a
// folder that the pattern names.
func (r fileRule) matches(names []string) bool {
	return slices.ContainsFunc(r.spelled, func(glob string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			matches, _ := doublestar.Match(glob, name)
			return matches
		})
	})
}

// mayBeIn reports whether the rule may be about a file in a folder.
func (r fileRule) mayBeIn(folder File) bool {
	if r.outside != "" {
		return mayBeBelow(folder.Real, r.outside)
	}
	base, _ := doublestar.SplitPattern("/" + r.glob)
	return slices.ContainsFunc(folder.Names, func(name string) bool {
		name = path.Join("/", name)
		return mayBeBelow(name, base) || mayBeBelow(base, name)
	})
}

// offerFiles returns the rule for a file that is written, or for all files of a root that are read.
func offerFiles(a Action) (written string, in Scope) {
	if len(a.Files) != 1 || a.Standing {
		return "", in
	}
	f := a.Files[0]
	switch {
	case f.Root == "":
		return string(a.Verb) + " outside " + f.Real, Scope{Session: a.Session}
	case a.Verb == Read:
		return "read", Scope{Root: f.Root}
	}
	return "edit " + literal(f.Names[0]), Scope{Root: f.Root}
}

// literal returns a pattern that matches only this name.
func literal(name string) string {
	return strings.NewReplacer(`*`, `[*]`, `?`, `[?]`, `[`, `[[]`, `{`, `[{]`, `}`, `[}]`).Replace(name)
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
