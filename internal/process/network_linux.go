package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
)

// Only root can give a thread its own network. For others the kernel wants a process with a
// single thread, which a Go program is not, or a new process in a user namespace. So the child of
// an ordinary user begins as our own program there, the helper. It gets the command from us over a
// socket, makes the sockets of the proxy, passes them back, restricts itself, and becomes the
// command.

// helperDescriptor is the socket of a helper.
const helperDescriptor = 3

// namespaces caches what the kernel permits, by the command line of the helper. The level that a
// session was told must not change because a child has used up the user's namespaces.
var namespaces sync.Map

// namespaceState says how commands get a network namespace.
type namespaceState int

const (
	unavailable namespaceState = iota
	byHelper
	direct // from our own process
)

func stateOfNamespaces(helper []string) namespaceState {
	key := strings.Join(helper, "\x00")
	if known, ok := namespaces.Load(key); ok {
		return known.(namespaceState)
	}
	state := unavailable
	switch {
	case inNamespace(func(sandbox.Launch) error { return nil }) == nil:
		state = direct
	case len(helper) > 0 && probeHelper(helper) == nil:
		state = byHelper
	}
	known, _ := namespaces.LoadOrStore(key, state)
	return known.(namespaceState)
}

// networkLevel returns how a list of hosts is enforced on commands.
func networkLevel(helper []string) sandbox.Network {
	if stateOfNamespaces(helper) == unavailable {
		return sandbox.ProxyPort
	}
	return sandbox.OwnNetwork
}

// inNamespace calls start on a thread in a network namespace.
func inNamespace(start func(sandbox.Launch) error) error {
	p := sandbox.Policy{Mode: sandbox.Write, Outlet: &sandbox.Outlet{Level: sandbox.OwnNetwork}}
	return p.Run(sandbox.Launch{Listening: func([]*os.File) error { return nil }}, start)
}

// probeHelper starts a helper without a command.
func probeHelper(helper []string) error {
	n := &network{outlet: sandbox.Outlet{Level: sandbox.OwnNetwork}}
	cmd := &exec.Cmd{}
	if err := n.startHelper(cmd, sandbox.Policy{Mode: sandbox.Write, Helper: helper}); err != nil {
		return err
	}
	return cmd.Wait()
}

// launch starts cmd as p says.
func (n *network) launch(cmd *exec.Cmd, p sandbox.Policy) error {
	if n.outlet.Level != sandbox.OwnNetwork || stateOfNamespaces(p.Helper) == direct {
		return n.launchHere(cmd, p)
	}
	if _, err := ownProgram(p.Helper[0], p); err != nil {
		return err
	}
	return n.startHelper(cmd, p)
}

// order says what a helper becomes: a command, or nothing if Path is empty.
type order struct {
	Policy      sandbox.Policy
	Path        string
	Args        []string // beginning with the name of the command
	Env         []string // all of it
	User, Group int      // those of our process
}

// startHelper starts cmd through a helper. It returns when the helper has become the command.
func (n *network) startHelper(cmd *exec.Cmd, p sandbox.Policy) error {
	restriction := p
	restriction.Hosts, restriction.Helper = hosts.Hosts{}, nil
	outlet := n.outlet
	outlet.Entered = true
	restriction.Outlet = &outlet
	o := order{Policy: restriction, Path: cmd.Path, Args: cmd.Args, Env: cmd.Environ(),
		User: os.Getuid(), Group: os.Getgid()}
	ours, theirs, err := socketPair()
	if err != nil {
		return err
	}
	defer ours.Close()
	cmd.Path, cmd.Args = p.Helper[0], p.Helper
	cmd.Env = []string{deferredVariable + "=" + helperValue} // the command's could change our start
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = inUserNamespace(cmd.SysProcAttr)
	err = cmd.Start()
	_ = theirs.Close()
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EACCES) {
		err = fmt.Errorf("%w: no user namespace can be made: %w", sandbox.ErrUnavailable, err)
	}
	if err != nil {
		return err
	}
	if err := n.instruct(ours, o); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return err
	}
	return nil
}

// inUserNamespace adds namespaces to the attributes of a process. It may only prepare its network
// and its mounts, and must call keepUser: ours cannot do it, because sandbox.Policy.Run makes it
// one about which only root can say anything.
func inUserNamespace(given *syscall.SysProcAttr) *syscall.SysProcAttr {
	a := syscall.SysProcAttr{}
	if given != nil {
		a = *given
	}
	a.Cloneflags |= unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWIPC
	a.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN}
	return &a
}

// keepUser lets our process, which is in a new user namespace, keep its user and group there.
func (o order) keepUser() error {
	for _, file := range []struct{ name, content string }{
		{"uid_map", fmt.Sprintf("%d %[1]d 1", o.User)},
		{"setgroups", "deny"},
		{"gid_map", fmt.Sprintf("%d %[1]d 1", o.Group)},
	} {
		if err := os.WriteFile("/proc/self/"+file.name, []byte(file.content), 0); err != nil {
			return fmt.Errorf("%w: no user namespace can be used: %w", sandbox.ErrUnavailable, err)
		}
	}
	return nil
}

// socketPair returns a connection and a descriptor of its other end.
func socketPair() (*net.UnixConn, *os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	theirs := os.NewFile(uintptr(pair[1]), "helper")
	ours, err := unixConn(pair[0])
	if err != nil {
		_ = theirs.Close()
	}
	return ours, theirs, err
}

// unixConn returns the connection of a descriptor, which it closes.
func unixConn(fd int) (*net.UnixConn, error) {
	file := os.NewFile(uintptr(fd), "helper")
	defer file.Close()
	c, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("not a Unix socket"), c.Close())
	}
	return u, nil
}

// instruct sends o to a helper, and serves the sockets that it passes back.
func (n *network) instruct(helper *net.UnixConn, o order) error {
	sent := json.NewEncoder(helper).Encode(o)
	if err := errors.Join(sent, helper.CloseWrite()); err != nil {
		return fmt.Errorf("%w: the helper has ended", sandbox.ErrSetup)
	}
	message := make([]byte, len(listening))
	control := make([]byte, unix.CmsgSpace(4*2*(1+maxLocals)))
	count, controls, _, _, err := helper.ReadMsgUnix(message, control)
	if err != nil {
		return fmt.Errorf("%w: the helper has ended", sandbox.ErrSetup)
	}
	message = message[:count]
	if string(message) == listening {
		files, err := receivedFiles(control[:controls])
		if err == nil {
			err = n.serve(files)
		}
		if err != nil {
			return err
		}
		message = nil
	}
	rest, err := io.ReadAll(helper) // ends when the helper becomes the command
	if message = append(message, rest...); err != nil || len(message) == 0 {
		return err
	}
	var f failure
	if err := json.Unmarshal(message, &f); err != nil {
		return fmt.Errorf("%w: the helper says %q", sandbox.ErrSetup, message)
	}
	return f.err(o.Path)
}

// listening is the message of a helper with its sockets.
const listening = "L"

// sendFiles is the Listening of a helper.
func sendFiles(parent *net.UnixConn, files []*os.File) error {
	var descriptors []int
	for _, file := range files {
		descriptors = append(descriptors, int(file.Fd()))
	}
	_, _, err := parent.WriteMsgUnix([]byte(listening), unix.UnixRights(descriptors...), nil)
	return err
}

// receivedFiles returns the files of [sendFiles].
func receivedFiles(control []byte) (files []*os.File, err error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		descriptors, err := unix.ParseUnixRights(&m)
		if err != nil {
			return nil, err
		}
		for _, fd := range descriptors {
			files = append(files, os.NewFile(uintptr(fd), "listener"))
		}
	}
	return files, nil
}

// failure is why a helper did not become the command.
type failure struct {
	Text        string
	Errno       syscall.Errno // of starting the command, if that failed
	Unavailable bool          // the namespace
}

func (f failure) err(path string) error {
	switch {
	case f.Errno != 0:
		return &fs.PathError{Op: "fork/exec", Path: path, Err: f.Errno}
	case f.Unavailable:
		return fmt.Errorf("%w: %s", sandbox.ErrUnavailable, f.Text)
	}
	return fmt.Errorf("%w: %s", sandbox.ErrSetup, f.Text)
}

// runHelper is the helper. It returns only if it does not become the command.
func runHelper() error {
	parent, err := unixConn(helperDescriptor)
	if err != nil {
		return err
	}
	defer parent.Close()
	var o order
	if err := json.NewDecoder(parent).Decode(&o); err != nil {
		return err
	}
	if o.Policy.Mode == sandbox.Off || o.Policy.Outlet == nil {
		return errors.New("the command of a helper has no restriction")
	}
	var f failure
	if err = o.keepUser(); err == nil {
		launch := sandbox.Launch{Path: o.Path, Args: o.Args,
			Listening: func(files []*os.File) error { return sendFiles(parent, files) }}
		err = o.Policy.Run(launch, func(l sandbox.Launch) error {
			if o.Path == "" {
				return nil // it was only to try
			}
			err := syscall.Exec(l.Path, l.Args, o.Env)
			_ = errors.As(err, &f.Errno)
			return err
		})
	}
	if err != nil {
		f.Text, f.Unavailable = err.Error(), errors.Is(err, sandbox.ErrUnavailable)
		_ = json.NewEncoder(parent).Encode(f)
		// The parent knows already.
		return &ExitError{Name: "the helper", Code: 1, Status: 1, State: "exit status 1"}
	}
	return nil
}
