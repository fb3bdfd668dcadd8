package conformance

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A package comment names files of its own package without a directory, and others with their path
// in the repository. A star stands for the rest of a name. A path that begins with no directory of
// the repository is part of an example.
func TestPackageCommentsNameTheirFiles(t *testing.T) {
	all := files(t)
	for dir, comment := range packageComments(t) {
		for _, name := range namedFiles(comment) {
			file := path.Join(dir, name)
			if top, _, isPath := strings.Cut(name, "/"); isPath {
				file = name
				if !slices.ContainsFunc(all, func(f string) bool { return strings.HasPrefix(f, top+"/") }) {
					continue
				}
			}
			if !slices.ContainsFunc(all, func(f string) bool { return matches(file, f) }) {
				t.Errorf("the comment of %s names %s, which does not exist", dir, name)
			}
		}
	}
}

func matches(pattern, name string) bool {
	ok, _ := path.Match(pattern, name)
	return ok
}

// packageComments returns the comments of the packages of the repository by directory.
func packageComments(t *testing.T) map[string]string {
	comments := make(map[string]string)
	for _, s := range sources(t) {
		comments[s.dir()] += s.file.Doc.Text()
	}
	return comments
}

var fileName = regexp.MustCompile(`[\w*./-]*[\w*]\.go\b`)

// namedFiles returns the Go files that a package comment names, without the strings in its
// examples.
func namedFiles(comment string) []string {
	return fileName.FindAllString(regexp.MustCompile("`[^`]*`").ReplaceAllString(comment, ""), -1)
}

// A row of "Where the next thing goes" names places that exist, and "`NAME` in `FILE`" a file in
// which the name is.
func TestNextThingsArePlaces(t *testing.T) {
	page, err := os.ReadFile("../../../docs/internals/architecture.md")
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(page), "## Where the next thing goes\n")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n## ")
	place := regexp.MustCompile("`([\\w.-]+(?:/[\\w.-]+)+)`")
	for _, m := range place.FindAllStringSubmatch(table, -1) {
		_, err := os.Stat("../../../" + m[1])
		require.NoError(t, err)
	}
	named := regexp.MustCompile("`([\\w.]+)`(?:, `([\\w.]+)`)* in `([\\w./-]+\\.go)`").
		FindAllStringSubmatch(table, -1)
	require.NotEmpty(t, named)
	for _, m := range named {
		source, err := os.ReadFile("../../../" + m[len(m)-1])
		require.NoError(t, err)
		for _, name := range m[1 : len(m)-1] {
			name = name[strings.LastIndex(name, ".")+1:]
			require.Contains(t, string(source), name, "%s in %s", name, m[len(m)-1])
		}
	}
}
