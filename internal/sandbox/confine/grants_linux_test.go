package confine_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/sandbox/confine"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/workspace"
)

// attacked is the surroundings of an agent that plants links for its next process.
type attacked struct {
	t                           *testing.T
	home, a, b, out, temp, link string
	settings                    sandbox.Settings
	env                         []string
}

func newAttacked(t *testing.T, mode sandbox.Mode) *attacked {
	at := &attacked{t: t, home: dirtest.New(t), a: dirtest.New(t), b: dirtest.New(t), out: dirtest.New(t), temp: dirtest.New(t)}
	at.settings = sandbox.Settings{Mode: mode, Records: filepath.Join(dirtest.New(t), "records")}
	at.link = filepath.Join(dirtest.New(t), "link")
	require.NoError(t, os.Symlink(at.home, at.link))
	at.env = []string{"HOME=" + at.home, "TMPDIR=" + at.temp}
	return at
}

// run runs a script as the agent with these roots, which are opened now. $a, $b and $out are
// directories.
func (at *attacked) run(script string, roots ...string) error {
	at.t.Helper()
	var opened []workspace.Root
	if len(roots) > 0 {
		opened = roottest.Open(at.t, roots[0], roots[1:]...).Opened()
	}
	c, err := confine.Command(process.Command{Path: "/bin/sh", Args: []string{"-c", script}, Dir: at.a,
		Env: append([]string{"PATH=/usr/bin:/bin", "a=" + at.a, "b=" + at.b, "out=" + at.out, "home=" + at.home}, at.env...),
	}, at.settings, opened)
	if err != nil {
		require.ErrorAs(at.t, err, new(*process.StartError))
		return err
	}
	text, err := process.Output(at.t.Context(), c)
	if exit := (*process.ExitError)(nil); errors.As(err, &exit) {
		at.t.Logf("%s: %s %v", script, text, exit)
		return nil
	}
	require.NoError(at.t, err)
	return nil
}

func (at *attacked) mkdir(path string) string {
	require.NoError(at.t, os.MkdirAll(path, 0o700))
	return path
}

// The links that an agent leaves behind do not widen what its next process may do: it either cannot
// use them, or is not started with a reason. Before the attack everything works.
//
// Clause X6.
func TestPlantedLinks(t *testing.T) {
	proctest.AsOrdinaryUser(t, t.Name())
	plant := func(name string) string { return "rm -rf " + name + "; ln -s $out " + name }
	for name, attack := range map[string]func(*attacked) (first, second func() error){
		"a state directory that is a link into a folder": func(at *attacked) (_, _ func() error) {
			at.mkdir(at.a + "/claude")
			require.NoError(at.t, os.Symlink(at.a+"/claude", at.home+"/.claude"))
			at.settings.State = []string{"~/.claude/"}
			return func() error { return at.run("touch $home/.claude/works; "+plant("$a/claude"), at.a) },
				func() error { return at.run("touch $home/.claude/evil $out/evil", at.b) }
		},
		"one that another agent has planted before its first use": func(at *attacked) (_, _ func() error) {
			at.mkdir(at.a + "/claude")
			require.NoError(at.t, os.Symlink(at.a+"/claude", at.home+"/.claude"))
			return func() error { return at.run(plant("$a/claude"), at.a) },
				func() error {
					at.settings.State = []string{"~/.claude/"}
					return at.run("touch $home/.claude/evil $out/evil", at.b)
				}
		},
		"a variable in the folder, spelled through a link": func(at *attacked) (_, _ func() error) {
			at.mkdir(at.home + "/p/cfg")
			at.env, at.settings.State = append(at.env, "CFG="+at.link+"/p/cfg"), []string{"$CFG/"}
			return func() error { return at.run("touch $CFG/works; "+plant("$home/p/cfg"), at.home+"/p") },
				func() error { return at.run("touch $CFG/evil $out/evil", at.home+"/p") }
		},
		"a variable in another folder": func(at *attacked) (_, _ func() error) {
			at.env, at.settings.State = append(at.env, "CFG="+at.a+"/cfg"), []string{"$CFG/"}
			return func() error { return at.run("touch $CFG/works; "+plant("$a/cfg"), at.a) },
				func() error { return at.run("touch $CFG/evil $out/evil", at.b) }
		},
		"a root in a root": func(at *attacked) (_, _ func() error) {
			at.mkdir(at.a + "/sub")
			return func() error { return at.run("touch $a/sub/works; "+plant("$a/sub"), at.a, at.a+"/sub") },
				func() error { return at.run("touch $out/evil", at.a, at.a+"/sub") }
		},
		"a root of another session": func(at *attacked) (_, _ func() error) {
			at.mkdir(at.a + "/sub")
			return func() error { return at.run(plant("$a/sub"), at.a) },
				func() error { return at.run("touch $out/evil", at.a+"/sub") }
		},
		"sandboxWrite": func(at *attacked) (_, _ func() error) {
			at.mkdir(at.a + "/cache")
			at.settings.Write = []string{at.a + "/cache"}
			return func() error { return at.run("touch $a/cache/works; "+plant("$a/cache"), at.a) },
				func() error { return at.run("touch $out/evil", at.b) }
		},
		"the temporary directory": func(at *attacked) (_, _ func() error) {
			at.mkdir(at.a + "/tmp")
			at.env = append(at.env, "TMPDIR="+at.a+"/tmp")
			return func() error { return at.run("touch $TMPDIR/works; "+plant("$a/tmp"), at.a) },
				func() error { return at.run("touch $out/evil", at.b) }
		},
		"directories that are created": func(at *attacked) (_, _ func() error) {
			at.env, at.settings.State = append(at.env, "CFG="+at.a+"/x/evil"), []string{"$CFG/"}
			return func() error { return at.run("touch $CFG/works; "+plant("$a/x"), at.a) },
				func() error { return at.run("touch $out/evil", at.b) }
		},
		"a folder that was renamed since": func(at *attacked) (_, _ func() error) {
			at.mkdir(at.a + "/p/cfg")
			at.env, at.settings.State = append(at.env, "CFG="+at.a+"/q/cfg"), []string{"$CFG/"}
			return func() error { return at.run(plant("$a/p/cfg"), at.a+"/p") },
				func() error {
					require.NoError(at.t, os.RemoveAll(at.a+"/q"))
					require.NoError(at.t, os.Rename(at.a+"/p", at.a+"/q"))
					return at.run("touch $out/evil", at.b)
				}
		},
		"shared memory": func(at *attacked) (_, _ func() error) {
			dir, err := os.MkdirTemp("/dev/shm", "planted")
			require.NoError(at.t, err)
			at.t.Cleanup(func() { _ = os.RemoveAll(dir) })
			at.env, at.settings.Write = append(at.env, "shm="+dir), []string{dir}
			return func() error { return at.run(plant("$shm"), at.a) },
				func() error { return at.run("touch $out/evil", at.b) }
		},
	} {
		for _, mode := range []sandbox.Mode{sandbox.Write, sandbox.Strict} {
			t.Run(name+"/"+mode.String(), func(t *testing.T) {
				at := newAttacked(t, mode)
				first, second := attack(at)
				require.NoError(t, first())
				if err := second(); err != nil {
					require.ErrorContains(t, err, "which a program in the sandbox could have put there")
					require.ErrorContains(t, err, "acp-agent permissions follow ")
				}
				require.NoDirExists(t, at.out+"/evil")
				require.NoFileExists(t, at.out+"/evil")
			})
		}
	}
}

// What is read in strict mode is not widened either.
//
// Clause X6.
func TestPlantedLinksAreNotRead(t *testing.T) {
	at := newAttacked(t, sandbox.Strict)
	secret := filepath.Join(at.out, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("SECRET"), 0o600))
	at.mkdir(at.a + "/bin")
	at.mkdir(at.a + "/data")
	t.Setenv("PATH", at.a+"/bin:"+os.Getenv("PATH"))
	at.settings.Read = []string{at.a + "/data"}
	require.NoError(t, at.run("rmdir $a/bin $a/data; ln -s $out $a/bin; ln -s $out $a/data", at.a))
	err := at.run("cp $out/secret $b/got", at.b)
	require.ErrorContains(t, err, "sandboxRead")
	at.settings.Read = nil
	require.NoError(t, at.run("cp $out/secret $b/got", at.b))
	require.NoFileExists(t, at.b+"/got")
}

// Links of the user work as long as nobody has changed them.
//
// Clause X6.
func TestLinksOfTheUserWork(t *testing.T) {
	at := newAttacked(t, sandbox.Write)
	other := dirtest.New(t)
	at.mkdir(at.a + "/claude")
	require.NoError(t, os.Symlink(at.a+"/claude", at.home+"/.claude"))
	require.NoError(t, os.Symlink(other, at.home+"/elsewhere"))
	require.NoError(t, os.Symlink(other, at.a+"/package"))
	at.settings.State = []string{"~/.claude/", "~/elsewhere/new/"}
	wrote := func(path string) {
		t.Helper()
		require.FileExists(t, path)
		require.NoError(t, os.Remove(path))
	}
	for range 3 {
		require.NoError(t, at.run("touch $home/.claude/f $home/elsewhere/new/g $a/package/h", at.a, at.a+"/package"))
		wrote(at.a + "/claude/f")
		wrote(other + "/new/g")
		wrote(other + "/h")
	}
	// The home directory becomes a folder: the links were known before.
	require.NoError(t, at.run("true", at.home))
	require.NoError(t, at.run("touch $home/.claude/f $home/elsewhere/new/g", at.b))
	wrote(at.a + "/claude/f")
	wrote(other + "/new/g")

	// The user changes a link in it, and accepts that.
	require.NoError(t, os.Remove(at.home+"/elsewhere"))
	require.NoError(t, os.Symlink(at.out, at.home+"/elsewhere"))
	at.mkdir(at.out + "/new")
	path := at.home + "/elsewhere/new"
	require.ErrorContains(t, at.run("true", at.b), "run acp-agent permissions follow "+path)
	accepted, err := confine.AcceptLinks(at.settings.Records, path)
	require.NoError(t, err)
	require.NoError(t, at.run("touch $home/elsewhere/new/g", at.b))
	wrote(at.out + "/new/g")
	all, err := consent.NewStore(at.settings.Records).List()
	require.NoError(t, err)
	require.Len(t, all, 4)
	found, err := consent.NewStore(at.settings.Records).Find(accepted[0].ID)
	require.NoError(t, err)
	require.Equal(t, []string{path, at.out + "/new"}, []string{found.Link, found.Target})
	require.NoError(t, consent.NewStore(at.settings.Records).Forget(accepted[0].ID))
	require.Error(t, at.run("true", at.b))

	_, err = confine.AcceptLinks(at.settings.Records, at.home+"/missing")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// A root that leads elsewhere than when the session was opened is not granted.
func TestRestrictGrantsRootsAsOpened(t *testing.T) {
	at := newAttacked(t, sandbox.Write)
	c := process.Command{Path: "/bin/true", Env: at.env}
	moved := roottest.Open(t, at.a).Opened()
	moved[0].Real = roottest.Open(t, at.out).Root(0).Real
	_, err := confine.Command(c, at.settings, moved)
	require.ErrorContains(t, err, "load it again")
	_, err = confine.Command(c, at.settings, roottest.Open(t, at.link).Opened())
	require.NoError(t, err)
}

// In mode strict a script can be run if its interpreter lies elsewhere, as in a Python environment,
// unless a restricted process could have named the interpreter.
//
// Clause X6.
func TestInterpreterOfAScript(t *testing.T) {
	at := newAttacked(t, sandbox.Strict)
	shell := dirtest.Read(t, "/bin/sh")
	venv, dist := dirtest.New(t), dirtest.New(t)
	require.NoError(t, os.WriteFile(at.mkdir(dist+"/bin")+"/python3", []byte(shell), 0o700))
	require.NoError(t, os.Symlink(dist+"/bin/python3", at.mkdir(venv+"/bin")+"/python"))
	for _, dir := range []string{venv, dist} {
		require.NoError(t, os.WriteFile(at.mkdir(dir+"/lib")+"/module", []byte("module\n"), 0o600))
		require.NoError(t, os.WriteFile(dir+"/secret", nil, 0o600))
	}
	script := "#!" + venv + "/bin/python\ncat " + venv + "/lib/module " + dist + "/lib/module\n" +
		"! cat " + venv + "/secret " + dist + "/secret 2>/dev/null\n"
	run := func(program string, roots ...workspace.Root) (string, error) {
		require.NoError(t, os.WriteFile(program, []byte(script), 0o700))
		c, err := confine.Command(process.Command{Path: program, Env: at.env}, at.settings, roots)
		require.NoError(t, err)
		text, err := process.Output(t.Context(), c)
		return string(text), err
	}
	text, err := run(at.mkdir(venv+"/bin") + "/agent")
	require.NoError(t, err)
	require.Equal(t, "module\nmodule\n", text)
	_, err = run(at.a+"/agent", roottest.Open(t, at.a).Root(0))
	require.Error(t, err, "the script lies in a folder")
	_, err = run(at.a + "/agent")
	require.Error(t, err, "the script lies where a process could write")
}
