package process_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/sandbox/confine"
	hostproxy "github.com/acp-agent/acp-agent/internal/sandbox/hosts"
	"github.com/acp-agent/acp-agent/internal/test/needs"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/workspace"
)

// outside is what a child must not reach: servers on this machine that note who comes.
type outside struct {
	TCP, UDP, Abstract string
	Allowed            string // a TCP server that is in the list

	mu   sync.Mutex
	seen []string
}

func newOutside(t *testing.T) *outside {
	t.Helper()
	o := &outside{}
	listen := func(network, address, name string) string {
		l, err := net.Listen(network, address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				if name != "" {
					o.note(name)
				} else {
					_, _ = http.ReadRequest(bufio.NewReader(c))
				}
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nallowed")
				_ = c.Close()
			}
		}()
		return l.Addr().String()
	}
	o.TCP = listen("tcp", "127.0.0.1:0", "TCP")
	o.Allowed = listen("tcp", "127.0.0.1:0", "")
	o.Abstract = listen("unix", fmt.Sprintf("@acp-agent-outside-%d-%s", os.Getpid(), t.Name()), "abstract socket")
	names, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = names.Close() })
	o.UDP = names.LocalAddr().String()
	go func() {
		for {
			text := make([]byte, 1)
			_, from, err := names.ReadFrom(text)
			if err != nil {
				return
			}
			o.note(map[string]string{mark: "mark"}[string(text)] + "UDP")
			_, _ = names.WriteTo(text, from)
		}
	}()
	return o
}

// mark is what a test sends itself.
const mark = "m"

func (o *outside) note(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, name)
}

// came returns who came. A server has noted everybody who came before it answers us.
func (o *outside) came(t *testing.T) []string {
	t.Helper()
	for network, address := range map[string]string{"tcp": o.TCP, "unix": o.Abstract} {
		c, err := net.Dial(network, address)
		require.NoError(t, err)
		_, err = bufio.NewReader(c).ReadByte()
		require.NoError(t, err)
		require.NoError(t, c.Close())
	}
	c, err := net.Dial("udp", o.UDP)
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, mark)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return slices.Contains(o.seen, "markUDP")
	}, patience, time.Millisecond)
	o.mu.Lock()
	defer o.mu.Unlock()
	came := o.seen
	for _, own := range []string{"TCP", "abstract socket", "markUDP"} {
		at := slices.Index(came, own)
		came = slices.Delete(came, at, at+1)
	}
	o.seen = nil
	return came
}

// tried returns a command that tries all.
func (o *outside) tried(t *testing.T) process.Command {
	t.Helper()
	text, err := json.Marshal(o)
	require.NoError(t, err)
	return self("try all", "TEST_OUTSIDE="+string(text), "TMPDIR="+t.TempDir())
}

// tryAll tries every way to the outside and prints those that seem to work.
func tryAll() int {
	var o outside
	if err := json.Unmarshal([]byte(os.Getenv("TEST_OUTSIDE")), &o); err != nil {
		fmt.Println(err)
		return 1
	}
	try := func(what string, err error) {
		if err == nil {
			fmt.Println(what)
		}
	}
	tryInherited(try)
	for network, address := range map[string]string{"tcp": o.TCP, "unix": o.Abstract} {
		_, err := net.Dial(network, address)
		try("a connection to "+network, err)
	}
	c, err := net.Dial("udp", o.UDP)
	if err == nil {
		_, err = io.WriteString(c, "x")
	}
	if err == nil {
		_, err = c.Read(make([]byte, 1)) // nobody listens on the child's own loopback
	}
	try("UDP", err)
	to := sockaddr(o.TCP)
	try("TFO", connectWith(unix.IPPROTO_TCP, func(s int) error {
		return unix.Sendto(s, []byte("x"), unix.MSG_FASTOPEN, to)
	}))
	try("TFO by message", connectWith(unix.IPPROTO_TCP, func(s int) error {
		return unix.Sendmsg(s, []byte("x"), nil, to, unix.MSG_FASTOPEN)
	}))
	try("TFO by connect", connectWith(unix.IPPROTO_TCP, func(s int) error {
		_ = unix.SetsockoptInt(s, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1)
		if err := unix.Connect(s, to); err != nil {
			return err
		}
		_, err := unix.Write(s, []byte("x"))
		return err
	}))
	try("MPTCP", connectWith(unix.IPPROTO_MPTCP, func(s int) error { return unix.Connect(s, to) }))
	for name, kind := range map[string][3]int{
		"raw": {unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, "packets": {unix.AF_PACKET, unix.SOCK_RAW, 0},
		"the virtual machine's host": {unix.AF_VSOCK, unix.SOCK_STREAM, 0},
		"Bluetooth":                  {unix.AF_BLUETOOTH, unix.SOCK_RAW, 0},
	} {
		_, err := unix.Socket(kind[0], kind[1], kind[2])
		try(name, err)
	}
	parameters := make([]byte, 120) // of io_uring
	_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&parameters[0])), 0)
	if errno == 0 {
		fmt.Println("io_uring")
	}
	tryParent(try)
	tryProxy(&o)
	return 0
}

// connectWith connects a socket of a protocol.
func connectWith(protocol int, connect func(s int) error) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	return connect(s)
}

func sockaddr(address string) unix.Sockaddr {
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil
	}
	return &unix.SockaddrInet4{Port: a.Port, Addr: [4]byte(a.IP.To4())}
}

// tryParent tries to get a network from other processes.
func tryParent(try func(string, error)) {
	for _, id := range []int{os.Getppid(), 1} {
		fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", id), unix.O_RDONLY, 0)
		if err == nil {
			err = unix.Setns(fd, unix.CLONE_NEWNET)
		}
		try("setns", err)
		pidfd, err := unix.PidfdOpen(id, 0)
		if err == nil {
			try("setns by a process", unix.Setns(pidfd, unix.CLONE_NEWNET))
			for fd := range 64 {
				_, err = unix.PidfdGetfd(pidfd, fd, 0)
				try("a file of a process", err)
			}
		}
		try("tracing", unix.PtraceSeize(id))
	}
}

// tryInherited looks for sockets that were left open.
func tryInherited(try func(string, error)) {
	files, _ := os.ReadDir("/proc/self/fd")
	for _, file := range files {
		target, _ := os.Readlink("/proc/self/fd/" + file.Name())
		if strings.HasPrefix(target, "socket:") {
			try("an inherited socket", nil)
		}
	}
}

// tryProxy prints what the proxy lets through.
func tryProxy(o *outside) {
	for what, address := range map[string]string{"proxy to allowed": o.Allowed, "proxy to outside": o.TCP,
		"proxy to a name": "secret.example.com"} {
		through, err := url.Parse(os.Getenv("HTTP_PROXY"))
		if err != nil {
			fmt.Println(err)
			return
		}
		client := http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(through)}}
		res, err := client.Get("http://" + address + "/")
		if err != nil {
			fmt.Println(what, err)
			continue
		}
		text, _ := io.ReadAll(res.Body)
		if string(text) == "allowed" {
			fmt.Println(what)
		}
	}
	c, err := net.Dial("tcp", o.Allowed)
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET / HTTP/1.0\r\n\r\n")
	text, _ := io.ReadAll(c)
	if strings.HasSuffix(string(text), "allowed") {
		fmt.Println("own port")
	}
}

// helper is the command line of the helper.
func helper(t *testing.T) []string {
	t.Helper()
	return append(append([]string{"/usr/bin/env"}, proctest.Env("deferred")...), proctest.Executable())
}

// hostSettings returns settings of a sandbox with hosts.
func hostSettings(t *testing.T, level sandbox.Network, list string) sandbox.Settings {
	t.Helper()
	hosts, err := hostproxy.ParseHosts(list)
	require.NoError(t, err)
	s := sandbox.Settings{Mode: sandbox.Write, Hosts: hosts, Helper: process.NoHelper}
	if level == sandbox.OwnNetwork {
		s.Helper = helper(t)
	}
	if process.NetworkLevel(s.Helper) != level {
		needs.Missing(t, "network namespaces", "the kernel or a container does not allow them")
	}
	return s
}

// bothLevels runs a test with both levels, as the user that we are and as an ordinary one.
func bothLevels(t *testing.T, test func(t *testing.T, level sandbox.Network)) {
	t.Helper()
	proctest.AsOrdinaryUser(t, t.Name())
	for _, level := range []sandbox.Network{sandbox.OwnNetwork, sandbox.ProxyPort} {
		t.Run(string(level), func(t *testing.T) { test(t, level) })
	}
}

// restrict restricts a command that has these roots.
func restrict(
	t *testing.T, c process.Command, s sandbox.Settings, roots ...workspace.Root,
) process.Command {
	t.Helper()
	restricted, err := confine.Command(c, s, roots)
	require.NoError(t, err)
	return restricted
}

// finish runs a command and returns its output.
func finish(t *testing.T, c process.Command, o process.Options) string {
	t.Helper()
	p, err := process.Start(t.Context(), c, o)
	require.NoError(t, err)
	require.NoError(t, p.Stdin().Close())
	out, err := io.ReadAll(p.Stdout())
	require.NoError(t, err)
	require.NoError(t, p.Wait(t.Context()), "%s %s", out, p.Stderr())
	return string(out)
}

// A child with a list of hosts reaches these and nothing else, whatever it tries.
//
// Clause X7.
func TestChildReachesOnlyItsHosts(t *testing.T) {
	bothLevels(t, func(t *testing.T, level sandbox.Network) {
		o := newOutside(t)
		s := hostSettings(t, level, o.Allowed)
		c := o.tried(t)
		c.Env = append(c.Env, "HTTP_PROXY=http://overwritten.invalid")

		finish(t, c, process.Options{})
		require.Contains(t, o.came(t), "UDP", "without a sandbox it comes out")

		// What is left open by whoever started us is no way out.
		left, err := net.Dial("tcp", o.TCP)
		require.NoError(t, err)
		defer left.Close()
		raw, err := left.(*net.TCPConn).SyscallConn()
		require.NoError(t, err)
		require.NoError(t, raw.Control(func(fd uintptr) {
			_, err = unix.FcntlInt(fd, unix.F_SETFD, 0)
		}))
		require.NoError(t, err)
		o.came(t)

		restricted := restrict(t, c, s)
		var refused []string
		var mu sync.Mutex
		out := finish(t, restricted, process.Options{Refused: func(r hostproxy.Refusal) {
			mu.Lock()
			defer mu.Unlock()
			refused = append(refused, r.Target)
		}})
		require.ElementsMatch(t, []string{"proxy to allowed", "own port"}, strings.Split(strings.TrimSpace(out), "\n"))
		require.ElementsMatch(t, []string{o.TCP, "secret.example.com:80"}, refused)
		require.Empty(t, o.came(t))

		s.Ports = hostproxy.Ports{Limited: true, List: []uint16{443}}
		restricted = restrict(t, c, s)
		require.Empty(t, finish(t, restricted, process.Options{}), "neither list has all of it")
		require.Empty(t, o.came(t))
	})
}

// Programs that resolve names by themselves reach no name server.
//
// Clause X7.
func TestChildResolvesNoNames(t *testing.T) {
	bothLevels(t, func(t *testing.T, level sandbox.Network) {
		c := process.Command{Path: "/usr/bin/getent", Args: []string{"hosts", "secret.example.com"},
			Env: []string{"TMPDIR=" + t.TempDir()}}
		c = restrict(t, c, hostSettings(t, level, ""))
		p, err := process.Start(t.Context(), c, process.Options{})
		require.NoError(t, err)
		out, err := io.ReadAll(p.Stdout())
		require.NoError(t, err)
		require.Error(t, p.Wait(t.Context()))
		require.Empty(t, out)
	})
}

// Programs that developers use reach what is in the list, through the proxy, and nothing else.
//
// Clause X7.
func TestToolsUseTheProxy(t *testing.T) {
	address := ""
	all, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() {
			address = ip.IP.String()
		}
	}
	if address == "" { // most programs use no proxy for loopback
		needs.Missing(t, "a network", "this machine has only its loopback")
	}
	asked := make(chan string, 100)
	l, err := net.Listen("tcp", address+":0")
	require.NoError(t, err)
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		http.NotFound(w, r)
	})}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	for tool, args := range map[string][]string{
		"curl": {"-sS", "http://@/curl"}, "git": {"ls-remote", "http://@/git"},
		"npm": {"view", "some-package", "--registry", "http://@/npm/", "--fetch-retries", "0"},
		"go":  {"list", "-m", "-versions", "example.com/m"},
	} {
		for _, level := range []sandbox.Network{sandbox.OwnNetwork, sandbox.ProxyPort} {
			if level == sandbox.ProxyPort && tool != "curl" && !volume.Full() {
				continue // the variables of the proxy are the same
			}
			t.Run(tool+"/"+string(level), func(t *testing.T) {
				program := needs.Programs(t, tool)[0]
				home := t.TempDir()
				run := func(list string) string {
					s := hostSettings(t, level, list)
					c := process.Command{Path: program, Dir: home, Batch: true, Env: []string{"TMPDIR=" + home,
						"GOPROXY=http://" + l.Addr().String() + "/go", "GONOSUMDB=*", "GOFLAGS=-mod=mod",
						"GOMODCACHE=" + home, "GOCACHE=" + home, "npm_config_cache=" + home,
						"GIT_TERMINAL_PROMPT=0"}}
					for _, arg := range args {
						c.Args = append(c.Args, strings.ReplaceAll(arg, "@", l.Addr().String()))
					}
					c = restrict(t, c, s)
					p, err := process.Start(t.Context(), c, process.Options{})
					require.NoError(t, err)
					out, err := io.ReadAll(p.Stdout())
					require.NoError(t, err)
					<-p.Done()
					return string(out)
				}
				out := run("a.example")
				require.Empty(t, asked, out)
				out = run(l.Addr().String())
				require.NotEmpty(t, asked, out)
				for len(asked) > 0 {
					require.Contains(t, <-asked, "/"+tool)
				}
			})
		}
	}
}

// stacks returns what all goroutines do.
func stacks() string {
	text := make([]byte, 1<<20)
	return string(text[:runtime.Stack(text, true)])
}

// Several children at once have networks of their own, and nothing is left when they have ended.
func TestNetworkEndsWithTheChild(t *testing.T) {
	bothLevels(t, func(t *testing.T, level sandbox.Network) {
		o := newOutside(t)
		s := hostSettings(t, level, o.Allowed)
		var all []*process.Process
		for range 3 {
			c := restrict(t, self("echo", "TMPDIR="+t.TempDir()), s)
			p, err := process.Start(t.Context(), c, process.Options{})
			require.NoError(t, err)
			all = append(all, p)
		}
		require.Contains(t, stacks(), "sandbox/hosts")
		for _, p := range all {
			require.NoError(t, p.Stop(t.Context()))
			<-p.Done()
		}
		require.NotContains(t, stacks(), "sandbox/hosts")
	})
}

// A command that cannot be started is told as without a sandbox.
func TestStartErrorsWithHosts(t *testing.T) {
	bothLevels(t, func(t *testing.T, level sandbox.Network) {
		dir := t.TempDir()
		file := filepath.Join(dir, "file")
		require.NoError(t, os.WriteFile(file, []byte("#!/missing/interpreter\n"), 0o700))
		c := restrict(t, process.Command{Path: file, Env: []string{"TMPDIR=" + dir}}, hostSettings(t, level, ""))
		_, err := process.Start(t.Context(), c, process.Options{})
		require.ErrorContains(t, err, "interpreter")
		require.ErrorIs(t, err, os.ErrNotExist)
		require.NotContains(t, stacks(), "sandbox/hosts")
	})
}

// What an editor runs for a restricted agent has the same hosts.
//
// Clauses X5, X7.
func TestDeferredCommandsHaveTheHosts(t *testing.T) {
	bothLevels(t, func(t *testing.T, level sandbox.Network) {
		o := newOutside(t)
		c := restrict(t, o.tried(t), hostSettings(t, level, o.Allowed))
		out, ended := throughEditor(t, c, t.TempDir())
		require.Equal(t, "exit status 0", ended, out)
		require.Contains(t, out, "proxy to allowed\n")
		require.Contains(t, out, "own port\n")
		require.Contains(t, out, "does not allow secret.example.com:80")
		require.Empty(t, o.came(t))

		c.Path, c.Args = "sh", []string{"-c", "echo $0; exit 3"}
		out, ended = throughEditor(t, c, t.TempDir())
		require.Equal(t, "sh\n", out)
		require.Equal(t, "exit status 3", ended)
	})
}

// A list that is empty, given or missing restricts a command in the editor's terminals as it does a
// child of ours.
//
// Clauses X7, X8.
func TestListsReachTheEditorsTerminals(t *testing.T) {
	bothLevels(t, func(t *testing.T, level sandbox.Network) {
		o := newOutside(t)
		at, err := netip.ParseAddrPort(o.TCP)
		require.NoError(t, err)
		s := hostSettings(t, level, o.Allowed)
		for _, hosts := range []hostproxy.Hosts{{Limited: true}, {Limited: true, List: []hostproxy.Host{}},
			s.Hosts, {}} {
			for _, ports := range []hostproxy.Ports{{}, {Limited: true},
				{Limited: true, List: []uint16{}}, {Limited: true, List: []uint16{at.Port()}}} {
				s.Hosts, s.Ports = hosts, ports
				c := restrict(t, o.tried(t), s)
				byEditor, ended := throughEditor(t, c, t.TempDir())
				require.Equal(t, "exit status 0", ended, byEditor)
				for _, out := range []string{finish(t, c, process.Options{}), byEditor} {
					require.Equal(t, !hosts.Limited && ports.Allow(at.Port()),
						strings.Contains(out, "a connection to tcp\n"), "%+v\n%s", s, out)
					require.Equal(t, !hosts.Limited, strings.Contains(out, "UDP\n"), "%+v\n%s", s, out)
				}
			}
		}
	})
}

// Clause X7.
func TestNetworkInEffect(t *testing.T) {
	s := hostSettings(t, sandbox.OwnNetwork, "a.com,*.b.org:8443")
	require.Equal(t, "write; only the hosts a.com, *.b.org:8443, in a network of its own", process.InEffect(s))
	s.Helper = process.NoHelper
	require.Equal(t, "write; only the hosts a.com, *.b.org:8443, but other machines at the port of acp-agent's "+
		"proxy, too", process.InEffect(s))
	s.Hosts = hostproxy.Hosts{Limited: true}
	require.Contains(t, process.InEffect(s), "write; no hosts")
	s.Mode = sandbox.Off
	require.Equal(t, "off", process.InEffect(s))
	_, err := confine.Command(process.Command{Path: "true"}, s, nil)
	require.ErrorContains(t, err, `sandboxHosts needs "sandbox"`)
}

// Without namespaces commands say what they have.
//
// Clause X7.
func TestWithoutNamespaces(t *testing.T) {
	if os.Getenv("TEST_WITHOUT_NAMESPACES") == "" {
		cmd := exec.Command(proctest.Executable(), "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), "TEST_WITHOUT_NAMESPACES=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "--- PASS")
		return
	}
	require.NoError(t, proctest.Deny(unix.SYS_UNSHARE, syscall.EPERM))
	s := sandbox.Settings{Mode: sandbox.Write, Hosts: hostproxy.Hosts{Limited: true}, Helper: []string{"/bin/false"}}
	require.Contains(t, process.InEffect(s), "at the port of acp-agent's proxy")
}

// A child with hosts starts as well after one without hosts, and while more of them start.
//
// Clause X7.
func TestHostsBesideOtherChildren(t *testing.T) {
	bothLevels(t, func(t *testing.T, level sandbox.Network) {
		s := hostSettings(t, level, "example.com")
		c := process.Command{Path: "/bin/echo", Args: []string{"started"},
			Env: []string{"TMPDIR=" + t.TempDir()}}
		with := restrict(t, c, s)
		s.Hosts = hostproxy.Hosts{}
		without := restrict(t, c, s)
		commands := slices.Repeat([]process.Command{without, with}, 20)
		results := make(chan string)
		for _, c := range commands {
			go func() {
				out, err := process.Output(t.Context(), c)
				results <- fmt.Sprint(string(out), err)
			}()
		}
		for range commands {
			require.Equal(t, "started\n<nil>", <-results)
		}
	})
}
