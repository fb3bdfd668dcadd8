package confine

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
)

// Git ends with an error if its settings exist and cannot be read. So in mode strict they can be
// read, with the files that they include, unless that would reveal credentials. Then git is told to
// do without the settings of the user.

// grantGit lets the process read git's settings of the user. It returns c, in whose environment git
// does without them if they cannot all be read.
func (g *grants) grantGit(c process.Command) process.Command {
	home, dir := c.Expand("~/"), cmp.Or(c.Expand("$XDG_CONFIG_HOME/git"), c.Expand("~/.config/git"))
	g.grantReading(dir+"/ignore", dir+"/attributes")
	files := []string{c.Expand("~/.gitconfig"), dir + "/config"}
	if file := c.Expand("$GIT_CONFIG_GLOBAL"); file != "" {
		files = []string{file}
	}
	const nested = 10 // as git allows
	for _, file := range files {
		if filepath.IsAbs(file) && !g.grantGitSettings(file, home, nested) {
			c.Env = append(c.Env[:len(c.Env):len(c.Env)], "GIT_CONFIG_GLOBAL="+os.DevNull)
			break
		}
	}
	return c
}

// grantGitSettings reports whether the process can read a file with git's settings, if it exists,
// and those that it includes. A file that a restricted process could write names no others.
func (g *grants) grantGitSettings(path, home string, nested int) bool {
	at, err := g.resolve(path)
	if err == nil && len(at.Missing) > 0 {
		return true
	}
	if err != nil && !errors.Is(err, errInside) || nested == 0 {
		return false
	}
	content, ok := g.grantText(at.Path())
	planted, err := g.couldWrite(filepath.Dir(at.Path()))
	trusted := ok && err == nil && !planted && !g.policy.Writes(at.Path())
	section := ""
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		if header, rest, ok := strings.Cut(line, "]"); ok && strings.HasPrefix(line, "[") {
			section, line = strings.ToLower(header), rest
		}
		name, value, _ := strings.Cut(line, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		includes := name == "path" && strings.HasPrefix(section, "[include")
		file := strings.Trim(strings.TrimSpace(value), `"`)
		if file == "" || !includes && name != "excludesfile" && name != "attributesfile" {
			continue
		}
		if rest, ofHome := strings.CutPrefix(file, "~/"); ofHome {
			file = filepath.Join(home, rest)
		} else if !filepath.IsAbs(file) {
			file = filepath.Join(filepath.Dir(path), file)
		}
		real, err := g.resolve(file)
		allowed := g.policy.Reads(real.Path()) || trusted && sandbox.Contains(home, real.Path())
		if err != nil || !allowed || strings.ContainsAny(file, `\"#;%~`) || // not plain
			includes && !g.grantGitSettings(file, home, nested-1) {
			return false
		}
		if _, readable := g.grantText(real.Path()); !readable && len(real.Missing) == 0 {
			return false
		}
	}
	return ok
}

// grantText lets the process read a file without links, unless its text may have credentials, and
// returns the text.
func (g *grants) grantText(path string) (content string, ok bool) {
	const most = 1 << 20
	text, ok := readSmall(filepath.Dir(path), filepath.Base(path), most)
	switch content = string(text); {
	case !ok || g.policy.Reads(path):
	case secret.Mask(content) != content || plainSecret().MatchString(content):
		return "", false
	default:
		g.policy.Read = append(g.policy.Read, path)
	}
	return content, ok
}

// plainSecret matches settings of git and of shells that have credentials, besides what
// [secret.Mask] finds.
var plainSecret = text.Pattern(`(?im)(pass|extraheader)[ \t]*=|https?://[^/\s@"]{20,}@|` +
	`^machine[ \t]|\blogin[ \t]+\S+[ \t\n]+password|BEGIN [A-Z ]*PRIVATE KEY|\bglpat-|\bnpm_|` +
	`(^|\s)(-u|--user)[ =]?["']?[^\s:]+:\S`)
