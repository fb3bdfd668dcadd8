package explore

import (
	"errors"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// link is a file that was named, with the lines that are asked for.
type link struct {
	path  string
	lines lines
}

// lines is a range of 1-based line numbers, both included. The zero value is the
// whole file; last 0 is its end.
type lines struct{ first, last int }

func (l lines) whole() bool { return l == lines{} }

func (l lines) String() string {
	switch {
	case l.whole():
		return ""
	case l.last == 0:
		return strconv.Itoa(l.first) + "-"
	case l.first == l.last:
		return strconv.Itoa(l.first)
	default:
		return strconv.Itoa(l.first) + "-" + strconv.Itoa(l.last)
	}
}

// parseLink reads a file URI. Its fragment may name lines the way editors do: #L3, #L3-L9, #L3:9.
// Whether the path is in scope is for the workspace to say when it is opened.
func parseLink(uri string) (link, error) {
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return link{}, errors.New("it is not a URI")
	case u.Scheme != "file":
		return link{}, errors.New("only links to files are read here")
	case u.Host != "" && u.Host != "localhost":
		return link{}, errors.New("it names another computer")
	case !strings.HasPrefix(u.Path, "/"):
		return link{}, errors.New("it holds no absolute path")
	}
	path := u.Path
	if filepath.VolumeName(filepath.FromSlash(path[1:])) != "" { // file:///C:/dir
		path = path[1:]
	}
	return link{path: filepath.FromSlash(path), lines: fragmentLines(u.Fragment)}, nil
}

func fragmentLines(fragment string) lines {
	m := regexp.MustCompile(`^L(\d+)(?:[-:]L?(\d+))?$`).FindStringSubmatch(fragment)
	if m == nil {
		return lines{}
	}
	if m[2] == "" {
		m[2] = m[1]
	}
	return newLines(lineNumber(m[1]), lineNumber(m[2]))
}

// splitLines takes the ":FIRST-LAST" off an argument. ":FIRST" is one line, ":FIRST-" goes to the end.
func splitLines(argument string) (path string, l lines, ok bool) {
	m := regexp.MustCompile(`(?s)^(.+):(\d+)(-(\d*))?$`).FindStringSubmatch(argument)
	if m == nil {
		return argument, lines{}, false
	}
	if m[3] == "" {
		m[4] = m[2]
	}
	return m[1], newLines(lineNumber(m[2]), lineNumber(m[4])), true
}

// newLines puts a range in order; last 0 is the end of the file.
func newLines(first, last int) lines {
	first = max(first, 1)
	if last != 0 && last < first {
		first, last = last, first
	}
	return lines{first, last}
}

// lineNumber is the number, 0 for none, and the largest line for one beyond it.
func lineNumber(digits string) int {
	if digits == "" {
		return 0
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		return 1<<31 - 1
	}
	return int(n)
}
