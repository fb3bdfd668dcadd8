package proxy_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/needs"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/workspace"
)

// sandboxed returns a system whose agent, each time it is started, tries to append a line to the
// file "starts" in each of dirs. Its temporary directory is not that of the test.
func sandboxed(t *testing.T, s backend.Sandbox, dirs ...string) *system {
	h := newSystem(t, abilities{Load: true, Dir: t.TempDir()}, proxy.Options{})
	script := `for dir do echo "$$" >>"$dir/starts"; done 2>/dev/null; exec "$0"`
	h.command.Args = append([]string{"-c", script, h.command.Path}, dirs...)
	h.command.Path = "/bin/sh"
	h.command.Env = append(h.command.Env, "TMPDIR="+t.TempDir())
	s.Write = append(s.Write, dirOf(t, h), filepath.Dir(string(h.record)))
	s.Read = append(s.Read, filepath.Dir(proctest.Executable()))
	h.options.Profile.Sandbox = s
	return h
}

// starts returns how many processes of the agent could write in a directory.
func starts(dir string) int {
	text, _ := os.ReadFile(filepath.Join(dir, "starts"))
	return strings.Count(string(text), "\n")
}

// Clauses X1, X3, X4.
func TestSandboxFollowsTheRoots(t *testing.T) {
	for _, mode := range []backend.SandboxMode{backend.SandboxWrite, backend.SandboxStrict} {
		t.Run(mode.String(), func(t *testing.T) {
			first := roots(t, 1)
			a, b, c := first.Cwd().String(), first.Additional().Strings()[0], t.TempDir()
			out := t.TempDir()
			h := sandboxed(t, backend.Sandbox{Mode: mode}, a, b, c, out)
			v := h.connect()
			s := v.open(first)
			require.Equal(t, []int{1, 1, 0, 0}, []int{starts(a), starts(b), starts(c), starts(out)})
			require.Equal(t, "agent N:one", v.prompt(s.ID, "one"))

			again := v.open(first)
			require.Equal(t, 1, starts(a), "both sessions share the process")
			v.prompt(again.ID, "two")

			v.load(s.ID, with(first, b, c))
			require.Equal(t, []int{2, 2, 1, 0}, []int{starts(a), starts(b), starts(c), starts(out)})
			require.Equal(t, "agent N:one+three", v.prompt(s.ID, "three"), "it knows the session")
			v.disconnect()

			// The sandbox does not change whose session it is.
			h.options.Profile.Sandbox = backend.Sandbox{}
			v = h.connect()
			v.load(s.ID, first)
			require.Equal(t, 1, starts(out), "without a sandbox it writes anywhere")
		})
	}
}

// The answer to /roots names everything that the agent may change, and in mode strict read, because
// of the session, the user's settings and what it is made of.
//
// Clause X1.
func TestRootsNamesWhatTheSandboxGrants(t *testing.T) {
	git := needs.Programs(t, "git")[0]
	base := dirtest.New(t, "state/", "", "data/", "", "home/.gitconfig", "[user]\n\tname = n\n")
	repo, worktree := filepath.Join(base, "repo"), filepath.Join(base, "worktree")
	for _, args := range [][]string{{"init", "-q", repo}, {"-C", repo, "-c", "user.name=n", "-c",
		"user.email=e", "commit", "-q", "--allow-empty", "-m", "m"},
		{"-C", repo, "worktree", "add", "-q", worktree}} {
		out, err := exec.Command(git, args...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	all, err := workspace.NewRoots(worktree, []string{t.TempDir()})
	require.NoError(t, err)
	for _, mode := range []backend.SandboxMode{backend.SandboxWrite, backend.SandboxStrict} {
		h := sandboxed(t, backend.Sandbox{Mode: mode, Read: []string{base + "/data"},
			Ports: hosts.Ports{Limited: true, List: []uint16{443, 8080}}})
		h.options.Profile.State.Writes = []string{base + "/state/"}
		h.command.Env = append(h.command.Env, "HOME="+filepath.Join(base, "home"))
		v := h.connect()
		s := v.open(all)
		said := v.prompt(s.ID, "/roots")
		changes, reads, strict := strings.Cut(said, "It may also read")
		require.Equal(t, mode == backend.SandboxStrict, strict)
		for _, dir := range []string{worktree, all.At(1).String(), base + "/state", dirOf(t, h),
			repo + "/.git/worktrees/worktree", repo + "/.git/refs", repo + "/.git/objects"} {
			require.Contains(t, changes, "- `"+dir+"`\n")
		}
		require.NotContains(t, said, repo+"/.git/hooks")
		require.Contains(t, said, "these TCP ports only: 443, 8080")
		if strict {
			require.Contains(t, reads, "- `"+base+"/data`\n")
			require.Contains(t, reads, "- `"+base+"/home/.gitconfig`\n")
			require.Contains(t, reads, "- `"+repo+"/.git`\n")
			require.NotContains(t, reads, worktree)
		}
	}
}

// What a client runs to sign in to an agent in the sandbox is our own command, without flags or an
// environment that the agent chose.
//
// Clause X5.
func TestLoginsOfARestrictedAgent(t *testing.T) {
	const script = "await initialize\n" + `answer initialize {"protocolVersion":1,"authMethods":[` +
		`{"id":"a","type":"terminal","args":["--sandbox","off"],"env":{"LD_PRELOAD":"x"}},` +
		`{"id":"b","name":"B","_meta":{"terminal-auth":{"command":"sh"},"y":1}},{"id":"c"}]}` + "\n"
	for want, mode := range map[string]backend.SandboxMode{
		`[{"id":"a","type":"terminal","args":["--","--sandbox","off"],"env":{}},` +
			`{"id":"b","name":"B","_meta":{"terminal-auth":null,"y":1}},{"id":"c"}]`: backend.SandboxWrite,
		`[{"id":"a","type":"terminal","args":["--sandbox","off"],"env":{"LD_PRELOAD":"x"}},` +
			`{"id":"b","name":"B","_meta":{"terminal-auth":{"command":"sh"},"y":1}},{"id":"c"}]`: backend.SandboxOff,
	} {
		o := proxy.Options{LoginArgs: []string{"--"}}
		o.Profile.Sandbox = backend.Sandbox{Mode: mode, Write: []string{os.TempDir()}}
		b := initialized(t, script, o)
		var answer struct{ AuthMethods json.RawMessage }
		require.NoError(t, json.Unmarshal(b.info.Initialize, &answer))
		require.JSONEq(t, want, string(answer.AuthMethods))
	}
}

// What the sandbox denies an agent that starts, or opens a session, is explained.
func TestDenialsOutsideOfCallsAreExplained(t *testing.T) {
	home := dirtest.New(t)
	out := home + "/.cache/tool"
	t.Setenv("HOME", home)
	t.Setenv("TMPDIR", dirtest.New(t))
	o := proxy.Options{Profile: profiles.Profile{Name: "mine"}}
	o.Profile.Sandbox = backend.Sandbox{Mode: backend.SandboxWrite}
	a := newSystem(t, abilities{Dir: t.TempDir()}, o)
	a.options.Profile.Sandbox.Write = []string{dirOf(t, a), filepath.Dir(string(a.record))}
	a.command.Args = []string{"-c", `echo "mkdir '` + out + `/state': Permission denied" >&2; exit 1`}
	a.command.Path = "/bin/sh"
	_, err := a.backend().Initialize(t.Context(), backend.Raw(`{"protocolVersion":1}`), nil)
	require.ErrorContains(t, err, "The sandbox does not let the agent change `"+out+"/state`")
	require.ErrorContains(t, err, "`agents.mine`")

	a.options.Profile.Sandbox.Mode = backend.SandboxStrict
	a.command.Args = []string{"-c", "echo 'No module named encodings' >&2; exit 1"}
	_, err = a.backend().Initialize(t.Context(), backend.Raw(`{"protocolVersion":1}`), nil)
	require.ErrorContains(t, err, "encodings")
	require.ErrorContains(t, err, "sandboxRead")
}

// So is what it denies in a prompt, outside of tool calls.
func TestDenialsInPromptsAreExplained(t *testing.T) {
	home := dirtest.New(t)
	out := home + "/.cache/tool"
	t.Setenv("HOME", home)
	t.Setenv("TMPDIR", dirtest.New(t))
	h := newSystem(t, abilities{}, proxy.Options{Profile: profiles.Profile{Name: "mine"}})
	h.options.Profile.Sandbox = backend.Sandbox{Mode: backend.SandboxWrite,
		Write: []string{dirOf(t, h), filepath.Dir(string(h.record))}}
	v := h.connect()
	s := v.open(roots(t, 0))
	_, err := v.Prompt(t.Context(), s.ID, sdk.TextBlock("fail EACCES: permission denied, mkdir '"+out+"/state'"))
	require.ErrorContains(t, err, "The sandbox does not let the agent change `"+out+"/state`")
	require.ErrorContains(t, err, "`agents.mine`")
	refused, ok := errors.AsType[*client.Error](err)
	require.True(t, ok)
	require.Equal(t, -32603, refused.Code)
}

// The session names a host that the sandbox refuses, once, while the turn goes on.
//
// Clause X7.
func TestRefusedHostsAreExplained(t *testing.T) {
	s := backend.Sandbox{Mode: backend.SandboxWrite, Hosts: hosts.Hosts{Limited: true}}
	h := sandboxed(t, s)
	needs.Programs(t, "curl")
	h.command.Args[1] = `for host in a.example b.example a.example; do
		curl -s -o /dev/null "http://$host/"
	done; ` + h.command.Args[1]
	h.options.Profile.Name = "x"
	v := h.connect()
	made := v.open(roots(t, 0))
	told := v.prompt(made.ID, "one")
	for _, host := range []string{"a.example", "b.example"} {
		require.Equal(t, 1, strings.Count(told, "does not let the agent connect to `"+host+":80`"), told)
	}
	require.Contains(t, told, "add `a.example` to `sandboxHosts` of `agents.x`")
	require.NotContains(t, v.prompt(made.ID, "two"), "connect")
}

// Many hosts in one turn use up no hint about paths, and every one of them is explained.
func TestManyHostsLeaveHintsForPaths(t *testing.T) {
	out := dirtest.New(t)
	s := backend.Sandbox{Mode: backend.SandboxWrite, Hosts: hosts.Hosts{Limited: true}}
	h := sandboxed(t, s)
	needs.Programs(t, "curl")
	h.command.Args[1] = `for n in 1 2 3 4 5 6 7; do
		curl -s -o /dev/null "http://h$n.example/"
	done; ` + h.command.Args[1]
	v := h.connect()
	made := v.open(roots(t, 0))
	told := v.prompt(made.ID, "tool mkdir: ‘"+out+"/new’: Permission denied")
	require.Equal(t, 7, strings.Count(told, "does not let the agent connect to"), told)
	require.Contains(t, told, "does not let the agent change `"+out+"/new`")
}

// A turn that fails tells its hints.
func TestFailedTurnsTellTheirHints(t *testing.T) {
	v := sandboxed(t, backend.Sandbox{Mode: backend.SandboxWrite}).connect()
	made := v.open(roots(t, 0))
	for range 2 {
		v.shown()
		path := filepath.Join(dirtest.New(t), "new")
		_, err := v.Prompt(t.Context(), made.ID, sdk.TextBlock("refused mkdir: ‘"+path+"’: Permission denied"))
		require.Error(t, err)
		require.Contains(t, strings.Join(v.shown(), ""), "does not let the agent change `"+path+"`")
	}
}
