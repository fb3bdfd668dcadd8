package confine_test

import (
	"embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/sandbox/confine"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
)

// developer is a home directory as developers have it. Files with credentials contain SECRET.
type developer struct {
	t             *testing.T
	home, project string
	settings      sandbox.Settings
}

func newDeveloper(t *testing.T) *developer {
	d := &developer{t: t, home: dirtest.New(t), project: dirtest.New(t)}
	d.settings = sandbox.Settings{Mode: sandbox.Strict, Records: filepath.Join(dirtest.New(t), "records")}
	t.Setenv("PATH", "/usr/bin:/bin")
	for name, text := range map[string]string{
		".git-credentials":                       "https://me:SECRET@example.com\n",
		".config/git/credentials":                "https://me:SECRET@example.com\n",
		".netrc":                                 "machine example.com\nlogin me\npassword SECRET\n",
		".npmrc":                                 "//registry.npmjs.org/:_authToken=SECRET\n",
		".bash_aliases":                          "alias c='curl -u me:SECRET https://example.com'\n",
		".zshrc":                                 "export API_KEY=SECRET\n",
		".ssh/config":                            "Host *\n",
		".ssh/id_ed25519":                        "SECRET",
		".cargo/credentials.toml":                "[registry]\ntoken = \"SECRET\"\n",
		".config/gh/hosts.yml":                   "github.com:\n  oauth_token: SECRET\n",
		".pyenv/versions/3/pip.conf":             "[global]\nindex-url = https://me:SECRET@example.com\n",
		".nvm/versions/node/v1/etc/npmrc":        "//registry.npmjs.org/:_authToken=SECRET\n",
		".volta/tools/image/node/1/etc/npmrc":    "//registry.npmjs.org/:_authToken=SECRET\n",
		".asdf/installs/rust/1/credentials.toml": "[registry]\ntoken = \"SECRET\"\n",
	} {
		d.write(name, text)
	}
	return d
}

// write writes a file in the home directory. A script can be run.
func (d *developer) write(name, text string) {
	d.t.Helper()
	path, mode := filepath.Join(d.home, name), os.FileMode(0o600)
	if strings.HasPrefix(text, "#!") {
		mode = 0o700
	}
	require.NoError(d.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(d.t, os.WriteFile(path, []byte(text), mode))
}

func (d *developer) link(text, name string) {
	d.t.Helper()
	path := filepath.Join(d.home, name)
	require.NoError(d.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(d.t, os.Symlink(text, path))
}

// program installs a shell as a program that reads ../lib/module.
func (d *developer) program(name string) {
	d.t.Helper()
	shell := dirtest.Read(d.t, "/bin/sh")
	d.write(name, "#!")
	require.NoError(d.t, os.WriteFile(filepath.Join(d.home, name), []byte(shell), 0o700))
	d.write(filepath.Join(filepath.Dir(name), "../lib/module"), "module\n")
}

// secrets returns the files with credentials.
func (d *developer) secrets() (files []string) {
	d.t.Helper()
	require.NoError(d.t, filepath.WalkDir(d.home, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), "SECRET") {
			files = append(files, path)
		}
		return err
	}))
	require.NotEmpty(d.t, files)
	return files
}

// run runs a script in the sandbox, with directories of the home in PATH. It returns what the
// script says, and checks that no file with credentials can be read.
func (d *developer) run(script string, path ...string) (string, error) {
	d.t.Helper()
	for _, dir := range path {
		d.t.Setenv("PATH", filepath.Join(d.home, dir)+":"+os.Getenv("PATH"))
	}
	c, err := confine.Command(process.Command{Path: "/bin/sh", Dir: d.project, Env: []string{"HOME=" + d.home, "TMPDIR=" + d.project},
		Args: append([]string{"-c", `cat "$@" 2>/dev/null; ` + script, "sh"}, d.secrets()...),
	}, d.settings, roottest.Open(d.t, d.project).Opened())
	require.NoError(d.t, err)
	c.Batch = true
	text, err := process.Output(d.t.Context(), c)
	require.NotContains(d.t, string(text), "SECRET")
	return string(text), err
}

// plant makes files in the home directory, of which some are programs or links.
func (d *developer) plant(files []txtar.File) {
	d.t.Helper()
	for _, f := range files {
		name, target, isLink := strings.Cut(f.Name, " -> ")
		program, isProgram := strings.CutPrefix(name, "program ")
		switch {
		case isLink:
			d.link(target, name)
		case isProgram:
			d.program(program)
		default:
			d.write(name, strings.NewReplacer("{home}", d.home,
				"{named}", "[user]\n\tname = Me\n\temail = me@example.com").Replace(string(f.Data)))
		}
	}
}

// What version managers install, and settings of git.
var (
	//go:embed testdata/installations
	installed embed.FS
	//go:embed testdata/gitsettings.txtar
	gitSettings []byte
)

// In mode strict, what version managers have installed can be run, and nothing with credentials can
// be read.
//
// Clause X6.
func TestInstallationsInPATH(t *testing.T) {
	if proctest.AsOrdinaryUser(t, t.Name()) {
		return
	}
	archives, err := installed.ReadDir("testdata/installations")
	require.NoError(t, err)
	for _, archive := range archives {
		t.Run(archive.Name(), func(t *testing.T) {
			text, err := installed.ReadFile("testdata/installations/" + archive.Name())
			require.NoError(t, err)
			read := txtar.Parse(text)
			d := newDeveloper(t)
			d.plant(read.Files)
			path := strings.Fields(strings.TrimPrefix(string(read.Comment), "PATH:"))
			said, err := d.run("tool -c 'echo runs' 2>&1; script 2>&1", path...)
			require.Equal(t, "runs\nmodule\n", said)
			require.NoError(t, err)
		})
	}
}

// Clause X6.
func TestWithoutHomeNothingElseCanBeRead(t *testing.T) {
	dir := dirtest.New(t)
	c, err := confine.Command(process.Command{Path: "/bin/sh", Env: []string{"HOME=", "TMPDIR=" + dir}},
		sandbox.Settings{Mode: sandbox.Strict}, roottest.Open(t, dir).Opened())
	require.NoError(t, err)
	require.NotContains(t, c.Sandbox.Read, "/")
}

// A link in a directory of PATH that a process in the sandbox could have made opens nothing.
//
// Clause X6.
func TestPlantedProgramsOpenNothing(t *testing.T) {
	if proctest.AsOrdinaryUser(t, t.Name()) {
		return
	}
	d := newDeveloper(t)
	d.write(".pyenv/version", "3\n")
	d.write("private/notes", "SECRET")
	d.write("private/tool", "#!/bin/sh\n# SECRET\n")
	t.Setenv("PATH", d.project+"/node_modules/.bin:"+os.Getenv("PATH"))
	_, err := d.run("mkdir -p node_modules/.bin; for x in private/notes private/tool .pyenv/version; do " +
		`ln -s "$HOME/$x" node_modules/.bin/; done; ln -s "$HOME/private" node_modules/dir; touch pyvenv.cfg`)
	require.NoError(t, err)
	d.project = dirtest.New(t)
	text, err := d.run(`cat "$HOME/private/notes" "$HOME/private/tool" "$HOME/.pyenv/version" || echo denied`)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(text, "denied\n"), text)
}

// Git works in mode strict with the settings of a user, and nothing with credentials can be read.
//
// Clause X6.
func TestGitSettings(t *testing.T) {
	if proctest.AsOrdinaryUser(t, t.Name()) {
		return
	}
	all := make(map[string][]txtar.File) // by whether git knows the name of the user, and by their case
	for _, f := range txtar.Parse(gitSettings).Files {
		knows, rest, _ := strings.Cut(f.Name, "/")
		name, file, _ := strings.Cut(rest, "/")
		name = knows + "/" + name
		all[name] = append(all[name], txtar.File{Name: file, Data: f.Data})
	}
	for name, files := range all {
		t.Run(name, func(t *testing.T) {
			d := newDeveloper(t)
			d.plant(files)
			text, err := d.run("git init -q . && git status --short 2>&1 && git config user.name")
			require.Equal(t, strings.HasPrefix(name, "read/"), text == "Me\n", "%s %v", text, err)
			require.NotContains(t, text, "fatal")
			require.NotContains(t, text, "denied")
		})
	}
}

// Settings of git that a process in the sandbox could have written name no other files.
//
// Clause X6.
func TestPlantedGitSettings(t *testing.T) {
	if proctest.AsOrdinaryUser(t, t.Name()) {
		return
	}
	d := newDeveloper(t)
	d.write("private/notes", "[user]\n\tname = SECRET\n")
	d.link(filepath.Join(d.project, "gitconfig"), ".gitconfig")
	_, err := d.run(`printf '[include]\n\tpath = ~/private/notes\n[core]\n\texcludesFile = ~/private/notes\n' >gitconfig`)
	require.NoError(t, err)
	for range 2 {
		text, _ := d.run(`git status 2>&1; cat "$HOME/private/notes" 2>&1`)
		require.Contains(t, text, "Permission denied")
		require.NotContains(t, text, "unknown error")
		d.project = dirtest.New(t)
	}
	_, err = exec.LookPath("git")
	require.NoError(t, err)
}
