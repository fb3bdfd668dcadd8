package sandbox

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A message about a denied access may lie, and its reader may follow whatever is suggested. So a
// path is suggested only if what it grants can be told, and does not lead out of the sandbox.

// advise returns the path to suggest for an access to path that was denied: wider, which contains
// path, or path itself. If there is none, it returns why.
func (p Policy) advise(path, wider string, reading bool) (grant, withheld string) {
	if withheld = p.withheld(path, reading); withheld != "" {
		return "", withheld
	}
	for _, grant := range []string{wider, path} {
		withheld = cmp.Or(p.withheld(grant, reading), withheldContent(grant))
		if withheld == "" {
			return grant, ""
		}
	}
	return "", withheld
}

// withheld returns why a path must not be suggested, or "". It does not look at what is in it.
func (p Policy) withheld(path string, reading bool) string {
	for _, path := range slices.Compact([]string{path, RealPath(path)}) {
		for _, check := range []func(string) string{
			withheldRepository, withheldHome, p.withheldOwn, withheldHidden, withheldSystem,
		} {
			if why := check(path); why != "" {
				return why
			}
		}
		if why := withheldProgram(path); why != "" && !reading {
			return why
		}
	}
	return ""
}

// overlaps reports whether one of two paths is the other or lies in it.
func overlaps(a, b string) bool { return Contains(a, b) || Contains(b, a) }

// Contains reports whether path is dir or lies in it.
func Contains(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// RealPath returns path without links, as far as it exists.
func RealPath(path string) string {
	for dir, rest := path, ""; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
	return path
}

func (p Policy) withheldOwn(path string) string {
	for _, own := range p.Own {
		if overlaps(own, path) || overlaps(RealPath(own), path) {
			return "acp-agent keeps its own settings or sessions there"
		}
	}
	return ""
}

func withheldHome(path string) string {
	home, err := os.UserHomeDir()
	switch {
	case err != nil:
		return "acp-agent does not know your home directory, so it cannot say what is in that path"
	case Contains(path, home), Contains(path, RealPath(home)):
		return "it contains all your files"
	}
	return ""
}

// withheldHidden is about files whose purpose only other programs know. Lists of those that hold
// keys, or are obeyed, are never complete.
func withheldHidden(path string) string {
	home, names := belowHome(path)
	if ofTool(path) == "" && (slices.ContainsFunc(names, isHidden) ||
		home != "" && strings.EqualFold(names[0], "Library")) {
		return "files there may hold keys or passwords, and programs outside the sandbox may obey them"
	}
	return ""
}

func isHidden(name string) bool { return strings.HasPrefix(name, ".") }

// belowHome returns the home directory and the names in a path below it. If the path is not there,
// it returns "" and all names.
func belowHome(path string) (home string, names []string) {
	const separator = string(filepath.Separator)
	home, _ = os.UserHomeDir()
	for _, home := range []string{home, RealPath(home)} {
		if rel, err := filepath.Rel(home, path); err == nil && filepath.IsLocal(rel) {
			return home, strings.Split(rel, separator)
		}
	}
	return "", strings.Split(path, separator)
}

func withheldSystem(path string) string {
	if home, _ := belowHome(path); home != "" {
		return ""
	}
	for _, dir := range []string{"/Applications", "/Library", "/System", "/Users", "/bin", "/boot",
		"/dev", "/etc", "/gnu", "/home", "/lib", "/lib32", "/lib64", "/nix", "/opt", "/private/etc",
		"/private/var", "/proc", "/root", "/run", "/sbin", "/snap", "/sys", "/usr", "/var"} {
		if overlaps(dir, path) {
			return "programs, settings and devices of the system, or files of other users, are there"
		}
	}
	return ""
}

func withheldProgram(path string) string {
	if _, names := belowHome(path); slices.Contains(names, "bin") {
		return "programs that you start outside the sandbox are in such directories"
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) && overlaps(dir, path) {
			return "programs that you start outside the sandbox are there"
		}
	}
	return ""
}

func withheldRepository(path string) string {
	for dir := path; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if isRepository(dir) {
			return "it belongs to a git repository, and git outside the sandbox runs the hooks and " +
				"obeys the settings in it"
		}
	}
	return ""
}

// withheldContent returns why a path must not be suggested because of what is in it, or "". What
// belongs to a known tool is not looked at.
func withheldContent(path string) string {
	if ofTool(path) == path {
		return ""
	}
	has, complete := containsHidden(RealPath(path))
	switch {
	case has:
		return "there are repositories or other hidden files in it, which programs outside the sandbox " +
			"obey"
	case !complete:
		return "it has too many files to check"
	}
	return ""
}

// isRepository reports whether a path is that of a repository's own directory, whether or not it
// exists, or of the file that stands for one.
func isRepository(path string) bool {
	if strings.EqualFold(filepath.Base(path), ".git") {
		return true
	}
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(path, name)); err != nil {
			return false
		}
	}
	return true
}

// containsHidden reports whether there is a repository or another hidden file in path, and whether
// all of it was seen.
func containsHidden(path string) (has, complete bool) {
	left := 2000 // entries
	err := filepath.WalkDir(path, func(at string, entry fs.DirEntry, err error) error {
		left--
		switch {
		case left < 0:
			return fs.SkipAll
		case err != nil && at == path:
			return nil // it does not exist, or cannot be read by us either
		case err != nil:
			return err
		case at != path && isHidden(entry.Name()), entry.IsDir() && isRepository(at):
			has = true
			return fs.SkipAll
		}
		return nil
	})
	return has, err == nil && left >= 0
}
