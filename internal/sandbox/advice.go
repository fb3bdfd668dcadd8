package sandbox

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A message about a denied access may lie, and its reader may follow whatever is suggested. So a
// path is suggested only if what it grants can be told, and does not lead out of the sandbox.

// advise returns the path to suggest for an access to path that was denied: wider, which contains
// path, or path itself. If there is none, it returns why.
func (p Policy) advise(path, wider string, reading bool) (grant, withheld string) {
	if withheld = p.withheld(path, reading); withheld != "" {
		return "", withheld
	}
	for _, grant := range []string{wider, path} {
		withheld = cmp.Or(p.withheld(grant, reading), withheldContent(grant))
		if withheld == "" {
			return grant, ""
		}
	}
	return "", withheld
}

// withheld returns why a path must not be suggested, or "". It does not look at what is in it.
func (p Policy) withheld(path string, reading bool) string {
	for _, path := range slices.Compact([]string{path, realPath(path)}) {
		for _, check := range []func(string) string{
			withheldRepository, withheldHome, p.withheldOwn, withheldSecret,
		} {
			if why := check(path); why != "" {
				return why
			}
		}
		if why := withheldProgram(path); why != "" && !reading {
			return why
		}
	}
	return ""
}

// overlaps reports whether one of two paths is the other or lies in it.
func overlaps(a, b string) bool { return lies(a, b) || lies(b, a) }

// lies reports whether path is dir or lies in it.
func lies(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// realPath returns path without links, as far as it exists.
func realPath(path string) string {
	for dir, rest := path, ""; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
	return path
}

func (p Policy) withheldOwn(path string) string {
	for _, own := range p.Own {
		if overlaps(own, path) || overlaps(realPath(own), path) {
			return "acp-agent keeps its own settings or sessions there"
		}
	}
	return ""
}

func withheldHome(path string) string {
	home, err := os.UserHomeDir()
	switch {
	case err != nil:
		return "acp-agent does not know your home directory, and so not what lies there"
	case lies(path, home), lies(path, realPath(home)):
		return "it contains all your files"
	}
	return ""
}

func withheldSecret(path string) string {
	if inHome(path, secrets()) {
		return "programs keep passwords and keys there"
	}
	return ""
}

func withheldProgram(path string) string {
	if inHome(path, startup()) {
		return "it is run or obeyed outside the sandbox when you log in or start a program"
	}
	system := []string{"/bin", "/boot", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr"}
	for _, dir := range slices.Concat(system, filepath.SplitList(os.Getenv("PATH"))) {
		if filepath.IsAbs(dir) && overlaps(dir, path) {
			return "programs that you start outside the sandbox, or their settings, lie there"
		}
	}
	return ""
}

// inHome reports whether path overlaps one of the names in the home directory.
func inHome(path string, names []string) bool {
	home, _ := os.UserHomeDir()
	return slices.ContainsFunc(names, func(name string) bool {
		return overlaps(filepath.Join(home, name), path) ||
			overlaps(filepath.Join(realPath(home), name), path)
	})
}

// secrets are where programs keep what grants access to something, in the home directory.
func secrets() []string {
	return []string{".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc",
		".git-credentials", ".npmrc", ".pypirc", ".password-store", ".pki", ".vault-token", ".pgpass",
		".my.cnf", ".terraform.d", ".mozilla", ".thunderbird", ".cargo/credentials",
		".cargo/credentials.toml", ".gradle/gradle.properties", ".m2/settings.xml", ".nuget/NuGet",
		".config/gcloud", ".config/gh", ".config/hub", ".config/git", ".config/op", ".config/rclone",
		".config/sops", ".config/containers", ".config/google-chrome", ".config/chromium",
		".local/share/keyrings", ".local/share/kwalletd", "Library/Keychains",
		"Library/Application Support/Google", "Library/Application Support/Firefox"}
}

// startup are files and directories in the home directory that programs outside the sandbox run or
// obey when they start.
func startup() []string {
	return []string{".profile", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases",
		".bashrc", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".oh-my-zsh", ".kshrc",
		".mkshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".xprofile", ".xinitrc", ".xsession",
		".xsessionrc", ".pam_environment", ".gitconfig", ".hgrc", ".vimrc", ".vim", ".emacs",
		".emacs.d", ".tmux.conf", ".screenrc", ".gdbinit", ".cargo/config", ".cargo/config.toml",
		".cargo/env", ".gradle/init.d", ".gradle/init.gradle", ".vscode", ".local/bin",
		".local/share/applications", ".local/share/systemd", ".config/autostart", ".config/direnv",
		".config/emacs", ".config/environment.d", ".config/fish", ".config/nushell", ".config/nvim",
		".config/systemd", ".config/tmux", ".config/zsh", "bin", "Library/LaunchAgents"}
}

func withheldRepository(path string) string {
	for dir := path; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if isRepository(dir) {
			return "it belongs to a repository of git, and git outside the sandbox runs the hooks " +
				"and obeys the settings in it"
		}
	}
	return ""
}

// withheldContent returns why a path must not be suggested because of what is in it, or "". What
// belongs to a known tool is not looked at.
func withheldContent(path string) string {
	if ofTool(path) == path {
		return ""
	}
	has, complete := containsRepository(realPath(path))
	switch {
	case has:
		return "there are repositories of git in it, and git outside the sandbox runs their hooks " +
			"and obeys their settings"
	case !complete:
		return "there is too much in it to look through"
	}
	return ""
}

// isRepository reports whether a path is that of a repository's own directory, whether or not it
// exists, or of the file that stands for one.
func isRepository(path string) bool {
	if strings.EqualFold(filepath.Base(path), ".git") {
		return true
	}
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(path, name)); err != nil {
			return false
		}
	}
	return true
}

// containsRepository reports whether there is a repository in path, and whether all of it was seen.
func containsRepository(path string) (has, complete bool) {
	left := 2000 // entries
	err := filepath.WalkDir(path, func(at string, entry fs.DirEntry, err error) error {
		left--
		switch {
		case left < 0:
			return fs.SkipAll
		case err != nil && at == path:
			return nil // it does not exist, or cannot be read by us either
		case err != nil:
			return err
		case strings.EqualFold(entry.Name(), ".git"), entry.IsDir() && isRepository(at):
			has = true
			return fs.SkipAll
		}
		return nil
	})
	return has, err == nil && left >= 0
}
