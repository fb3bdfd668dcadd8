package commandline

import (
	"path"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/workspace"
)

// Reading is a file or folder of which a command may print the content.
type Reading struct {
	Path   string // absolute
	Folder bool   // with everything in it
}

// maxTracked is the maximum number of files that a command is said to read. More are their folder.
const maxTracked = 10_000

// patchOptions are those with which git log prints what changed.
const patchOptions = "--patch --unified -U --word-diff --check"

// folders returns the folders among operands of which the command prints files, and the working
// directory if it searches that because no operand is a path.
func (r *reader) folders(operands []operand) (all []Reading) {
	if r.usage.prints == "" || r.usage.prints == "names" {
		return nil // it prints names, or runs code
	}
	named := r.usage.prints == "files" || r.usage.prints == "below" && !r.has("r", "--recursive")
	for _, o := range operands {
		if o.kind != "PATH" && o.kind != "FILE" {
			continue
		}
		named = true
		name := Absolute(r.dir, o.word)
		if info, err := r.ws.Stat(name); err == nil && info.Mode().IsDir() {
			all = append(all, Reading{name, true})
		}
	}
	if !named {
		all = []Reading{{r.dir, true}}
	}
	return all
}

// gitReads returns what a command of git prints, in the repository at top with these tracked files.
// Where it prints what was committed, that may be any file: git also takes the id of a file's
// content for a revision.
func (r *reader) gitReads(command, top string, tracked []string) []Reading {
	everything := []Reading{{top, true}}
	revisions, paths := r.gitOperands(command)
	switch command {
	case "show":
		if named, ok := inRevisions(r.dir, top, revisions); ok {
			return named // a folder is listed, its files are not printed
		}
		return everything
	case "diff", "grep":
		if len(revisions) > 0 || len(tracked) > maxTracked ||
			r.has("", "--cached --staged --merge-base") { // which is compared with a commit
			return everything
		}
		return r.trackedReads(top, tracked, paths)
	case "log", "reflog", "stash":
		if r.has("pm", patchOptions) {
			return everything
		}
	case "status":
		if r.has("v", "") {
			return everything
		}
	}
	return nil // the words name the file, or it prints names
}

// trackedReads returns the files that git diff or git grep opens, of those below some paths.
func (r *reader) trackedReads(top string, tracked []string, paths []operand) (all []Reading) {
	if r.has("", "--untracked") {
		all = r.folders(paths)
	}
	for _, name := range tracked {
		if name = top + "/" + name; r.selects(paths, name) {
			all = append(all, Reading{Path: name})
		}
	}
	return all
}

// has reports whether one of some letters or options, separated by spaces, is among the options of
// the command.
func (r *reader) has(letters, options string) bool {
	return slices.ContainsFunc(r.options, func(word string) bool {
		name, _, _ := strings.Cut(word, "=")
		isLong := strings.HasPrefix(word, "--")
		return slices.ContainsFunc(strings.Fields(options), func(item string) bool {
			return name == item || len(item) == len("-U") && strings.HasPrefix(word, item)
		}) || !isLong && letters != "" && strings.ContainsAny(word[1:], letters)
	})
}

// gitOperands returns the words of a command of git that name revisions, and those that name paths.
// Before "--" a word is a path if it exists; git refuses a word that can be both.
func (r *reader) gitOperands(command string) (revisions, paths []operand) {
	operands, separated := r.operands, r.passed
	if command == "grep" && len(operands) > 0 {
		separated = separated && !operands[0].passed // "--" before the pattern separates nothing
		operands = operands[1:]
	}
	for _, o := range operands {
		_, err := r.ws.Lstat(Absolute(r.dir, o.word))
		if separated && o.passed || !separated && err == nil {
			paths = append(paths, o)
		} else {
			revisions = append(revisions, o)
		}
	}
	return revisions, paths
}

// inRevisions returns the paths of words such as HEAD:sub/file, of a command in dir. ok is false if
// a word is not one that names exactly this file, and if there are none.
func inRevisions(dir, top string, words []operand) (all []Reading, ok bool) {
	for _, o := range words {
		_, name, found := strings.Cut(o.word, ":")
		if !found || strings.Contains(o.word, "{") || strings.Contains(o.word, "..") {
			return nil, false
		}
		from := top
		if strings.HasPrefix(name, "./") {
			from = dir
		}
		all = append(all, Reading{Path: path.Join(from, name)})
	}
	return all, len(words) > 0
}

// selects reports whether paths may select the file name, which all do if there are none. A pattern
// may select any file.
func (r *reader) selects(paths []operand, name string) bool {
	return len(paths) == 0 || slices.ContainsFunc(paths, func(o operand) bool {
		selected := path.Join(Absolute(r.dir, o.word))
		return strings.ContainsAny(o.word, `*?[\`) || name == selected ||
			strings.HasPrefix(name, strings.TrimSuffix(selected, "/")+"/")
	})
}

// MayRead returns what the commands may print that run in dir, from any of their words on, and the
// words that name folders of which they may print the files.
func (l Line) MayRead(ws *workspace.Workspace, dir string) (reads []Reading, folders []string) {
	in := newPlace(ws, dir)
	for _, command := range l.certain {
		command = command[:min(len(command), maxWords)]
		plain := !slices.ContainsFunc(command, func(t token) bool { return t.kind != literal })
		var words []string
		for _, t := range command {
			words = append(words, t.text)
		}
		for i, word := range words {
			read, named := in.mayRead(Program(word), words[i+1:], plain)
			reads, folders = append(reads, read...), append(folders, named...)
		}
	}
	return reads, folders
}

// mayRead returns what a program may print with some words, which are plain or may be changed.
func (p place) mayRead(program string, words []string, plain bool) ([]Reading, []string) {
	if program == "git" {
		words = withoutGlobal(words)
	}
	r, c, err := p.read(slices.Insert(slices.Clone(words), 0, program))
	r.understood = r.understood && plain
	switch {
	case r.understood && err == nil:
		return c.Reads, nil
	case program != "git":
		return nil, foldersOf(program, r.usage.prints, words)
	case r.isQuiet(words):
		return nil, nil
	}
	var roots []Reading
	for _, root := range p.ws.Opened() {
		roots = append(roots, Reading{root.Dir.String(), true})
	}
	return roots, nil
}

// withoutGlobal returns the words of git without options before the command.
func withoutGlobal(words []string) []string {
	i := 0
	for i < len(words) && strings.HasPrefix(words[i], "-") {
		if slices.Contains([]string{"-C", "-c", "--git-dir", "--work-tree"}, words[i]) {
			i++
		}
		i++
	}
	return words[min(i, len(words)):]
}

// isQuiet reports whether the words of a command of git print no content of files.
func (r *reader) isQuiet(words []string) bool {
	if len(words) > 0 && words[0] == "stash" {
		words = words[1:]
	}
	shows := func(word string) bool { return isKind("SHOWING", word) }
	return len(words) == 0 || In("@quiet", words[0]) ||
		In("@quiet-unless-shown", words[0]) && !slices.ContainsFunc(words, shows) ||
		In("@quiet-unless-listed", words[0]) && r.understood && !r.has("pmv", patchOptions)
}

// foldersOf returns words of a program that may be folders of which it prints, copies or renames
// the files. The last word of some is where they put something.
func foldersOf(program, prints string, words []string) (folders []string) {
	searches, recurses := In("@searchers", program) || prints == "folders", !In("@recursive", program)
	puts := In("@putters", program)
	var values []string
	for _, word := range words {
		if strings.HasPrefix(word, "-") {
			recurses = recurses || strings.ContainsAny(word, "rRad")
			puts = puts && !strings.HasPrefix(word, "-t") && !strings.HasPrefix(word, "--t")
			_, value, _ := strings.Cut(word, "=")
			values = append(values, value, word[min(len(word), len("-C")):])
			continue
		}
		if at := strings.IndexAny(word, "*?[{"); at >= 0 {
			word = path.Dir(word[:at] + "x")
		}
		folders = append(folders, word)
	}
	switch {
	case !recurses || !searches && !In("@copiers", program):
		return nil
	case searches:
		folders = append(folders, ".")
	case puts && len(folders) > 1:
		folders = folders[:len(folders)-1]
	}
	isEmpty := func(name string) bool { return name == "" }
	return slices.DeleteFunc(append(folders, values...), isEmpty)
}
