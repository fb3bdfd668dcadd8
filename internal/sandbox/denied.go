package sandbox

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// Denial is a path that a process could not access by its own report, and that its policy denies.
type Denial struct {
	Path string
	// Reading says that the process may not read it. Otherwise it may not write it.
	Reading bool
	// Grant is the path to add to Write or Read: the file or directory, or a directory above it
	// that belongs to the same program. It may not exist. It is "" if none may be suggested, and
	// Withheld says why.
	Grant, Withheld string
}

// refusal matches a line about an error of permission.
var refusal = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)permission denied|operation not permitted|\bEACCES\b|\bEPERM\b`)
})

// continuation matches the break before a line that goes on with an error, as npm and cargo write
// it.
var continuation = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\s*\n\s*(?:npm \S+ )?(?:(syscall|path|dest|errno)\b|Caused by:\s*)`)
})

// change matches what a line says of an attempt to change something, and not to read it.
var change = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(mkdir|mkstemp|creat(e|ing)|writ(e|ing)|touch|renam(e|ing)|unlink|` +
		`rmdir|remov(e|ing)|delet(e|ing)|copyfile|(sym)?link|truncat(e|ing)|sav(e|ing))\b`)
})

// absolutePath matches an absolute path in a line, in quotation marks or without white space.
var absolutePath = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`'(/[^']+)'|"(/[^"]+)"|‘(/[^’]+)’|“(/[^”]+)”|` + "`(/[^`]+)`" +
		`|(?:^|[\s:=(\[])(/[^\s:,;'"()\[\]]+)`)
})

// Refused reports whether a message is about an error of permission.
func Refused(message string) bool { return refusal().MatchString(message) }

// Denied returns the first path in a message about a refused access that p denies, although our own
// process has access to it. The message may lie.
func (p Policy) Denied(message string) (Denial, bool) {
	if p.Mode == Off || !Refused(message) {
		return Denial{}, false
	}
	for line := range strings.Lines(continuation().ReplaceAllString(message, " $1 ")) {
		at := refusal().FindStringIndex(line)
		if at == nil {
			continue
		}
		// Most programs name the path just before the refusal, after their own name. Others name it
		// after the refusal.
		before, after := absolutePath().FindAllStringSubmatch(line[:at[0]], -1),
			absolutePath().FindStringSubmatch(line[at[1]:])
		match := after
		if len(before) > 0 {
			match = before[len(before)-1]
		}
		if match == nil {
			continue
		}
		path := filepath.Clean(strings.Join(match[1:], ""))
		for _, match := range before { // mkdir often fails above what is meant, which is named too
			if named := filepath.Clean(strings.Join(match[1:], "")); Contains(path, named) && !exists(path) {
				path = named
			}
		}
		if d, denied := p.denies(path, line); denied {
			return d, true
		}
	}
	return Denial{}, false
}

// denies reports whether p denies access to a path, and returns the denial. line is the message: it
// often says what was tried. A program cannot have been kept from reading what does not exist.
func (p Policy) denies(path, line string) (Denial, bool) {
	existing, missing := path, ""
	for !exists(existing) {
		missing, existing = existing, filepath.Dir(existing)
	}
	real, err := filepath.EvalSymlinks(existing)
	if err != nil || p.Writes(real) || anyContains(devices(), real) {
		return Denial{}, false
	}
	d := Denial{Path: path, Reading: !p.Reads(real) && missing == "" && !change().MatchString(line)}
	if !mayAccess(existing, !d.Reading) {
		return Denial{}, false
	}
	grant := ofTool(path)
	info, err := os.Stat(existing)
	switch {
	case grant != "":
	case missing != "" && missing != path: // a directory that does not exist yet
		grant = missing
	case err == nil && info.IsDir() && missing == "":
		grant = path
	default:
		grant = filepath.Dir(path)
	}
	d.Grant, d.Withheld = p.advise(path, grant, d.Reading)
	return d, true
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// ofTool returns the directory in the home directory that belongs to the tool that uses a path, or
// "".
func ofTool(path string) string {
	home, names := belowHome(path)
	if home == "" {
		return ""
	}
	for _, tool := range []string{".cache/*", "Library/Caches/*", "go/pkg", ".npm", ".bun/install/cache",
		".cargo/registry", ".cargo/git", ".gradle/caches", ".m2/repository", ".nuget/packages"} {
		count := strings.Count(tool, "/") + 1
		if len(names) < count {
			continue
		}
		own := strings.Join(names[:count], "/")
		if own == ".cache/huggingface" || own == ".cache/pre-commit" {
			return "" // they have a key, and hooks of git
		}
		if matched, _ := filepath.Match(tool, own); matched {
			return filepath.Join(home, filepath.FromSlash(own))
		}
	}
	return ""
}
