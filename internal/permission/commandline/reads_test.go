package commandline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A command of git of which nothing is said prints no file, with any of its options.
func TestReadsOfGit(t *testing.T) {
	p := newGround(t)
	p.write("a.txt", "needle two \n")
	p.git(p.root, "commit", "-qam", "Two")
	p.write("a.txt", "needle three \n")
	p.git(p.root, "stash")
	p.write("a.txt", "needle four \n")
	p.git(p.root, "add", "a.txt")
	p.write("a.txt", "needle five \n")
	values := strings.NewReplacer("=NUM", "=3", ":NUM", " 3", "=FORMAT", "=%h", "=TEXT", "=x", ":TEXT", " e", "-NUM", "-3",
		"[=WORD]", "", "[=NUM]", "", "=WORD", "=iso", ":WORD", " 1,2")
	silent := 0
	for _, u := range programs() {
		if !strings.HasPrefix(u.words, "git ") {
			continue
		}
		options := []string{""}
		for letter := range strings.SplitSeq(u.letters, "") {
			options = append(options, "-"+letter)
		}
		options = append(options, strings.Fields(u.options)...)
		for words := range strings.SplitSeq(strings.TrimPrefix(u.words, "git "), "|") {
			for _, option := range options {
				line := strings.TrimSpace("git " + words + " " + values.Replace(option))
				c, err := Understand(p.ws, p.root, line)
				if err != nil || len(c.Reads) > 0 {
					continue
				}
				output, _ := p.run(p.root, line, c.Env...)
				require.NotContains(t, output, "needle", line)
				silent++
			}
		}
	}
	require.Greater(t, silent, 100)
}

// Folders are said to be read, and the files that git tracks below them.
func TestReads(t *testing.T) {
	p := newGround(t)
	for line, want := range map[string]string{
		"cat a.txt": "", "cat a.txt sub": "sub/", "rg x": "./", "rg x sub a.txt": "sub/", "rg --files": "", "grep -r x .": "./", "ls sub": "",
		"go test ./...": "", "git show HEAD": "./", "git show HEAD:sub/b.txt": "sub/b.txt", "git show HEAD:a.txt HEAD": "./",
		"git show HEAD:./a.txt": "a.txt", "git show 'HEAD^{/x}:a.txt'": "./", "git show HEAD:a.txt..HEAD:x": "./",
		"git diff sub/b.txt": "sub/b.txt", "git diff -- sub": "sub/1.txt sub/b.txt", "git diff 's*/b.txt' --": "./", "git diff HEAD": "./",
		"git diff --cached": "./", "git log": "", "git log -p": "./", "git status": "", "git status -sv": "./", "git blame a.txt": "",
		"git grep x sub2 a.txt": "a.txt sub2/1.txt", "git grep x HEAD": "./", "git grep x HEAD -- sub": "./", "git grep -- x HEAD": "./",
		"git grep --untracked x sub/b.txt": "sub/b.txt", "git grep --untracked x sub2": "sub2/ sub2/1.txt",
	} {
		c, err := Understand(p.ws, p.root, line)
		require.NoError(t, err, line)
		var got []string
		for _, r := range c.Reads {
			name := strings.TrimPrefix(strings.TrimPrefix(r.Path, p.root), "/")
			if r.Folder {
				name = strings.TrimPrefix(name+"/", "/")
			}
			if name == "" {
				name = "./"
			}
			got = append(got, name)
		}
		require.Equal(t, want, strings.Join(got, " "), line)
	}
}
