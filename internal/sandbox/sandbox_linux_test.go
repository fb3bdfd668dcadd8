package sandbox_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
	"github.com/acp-agent/acp-agent/internal/test/containmenttest"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/needs"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
)

func TestMain(m *testing.M) { proctest.Main(m, play) }

// play plays the child of a test.
func play(role string) int {
	switch role {
	case "attack":
		return strikeAll()
	case "attack the parent":
		return strikeParent()
	case "write":
		return writeAll(os.Getenv("TEST_PATHS"))
	case "connect":
		return connectAll(os.Getenv("TEST_ADDRESSES"))
	case "daemon":
		return daemon()
	case "shell":
		return playShell()
	case "type":
		return typeAll()
	case "subvolumes":
		return trySubvolumes()
	case "objects":
		return tryObjects()
	case "without landlock":
		return reportWithout()
	case "tell status":
		text, _ := os.ReadFile("/proc/self/status")
		_, _ = os.Stdout.Write(text)
		return 0
	}
	return 2
}

// start starts a command that is held to p.
func start(p sandbox.Policy, cmd *exec.Cmd) error { return run(p, cmd.Start) }

// run calls do where it is held to p.
func run(p sandbox.Policy, do func() error) error {
	return p.Run(sandbox.Launch{}, func(sandbox.Launch) error { return do() })
}

// writeAll creates a file at each path, and prints those at which it could.
func writeAll(paths string) int {
	for path := range strings.SplitSeq(paths, ":") {
		if os.WriteFile(path, []byte("written"), 0o600) == nil {
			fmt.Println(path)
		}
	}
	return 0
}

// child returns this binary in a role.
func child(role string, env ...string) *exec.Cmd {
	cmd := exec.Command(proctest.Executable())
	cmd.Env = append(os.Environ(), proctest.Env(role, env...)...)
	cmd.Stderr = os.Stderr
	return cmd
}

// output runs a child restricted by p and returns what it printed.
func output(t testing.TB, p sandbox.Policy, cmd *exec.Cmd) string {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout = &out
	require.NoError(t, start(p, cmd))
	require.NoError(t, cmd.Wait())
	return out.String()
}

// openToAll lets all users pass the directories of a test down to dir.
func openToAll(t testing.TB, dir string) {
	t.Helper()
	temp, err := filepath.EvalSymlinks(os.TempDir())
	require.NoError(t, err)
	for ; dir != temp; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
}

// A restricted child tries every system call at every path of the containment corpus: as root what
// may write, and as an ordinary user what may read little; with a full volume each as both.
//
// Clause X1.
func TestChildChangesNothingOutside(t *testing.T) {
	binary := filepath.Join(dirtest.New(t), "test")
	text, err := os.ReadFile(proctest.Executable())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(binary, text, 0o755))
	openToAll(t, filepath.Dir(binary))
	users := map[string]int{"itself": os.Getuid()}
	if os.Getuid() == 0 {
		users["ordinary"] = 65534
	}
	for _, c := range containmenttest.Cases(t, "../../testdata/containment") {
		if c.Name == "c12-hard-links" {
			continue // another name in a root makes a file part of it
		}
		for user, uid := range users {
			for _, mode := range []sandbox.Mode{sandbox.Write, sandbox.Strict} {
				if !volume.Full() && (mode == sandbox.Strict) != (user == "ordinary") && len(users) > 1 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", c.Name, user, mode), func(t *testing.T) {
					t.Parallel()
					c.Skip(t)
					attackCase(t, c, mode, binary, uid)
				})
			}
		}
	}
}

func attackCase(t *testing.T, c containmenttest.Case, mode sandbox.Mode, binary string, uid int) {
	s := c.Stage(t)
	defer s.Clear()
	p := sandbox.Policy{Mode: mode, Read: []string{filepath.Dir(binary)}}
	for _, root := range s.Roots() {
		root, err := filepath.EvalSymlinks(root)
		require.NoError(t, err)
		p.Write = append(p.Write, root)
	}
	a := attack{Inside: p.Write[0]}
	for _, attempt := range c.Attempts {
		a.Paths = append(a.Paths, s.Path(attempt))
	}
	a.Paths = append(a.Paths, s.Dir, filepath.Join(s.Dir, "out"))
	var out bytes.Buffer
	cmd := child("attack")
	cmd.Path, cmd.Dir, cmd.Stdout = binary, a.Inside, &out
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	if uid != os.Getuid() {
		openToAll(t, s.Dir)
		require.NoError(t, filepath.WalkDir(s.Dir, func(path string, _ os.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(path, uid, uid))
		}))
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	require.NoError(t, start(p, cmd))
	s.Open(t)
	require.NoError(t, json.NewEncoder(stdin).Encode(a))
	require.NoError(t, stdin.Close())
	require.NoError(t, cmd.Wait())
	require.Contains(t, out.String(), "done\n")
	learned := ""
	if mode == sandbox.Strict && len(s.Denied()) == 0 { // it knows no denied directories in a root
		learned = out.String()
	}
	s.RequireContained(t, learned, "a child in the sandbox")
}

// The attack is able to do damage without a sandbox, or the test above would prove nothing.
func TestAttackWorks(t *testing.T) {
	dir := dirtest.New(t)
	secret := filepath.Join(dir, "out", "secret")
	require.NoError(t, os.Mkdir(filepath.Dir(secret), 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "in"), 0o755))
	require.NoError(t, os.WriteFile(secret, []byte("SECRET"), 0o600))
	text, err := json.Marshal(attack{filepath.Join(dir, "in"), []string{secret}})
	require.NoError(t, err)
	cmd := child("attack")
	cmd.Stdin = bytes.NewReader(text)
	require.Contains(t, output(t, sandbox.Policy{}, cmd), "SECRET")
	left, _ := os.ReadFile(secret)
	require.NotEqual(t, "SECRET", string(left))
}

func TestChildWorksInside(t *testing.T) {
	a, b, out := dirtest.New(t), dirtest.New(t), dirtest.New(t)
	require.NoError(t, os.WriteFile(filepath.Join(out, "f"), []byte("outside"), 0o600))
	for _, mode := range []sandbox.Mode{sandbox.Write, sandbox.Strict} {
		script := `cd "$1" && echo one >f && mkdir d && mv f "$2/f" && ln "$2/f" "$2/g" &&
			ln -s g "$2/h" && cat "$2/h" && rm -r d "$2/f" "$2/g" "$2/h" && : >/dev/null &&
			t=$(mktemp -p /dev/shm) && rm "$t" && cat "$3/f"; echo "status $?"`
		cmd := exec.Command("/bin/sh", "-c", script, "sh", a, b, out)
		p := sandbox.Policy{Mode: mode, Write: []string{a, b}}
		want := map[sandbox.Mode]string{sandbox.Write: "one\noutsidestatus 0\n",
			sandbox.Strict: "one\nstatus 1\n"}[mode]
		require.Equal(t, want, output(t, p, cmd), mode)
	}
}

// Programs open pseudo-terminals for the commands that they run.
func TestChildOpensTerminals(t *testing.T) {
	needs.Programs(t, "script")
	dir := dirtest.New(t)
	p := sandbox.Policy{Mode: sandbox.Strict, Write: []string{dir}}
	cmd := exec.Command("script", "-qec", "tty", filepath.Join(dir, "typescript"))
	require.Contains(t, output(t, p, cmd), "/dev/pts/")
}

// The thread that starts the child is restricted like it. As long as it lives, the child can send
// it signals, but do nothing else to it.
//
// Clause X1.
func TestChildDoesNotReachItsParent(t *testing.T) {
	proctest.AsOrdinaryUser(t, t.Name())
	dir := dirtest.New(t)
	for range 20 {
		p := sandbox.Policy{Mode: sandbox.Write, Write: []string{dir}}
		require.Empty(t, output(t, p, child("attack the parent")))
	}
}

// Clause X2.
func TestDescendantsStayRestricted(t *testing.T) {
	in, out := dirtest.New(t), dirtest.New(t)
	report := filepath.Join(in, "report")
	paths := filepath.Join(in, "f") + ":" + filepath.Join(out, "f")
	p := sandbox.Policy{Mode: sandbox.Write, Write: []string{in}}
	output(t, p, child("daemon", "TEST_PATHS="+paths, "TEST_REPORT="+report))
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(report)
		return err == nil && string(text) == filepath.Join(in, "f")+"\n"
	}, volume.Patience, time.Millisecond)
	require.NoFileExists(t, filepath.Join(out, "f"))
}

// daemon starts a process that leaves the session and outlives it, which in turn starts one in a
// sandbox of its own that would allow more.
func daemon() int {
	if os.Getenv("TEST_DAEMON") == "" {
		again := child("daemon", "TEST_DAEMON=1")
		again.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if again.Start() != nil {
			return 1
		}
		return 0
	}
	var out bytes.Buffer
	writer := child("write")
	writer.Stdout = &out
	p := sandbox.Policy{Mode: sandbox.Write, Write: []string{"/"}}
	if start(p, writer) != nil || writer.Wait() != nil {
		return 1
	}
	temporary := os.Getenv("TEST_REPORT") + "-"
	if os.WriteFile(temporary, out.Bytes(), 0o600) != nil ||
		os.Rename(temporary, os.Getenv("TEST_REPORT")) != nil {
		return 1
	}
	return 0
}

// Clause X1.
func TestChildConnectsOnlyToItsPorts(t *testing.T) {
	var ports []string
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		ports = append(ports, l.Addr().String())
	}
	own, err := netip.ParseAddrPort(ports[0])
	require.NoError(t, err)
	abstract, err := net.Listen("unix", "@acp-agent-"+filepath.Base(t.TempDir())+strconv.Itoa(os.Getpid()))
	require.NoError(t, err)
	defer abstract.Close()
	addresses := "TEST_ADDRESSES=" + strings.Join(ports, " ") + " " + abstract.Addr().String()
	for want, p := range map[string]sandbox.Policy{
		ports[0] + "\n" + ports[1] + "\n": {Mode: sandbox.Write},
		ports[0] + "\n": {Mode: sandbox.Write,
			Ports: hosts.Ports{Limited: true, List: []uint16{own.Port()}}},
		"": {Mode: sandbox.Write, Ports: hosts.Ports{Limited: true}},
	} {
		require.Equal(t, want, output(t, p, child("connect", addresses)), p)
	}
	require.Contains(t, output(t, sandbox.Policy{}, child("connect", addresses)), "@acp-agent")
}

// connectAll connects to each address, and prints those to which it could.
func connectAll(addresses string) int {
	for address := range strings.SplitSeq(addresses, " ") {
		network := "tcp"
		if strings.HasPrefix(address, "@") {
			network = "unix"
		}
		if c, err := net.Dial(network, address); err == nil {
			fmt.Println(address)
			_ = c.Close()
		}
	}
	return 0
}

// Our own process is never restricted, whichever threads its goroutines run on.
//
// Clause X4.
func TestOwnProcessIsNotRestricted(t *testing.T) {
	in, out := dirtest.New(t), dirtest.New(t)
	p := sandbox.Policy{Mode: sandbox.Strict, Write: []string{in}}
	stop := make(chan struct{})
	var writing, starting sync.WaitGroup
	for i := range 8 {
		writing.Go(func() {
			path := filepath.Join(out, strconv.Itoa(i))
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := os.WriteFile(path, []byte("free"), 0o600); err != nil {
					t.Error(err)
					return
				}
				runtime.Gosched()
			}
		})
	}
	for range 4 {
		starting.Go(func() {
			for range 25 {
				if err := run(p, func() error {
					if os.WriteFile(filepath.Join(out, "restricted"), nil, 0o600) == nil {
						return errors.New("not restricted")
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 2 { // and neither are children without a sandbox
		starting.Go(func() {
			for n := range 15 {
				path := filepath.Join(out, fmt.Sprintf("free-%d-%d", i, n))
				cmd := exec.Command("/bin/sh", "-c", `echo free >"$0"`, path)
				if err := errors.Join(start(sandbox.Policy{}, cmd), cmd.Wait()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	starting.Wait()
	close(stop)
	writing.Wait()
	// the main thread, which no goroutine can end
	require.NoError(t, os.WriteFile(filepath.Join(out, "main"), nil, 0o600))
	cmd := exec.Command("/bin/true")
	require.NoError(t, start(p, cmd))
	require.NoError(t, cmd.Wait())
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", os.Getpid()))
	require.NoError(t, err)
	require.Contains(t, string(text), "NoNewPrivs:\t0")
}

func TestRootLosesCapabilities(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	p := sandbox.Policy{Mode: sandbox.Write, Write: []string{dirtest.New(t)}}
	for line := range strings.Lines(output(t, p, child("tell status"))) {
		if set, ok := strings.CutPrefix(line, "CapEff:\t"); ok {
			capabilities, err := strconv.ParseUint(strings.TrimSpace(set), 16, 64)
			require.NoError(t, err)
			require.Zero(t, capabilities&(1<<unix.CAP_SYS_PTRACE|1<<unix.CAP_SYS_ADMIN|
				1<<unix.CAP_SYS_TIME|1<<unix.CAP_NET_ADMIN))
			require.NotZero(t, capabilities&(1<<unix.CAP_CHOWN), "root keeps the others")
			require.NotZero(t, capabilities&(1<<unix.CAP_NET_RAW), "for ping")
		}
	}
}

func TestWriteRefusesLinks(t *testing.T) {
	dir := dirtest.New(t)
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink("/", link))
	for _, path := range []string{link, filepath.Join(link, "tmp"), filepath.Join(dir, "missing")} {
		p := sandbox.Policy{Mode: sandbox.Write, Write: []string{path}}
		err := run(p, func() error { t.Error("started"); return nil })
		require.ErrorContains(t, err, path)
		require.NotErrorIs(t, err, sandbox.ErrUnavailable)
	}
}

// Kernels and containers without Landlock, and with a version that is too old.
//
// Clause X2.
func TestUnavailable(t *testing.T) {
	for answer, why := range map[string]string{
		"ENOSYS":     "has no Landlock",
		"EOPNOTSUPP": "disabled",
		"EPERM":      "does not allow Landlock",
	} {
		text := output(t, sandbox.Policy{}, child("without landlock", "TEST_ERRNO="+answer))
		require.Contains(t, text, why)
		require.Contains(t, text, "true false\n", "unavailable, and not started")
	}
	// Some containers refuse only the last of the three calls.
	text := output(t, sandbox.Policy{},
		child("without landlock", "TEST_ERRNO=EPERM", "TEST_CALL=restrict"))
	require.Equal(t, 2, strings.Count(text, "does not allow Landlock"), text)
	require.Contains(t, text, "true false\n")
}

// reportWithout denies Landlock to itself and prints what becomes of a start.
func reportWithout() int {
	errno := map[string]syscall.Errno{"ENOSYS": unix.ENOSYS, "EOPNOTSUPP": unix.EOPNOTSUPP,
		"EPERM": unix.EPERM}[os.Getenv("TEST_ERRNO")]
	call := uint32(unix.SYS_LANDLOCK_CREATE_RULESET)
	if os.Getenv("TEST_CALL") == "restrict" {
		call = unix.SYS_LANDLOCK_RESTRICT_SELF
	}
	if err := proctest.Deny(call, errno); err != nil {
		fmt.Println(err)
		return 1
	}
	started := false
	err := run(sandbox.Policy{Mode: sandbox.Write}, func() error { started = true; return nil })
	fmt.Println(sandbox.Settings{}.Available())
	fmt.Println(err)
	fmt.Println(errors.Is(err, sandbox.ErrUnavailable), started)
	return 0
}

func BenchmarkStart(b *testing.B) {
	dir := dirtest.New(b)
	for _, p := range []sandbox.Policy{{}, {Mode: sandbox.Write, Write: []string{dir}},
		{Mode: sandbox.Strict, Write: []string{dir}}} {
		b.Run(p.Mode.String(), func(b *testing.B) {
			for b.Loop() {
				cmd := exec.Command("/bin/true")
				if err := errors.Join(start(p, cmd), cmd.Wait()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A directory to keep is not written, neither beside what is granted nor in it, also by one of its
// other paths; what is granted in it is.
//
// Clause A39.
func TestKeptDirectories(t *testing.T) {
	top := dirtest.New(t, "app/f", "", "app/lib/f", "", "app/lib/deep/f", "", "dep/f", "", "dep/inner/f", "")
	at := func(name string) string { return filepath.Join(top, name) }
	p := sandbox.Policy{Mode: sandbox.Write, Write: []string{at("app"), at("dep/inner")},
		Keep: []string{at("app/lib"), at("dep")}}
	require.True(t, p.Writes(at("app/new")))
	require.False(t, p.Writes(at("app/lib/new")))
	require.True(t, p.Keeps(at("dep/f")))
	require.True(t, p.Writes(at("dep/inner/new")))
	if os.Getuid() != 0 {
		t.Skip("only root can mount")
	}
	paths := []string{at("app/new"), at("app/lib/f"), at("app/lib/new"), at("app/lib/deep/f"), at("dep/f"),
		at("dep/new"), at("dep/inner/new"), at("app/../app/lib/x"), "/proc/self/root" + at("app/lib/y")}
	written := output(t, p, child("write", "TEST_PATHS="+strings.Join(paths, ":")))
	require.Equal(t, at("app/new")+"\n"+at("dep/inner/new")+"\n", written)
	inside := child("write", "TEST_PATHS=relative")
	inside.Dir = at("app/lib")
	require.Empty(t, output(t, p, inside), "it starts there")
}
