package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/files/links"
	"github.com/acp-agent/acp-agent/internal/text"
)

// Denial is a path that a process could not access by its own report, and that its policy denies.
type Denial struct {
	Path string
	// Reading says that the process may not even read it. Otherwise it may not write it.
	Reading bool
	// Grant is the directory to add to Write or Read, which need not exist, or "" if none may be
	// suggested.
	Grant string
}

// refusal matches a line about an error of permission.
var refusal = text.Pattern(`(?i)permission denied|operation not permitted|\bEACCES\b|\bEPERM\b`)

// continuation matches the break before a line that goes on with an error, as npm and cargo write
// it.
var continuation = text.Pattern(`\s*\n\s*(?:npm \S+ )?(?:(syscall|path|dest|errno)\b|Caused by:\s*)`)

// absolutePath matches an absolute path in a line, in quotation marks or without white space.
var absolutePath = text.Pattern(`'(/[^']+)'|"(/[^"]+)"|‘(/[^’]+)’|“(/[^”]+)”|` + "`(/[^`]+)`" +
	`|(?:^|[\s:=(\[])(/[^\s:,;'"()\[\]]+)`)

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
			named := filepath.Clean(strings.Join(match[1:], ""))
			if _, err := os.Stat(path); err != nil && Contains(path, named) {
				path = named
			}
		}
		if d, denied := p.denies(path); denied {
			return d, true
		}
	}
	return Denial{}, false
}

// denies reports whether p denies access to a path, and returns the denial. A program cannot have
// been kept from reading what does not exist.
func (p Policy) denies(path string) (Denial, bool) {
	way, err := links.Follow(path)
	if err != nil || p.Writes(way.Real) || anyContains(devices(), way.Real) {
		return Denial{}, false
	}
	d := Denial{Path: path, Reading: !p.Reads(way.Real) && len(way.Missing) == 0,
		Grant: p.advise(path)}
	return d, mayAccess(way.Real, !d.Reading)
}

// advise returns the directory of the tool that uses a path, or "". A message about a denied access
// may lie, and its reader may follow whatever is suggested. So nothing else is: other files may
// hold keys, or be obeyed by programs outside the sandbox.
func (p Policy) advise(path string) string {
	grant := ofTool(path)
	for _, at := range []string{path, links.RealPath(path), grant, links.RealPath(grant)} {
		if ofTool(at) == "" || isOfRepository(at) || slices.Contains(namesIn(at), "bin") ||
			slices.ContainsFunc(filepath.SplitList(os.Getenv("PATH")), overlaps(at)) ||
			slices.ContainsFunc(p.Own, overlaps(at)) {
			return ""
		}
	}
	return grant
}

// ofTool returns the directory in the home directory that belongs to the tool that uses a path, or
// "".
func ofTool(path string) string {
	home, err := os.UserHomeDir()
	for _, home := range []string{home, links.RealPath(home)} {
		rel, failed := filepath.Rel(home, path)
		if err != nil || failed != nil || !filepath.IsLocal(rel) {
			continue
		}
		names := namesIn(rel)
		for _, tool := range []string{".cache/*", "Library/Caches/*", "go/pkg", ".npm",
			".bun/install/cache", ".cargo/registry", ".cargo/git", ".gradle/caches",
			".m2/repository", ".nuget/packages"} {
			own := strings.Join(names[:min(len(names), len(namesIn(tool)))], "/")
			if own == ".cache/huggingface" || own == ".cache/pre-commit" {
				return "" // they have a key, and hooks of git
			}
			if matched, _ := filepath.Match(tool, own); matched {
				return filepath.Join(home, filepath.FromSlash(own))
			}
		}
	}
	return ""
}

func namesIn(path string) []string { return strings.Split(filepath.ToSlash(path), "/") }

// overlaps returns a function that reports whether a path, or where it leads, is or contains
// another one, or lies in it.
func overlaps(path string) func(other string) bool {
	return func(other string) bool {
		return slices.ContainsFunc([]string{other, links.RealPath(other)}, func(other string) bool {
			return Contains(other, path) || Contains(path, other)
		})
	}
}

// isOfRepository reports whether a path lies in the own directory of a repository of git, which may
// not exist, or is the file that stands for one.
func isOfRepository(path string) bool {
	for dir := path; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		lacks := func(name string) bool {
			_, err := os.Lstat(filepath.Join(dir, name))
			return err != nil
		}
		if strings.EqualFold(filepath.Base(dir), ".git") ||
			!slices.ContainsFunc([]string{"HEAD", "objects", "refs"}, lacks) {
			return true
		}
	}
	return false
}
