package permission

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/acp-agent/acp-agent/internal/permission/commandline"
	"github.com/acp-agent/acp-agent/internal/text"
)

const (
	// maxMentions is the maximum number of words of a request that are looked up as files.
	maxMentions = 1000
	// maxWords is the maximum number of words that are compared with rules about files at all.
	maxWords = 5 * maxMentions
	// maxListed is the maximum number of folders that are listed for words that are patterns.
	maxListed = 100
	// maxFolders is the maximum number of folders in which the words of a request may be files.
	maxFolders = 10
	// maxPath is the length of the longest path that a system opens, in bytes.
	maxPath = 4096
)

// mentioned are the files that words may name, from a folder or from one that another word names,
// as in cd sub && cat x. Those after a maximum are known by name only, and those after another are
// left out.
type mentioned struct {
	files []File
	// vague are the files that patterns without a letter match.
	vague []File
	// dirs are the folders in which words are looked up.
	dirs []string
	// cut means that a command may name other files.
	cut bool
}

// mentions looks up words from dir, of which some may be from a line.
func (p Place) mentions(dir string, words []string, line commandline.Line) mentioned {
	m := mentioned{dirs: []string{dir}}
	patterns := slices.DeleteFunc(slices.Clone(words), func(word string) bool {
		return !commandline.IsPattern(word) && !strings.Contains(word, "{")
	})
	for i := 0; i < len(m.dirs); i++ {
		if i == maxFolders || i*len(words) >= 2*maxMentions {
			m.cut, m.dirs = m.cut || len(line.Entered) > 0, m.dirs[:i]
			break
		}
		at := m.dirs[i]
		found := m.expand(p, patterns, at, true)
		for j, word := range slices.Concat(found, words[:min(len(words), maxWords)]) {
			if len(word) > maxPath {
				continue
			}
			f := p.named(word, at)
			if j < len(found)+maxMentions && p.look(&f) {
				m.enter(f.Real)
			}
			m.files = append(m.files, f)
		}
		for _, name := range m.expand(p, line.Vague, at, false) {
			f := p.named(name, at)
			switch folder := p.look(&f); {
			case !folder:
				m.vague = append(m.vague, f)
			case len(line.Entered) > 0:
				m.enter(f.Real)
			}
		}
		for _, word := range line.Entered {
			if f := p.named(word, dir); !p.look(&f) && !strings.HasSuffix(at, "/"+word) {
				m.enter(filepath.Join(at, word)) // which the command may make
			}
		}
	}
	return m
}

// enter adds a folder in which words are looked up.
func (m *mentioned) enter(folder string) {
	if len(m.dirs) <= maxFolders && !slices.Contains(m.dirs, folder) {
		m.dirs = append(m.dirs, folder)
	}
}

// expand returns the paths of files that a shell or another program puts in place of patterns, at
// most maxMentions.
func (m *mentioned) expand(p Place, patterns []string, dir string, hidden bool) (all []string) {
	room := maxListed
	for _, pattern := range patterns {
		if len(pattern) > maxPath {
			continue
		}
		parts := strings.Split(filepath.ToSlash(p.named(pattern, dir).Path), "/")
		paths := parts[:1]
		for _, part := range parts[1:] {
			paths = extend(paths, part, hidden, &room)
		}
		all = append(all, paths...)
	}
	m.cut = m.cut || room < 0 || len(all) > maxMentions
	return all[:min(len(all), maxMentions)]
}

// extend returns what is at some paths under a name, or under all names that match a pattern in as
// many folders as there is room for.
func extend(paths []string, pattern string, hidden bool, room *int) (all []string) {
	for _, at := range paths {
		if !strings.ContainsAny(pattern, "*?[{") {
			all = append(all, at+"/"+pattern)
			continue
		}
		if *room--; *room < 0 {
			break
		}
		for _, name := range list(at) {
			isHidden := strings.HasPrefix(name, ".") && !strings.HasPrefix(pattern, ".")
			if matches, _ := doublestar.Match(pattern, name); matches && (hidden || !isHidden) {
				all = append(all, at+"/"+name)
			}
		}
	}
	return all
}

// list returns the names in a folder as a shell finds them, in the roots or elsewhere.
func list(dir string) (names []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return append(names, ".", "..")
}

// named returns the file that a word may name, also as an address or below the user's home
// directory.
func (p Place) named(word, dir string) File {
	name := word
	if u, err := url.Parse(word); err == nil && u.Scheme == "file" {
		name = u.Path
	}
	if below, found := strings.CutPrefix(name+"/", "~/"); found {
		if home, err := os.UserHomeDir(); err == nil {
			name = filepath.Join(home, below)
		}
	}
	name = commandline.Absolute(dir, name)
	if at := ownFolder().FindString(name); at != "" {
		name = commandline.Absolute(dir, "./"+name[len(at):])
	}
	f := p.at(name)
	f.Others, f.Word = append(f.Others, path.Clean(word)), word
	return f
}

// ownFolder matches a path that leads to the folder in which the program runs that opens it.
var ownFolder = text.Pattern(`^/+proc/+[^/]+/+(?:task/+[^/]+/+)?cwd(?:/|$)`)
