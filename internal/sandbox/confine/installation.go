package confine

import (
	"cmp"
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/acp-agent/acp-agent/internal/files/links"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
)

// A program in PATH is often a link, or a small program that starts another one. It needs files
// elsewhere, where a version manager has installed them. Mode strict permits reading these, but not
// the rest of that directory, which may have tokens.

//go:embed installations.txt
var installations string

// place is an installation that is there: a directory without links, and what programs in it read.
type place struct {
	dir   string
	reads []string
}

// places returns the installations that c could use. One around the home directory does not count.
func (g *grants) places(c process.Command) (found []place) {
	home, failed := links.Follow(cmp.Or(c.Expand("~/"), "/"))
	_, parts, _ := strings.Cut(installations, "\n@ : ")
	for line := range strings.Lines(installations) {
		dirs, reads, _ := strings.Cut(line, " : ")
		for _, dir := range strings.Fields(dirs) {
			dir = c.Expand(dir)
			at, err := g.resolve(dir)
			if errors.Join(err, failed) != nil || !filepath.IsAbs(dir) || len(at.Missing) > 0 ||
				sandbox.Contains(at.Real, home.Path()) {
				continue
			}
			p := place{dir: at.Real}
			for _, path := range strings.Fields(reads) {
				path, isVersion := strings.CutSuffix(path, "@")
				switch path = c.Expand(path); {
				case path == "":
					continue // the variable is not set
				case !filepath.IsAbs(path):
					path = filepath.Join(dir, path)
				}
				names := []string{""}
				if isVersion {
					names = strings.Fields(parts)
				}
				for _, name := range names {
					some, _ := filepath.Glob(filepath.Join(path, name))
					p.reads = append(p.reads, some...)
				}
			}
			found = append(found, p)
		}
	}
	return found
}

// shellFiles are what a shell of a user reads when it starts, and what others have added there.
const shellFiles = "~/.profile ~/.bash_profile ~/.bash_login ~/.bashrc ~/.bash_aliases ~/.zshenv " +
	"~/.zprofile ~/.zshrc ~/.nvm/nvm.sh ~/.cargo/env"

// grantInstallations lets the process read the directories in which it looks for programs, and what
// the programs need to which links there lead, c itself, and the files of shells.
func (g *grants) grantInstallations(c process.Command) {
	for _, file := range strings.Fields(shellFiles) {
		g.grantReading(c.Expand(file))
	}
	places := g.places(c)
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		at, err := g.resolve(dir)
		if err != nil || !filepath.IsAbs(dir) || g.policy.Reads(at.Path()) {
			continue
		}
		g.grantReading(at.Path())
		g.grantAround(at.Path()+"/.", at.Path(), places)
		entries, _ := os.ReadDir(at.Path())
		for _, e := range entries {
			if e.Type()&fs.ModeSymlink != 0 {
				g.grantProgram(filepath.Join(at.Path(), e.Name()), places)
			}
		}
	}
	if found, err := exec.LookPath(c.Path); err == nil && filepath.IsAbs(found) {
		g.grantReading(filepath.Dir(found))
		if at, err := g.resolve(found); err == nil {
			g.grantReading(filepath.Dir(at.Real))
			g.grantRuntime(g.interpreter(at.Real))
			g.grantProgram(found, places)
		}
	}
}

// grantRuntime lets the process read what an interpreter needs, such as node.
func (g *grants) grantRuntime(interpreter string) {
	if at, err := g.resolve(interpreter); err == nil && interpreter != "" {
		for _, program := range []string{interpreter, at.Real} {
			g.grantReading(filepath.Dir(program), filepath.Join(filepath.Dir(program), "../lib"))
		}
	}
}

// grantProgram lets the process read a program, its interpreter, and what both need.
func (g *grants) grantProgram(found string, places []place) {
	if real := g.grantExecutable(found, places); real != "" {
		g.grantExecutable(g.interpreter(real), places)
	}
}

// grantExecutable lets the process read an executable file and what that needs. It returns where
// the file is, or "" if it is not one: a link in a directory of PATH may lead to anything.
func (g *grants) grantExecutable(found string, places []place) (real string) {
	at, err := g.resolve(found)
	real = at.Path()
	info, failed := os.Lstat(real)
	if errors.Join(err, failed) != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return ""
	}
	if !g.policy.Reads(real) {
		g.policy.Read = append(g.policy.Read, real)
	}
	g.grantAround(found, real, places)
	return real
}

// grantAround lets the process read what a program needs that was found at a path and really lies
// at another one.
func (g *grants) grantAround(found, real string, places []place) {
	for _, p := range places {
		if sandbox.Contains(p.dir, real) {
			g.grantReading(p.reads...)
		}
	}
	if before, _, ok := strings.Cut(real, "/node_modules/"); ok {
		g.grantReading(before + "/node_modules")
	}
	for _, program := range []string{found, real} {
		environment := filepath.Dir(filepath.Dir(program)) // of Python, whose programs may be links
		if _, err := os.Lstat(filepath.Join(environment, "pyvenv.cfg")); err == nil {
			g.grantReading(environment+"/pyvenv.cfg", environment+"/lib", environment+"/lib64")
		}
	}
}

// grantReading lets the process read paths, as far as they exist and may be followed. A file is
// left out if it seems to have credentials.
func (g *grants) grantReading(paths ...string) {
	for _, path := range paths {
		at, err := g.resolve(path)
		info, failed := os.Lstat(at.Path())
		switch {
		case errors.Join(err, failed) != nil, g.policy.Reads(at.Path()):
		case info.Mode().IsRegular():
			_, _ = g.grantText(at.Path())
		default:
			g.policy.Read = append(g.policy.Read, at.Path())
		}
	}
}
