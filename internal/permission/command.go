package permission

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/permission/commandline"
)

// Command returns the action of running a command line in dir, "" if the agent has not said where.
// It is not odd if it runs with these variables in its environment.
func (p Place) Command(line, dir string) (a Action, env []string) {
	a.Verb, a.Command.Line = Run, line
	told := dir != ""
	if !told {
		dir = p.Workspace.Root(0).Dir.String()
	}
	said := commandline.Read(line)
	words := said.Words()
	if len(words) > maxMentions {
		a.Unclear = "the command is too long"
	}
	named := p.mentions(dir, words, said)
	a.Files = named.files
	a.Hints = Hints{Files: named.vague, Reads: p.searched(said, named.dirs),
		More: said.Built || named.cut || a.Unclear != ""}
	info, err := p.Workspace.Stat(dir)
	if err == nil {
		a.Where.Root = info.Ref().Root().Real.String()
		err = p.Inside(dir)
	}
	if err != nil {
		a.Unclear = err.Error()
		return a, nil
	}
	if told {
		a.Where.Within = info.Ref().Rel()
	}
	if a.Command.Words, err = commandline.Plain(line); err != nil {
		return a, nil
	}
	known, err := commandline.Understand(p.Workspace, dir, line)
	switch {
	case err == nil:
		a.Command.Known, a.Hints.Reads = known.Rule, p.reads(known.Reads)
		if known.Bare != nil {
			a.Command.Odd = known.Bare.Error()
		}
	case commandline.Program(a.Command.Words[0]) == "git":
		a.Command.Odd = err.Error() // it may run what the repository names
	}
	a.Command.Local = p.isLocal(a.Command.Words, dir)
	return a, known.Env
}

// isLocal reports whether a command names a file in the roots, such as the script that it runs.
func (p Place) isLocal(words []string, dir string) bool {
	if strings.Contains(words[0], "/") && !filepath.IsAbs(words[0]) {
		return true
	}
	return slices.ContainsFunc(words, func(word string) bool {
		info, err := p.Workspace.Stat(commandline.Absolute(dir, word))
		return err == nil && !info.Mode().IsDir()
	})
}

// reads returns the files of which a command prints the content, and the roots in its folders.
func (p Place) reads(all []commandline.Reading) (files []File) {
	for _, r := range all {
		f := File{Path: r.Path, Folder: r.Folder, Names: p.relative(filepath.Clean(r.Path))}
		if r.Folder && p.look(&f) && f.Root == "" {
			for _, root := range p.Workspace.Opened() {
				if real := root.Real.String(); isBelow(f.Real, real) {
					files = append(files, File{Real: real, Names: []string{"."}, Folder: true})
				}
			}
		}
		files = append(files, f)
	}
	return files
}

// searched returns the files and folders of which the commands of a line may print the content that
// run in one of some folders.
func (p Place) searched(line commandline.Line, dirs []string) (files []File) {
	for _, dir := range dirs {
		reads, folders := line.MayRead(p.Workspace, dir)
		for _, name := range folders {
			if f := p.named(name, dir); p.look(&f) {
				reads = append(reads, commandline.Reading{Path: f.Path, Folder: true})
			}
		}
		files = append(files, p.reads(reads)...)
	}
	return files
}

// maxHashed bounds the files of a command whose content is compared, in bytes.
const maxHashed = 64 << 20

// Contents returns a text that changes if the content of a file changes that a command names, such
// as the script that it runs, or if one is created, and these files as the command writes them. The
// text is "" if that cannot be determined.
func (p Place) Contents(a Action) (state string, names []string) {
	if len(commandline.Read(a.Command.Line).Words()) > maxMentions {
		return "", nil
	}
	seen := map[string]bool{}
	sum, room := sha256.New(), int64(maxHashed)
	for _, f := range a.Files {
		if seen[f.Path] {
			continue
		}
		seen[f.Path] = true
		hash, size, err := p.Workspace.Hash(f.Path, room)
		if err != nil {
			continue
		}
		if room -= size; room < 0 {
			return "", nil
		}
		names = append(names, f.Word)
		fmt.Fprintf(sum, "%q %s\n", f.Path, hash)
	}
	return hex.EncodeToString(sum.Sum(nil)), names
}
