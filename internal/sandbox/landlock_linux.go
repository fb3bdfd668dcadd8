package sandbox

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
)

// Landlock, the mechanism of the Linux kernel, needs no program and no rights. A thread restricts
// itself, and what it starts inherits that.

// available returns nil if processes can be restricted as p says, and otherwise an [ErrUnavailable]
// that explains why not. It restricts a thread that ends at once, because some containers allow
// only a part of it.
func (p Policy) available() error {
	p = Policy{Mode: Write, Ports: p.Ports, Outlet: p.Outlet}
	return p.run(Launch{}, func(Launch) error { return nil })
}

// run calls start on a thread that is restricted as p says, and that ends soon after start has
// returned. From then on our process cannot be traced or dumped by others.
func (p Policy) run(l Launch, start func(Launch) error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The main thread never ends. As long as it is held, another one runs start.
			err := p.run(l, start)
			runtime.UnlockOSThread()
			done <- err
			return
		}
		// The thread is never unlocked, and ends with this goroutine.
		err := p.Outlet.enter(l.Listening)
		separate := false
		if err == nil {
			separate, err = p.separate()
		}
		if err == nil {
			err = p.restrict()
		}
		if err == nil {
			err = p.filterCalls(separate)
		}
		if err == nil {
			err = start(l)
		}
		done <- err
	}()
	return <-done
}

// Versions of Landlock, named by what they introduced.
const (
	withTruncate = 3 // Linux 6.2, the first that can keep all contents of files
	withPorts    = 4 // Linux 6.7
	withIoctl    = 5 // Linux 6.10
	withScopes   = 6 // Linux 6.12
	withSockets  = 9 // Linux 7.1: Unix sockets in the file system
	withUDP      = 10
)

// Rights to files. A right that a ruleset handles and none of its rules grants is denied.
const (
	reading uint64 = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_READ_DIR
	writing uint64 = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_REFER
	// never granted: whoever can make a device reaches every disk as root
	makingDevices uint64 = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	controlling   uint64 = unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// connecting to a Unix socket of another process, outside the sandbox
	reachingSockets uint64 = unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	// ofFiles are those rights that exist for something other than a directory.
	ofFiles uint64 = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | controlling |
		reachingSockets
)

// landlockVersion returns the version of Landlock.
func landlockVersion() (version int, err error) {
	if interfaces()[runtime.GOARCH] == nil {
		return 0, unavailable("acp-agent has none for Linux on %s", runtime.GOARCH)
	}
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0,
		unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch {
	case errno == unix.ENOSYS:
		return 0, unavailable("this Linux kernel has no Landlock, "+
			"or a container does not allow it: %w", errno)
	case errno == unix.EOPNOTSUPP:
		return 0, unavailable("Landlock is disabled; "+
			"the kernel parameter lsm must name landlock: %w", errno)
	case errno != 0:
		return 0, unavailable("this container or sandbox does not allow Landlock: %w", errno)
	case v < withTruncate:
		return 0, tooOld(int(v), withTruncate, "6.2")
	}
	return int(v), nil
}

func tooOld(version, needed int, linux string) error {
	return unavailable("this Linux kernel has version %d of Landlock; version %d is needed, "+
		"which comes with Linux %s", version, needed, linux)
}

// restrict restricts the calling thread permanently.
func (p Policy) restrict() error {
	version, err := landlockVersion()
	if err != nil {
		return err
	}
	attributes, err := p.landlockAttributes(version)
	if err != nil {
		return err
	}
	if version >= withScopes && signalsOwnThreads() {
		attributes.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET,
		uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes), 0)
	if errno != 0 {
		return setupError(errno)
	}
	rules := ruleset{int(fd), attributes.Handled_access_fs}
	defer unix.Close(rules.fd)
	if err := rules.allow(p); err != nil {
		return setupError(err)
	}
	if err := protectThread(p.lostCapabilities()); err != nil {
		return setupError(err)
	}
	_, _, errno = unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(rules.fd), 0, 0)
	switch {
	case errno == unix.E2BIG:
		return setupError(fmt.Errorf("too many are nested: %w", errno))
	case errno == unix.EPERM || errno == unix.ENOSYS:
		return unavailable("this container or sandbox does not allow Landlock: %w", errno)
	case errno != 0:
		return setupError(errno)
	}
	return nil
}

// landlockAttributes returns what a version of Landlock can deny and p does not grant everywhere.
func (p Policy) landlockAttributes(version int) (a unix.LandlockRulesetAttr, err error) {
	a.Handled_access_fs = writing | makingDevices
	if version >= withIoctl {
		a.Handled_access_fs |= controlling
	}
	if p.Mode == Strict {
		a.Handled_access_fs |= reading
	}
	if p.connectsTo().Limited {
		if version < withPorts {
			return a, tooOld(version, withPorts, "6.7, to restrict TCP ports")
		}
		a.Handled_access_net = unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if p.Outlet != nil && version >= withSockets {
		a.Handled_access_fs |= reachingSockets
	}
	if p.Outlet != nil && p.Outlet.Level == ProxyPort && version >= withUDP {
		a.Handled_access_net |= unix.LANDLOCK_ACCESS_NET_CONNECT_SEND_UDP
	}
	return a, nil
}

// connectsTo returns the TCP ports to which Landlock lets the process connect.
func (p Policy) connectsTo() hosts.Ports {
	switch {
	case p.Outlet == nil:
		return p.Ports
	case p.Outlet.Level == OwnNetwork:
		return hosts.Ports{} // its own loopback is all that there is
	}
	return hosts.Ports{Limited: true, List: p.Outlet.Ports}
}

// signalsOwnThreads reports whether a thread whose signals are restricted can still send them to
// other threads of the same process, as Go does to interrupt goroutines. Early kernels with this
// restriction have an error there.
func signalsOwnThreads() bool {
	const fixed = 1 << (2 - 1) // erratum 2
	errata, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0,
		unix.LANDLOCK_CREATE_RULESET_ERRATA)
	return errno == 0 && errata&fixed != 0
}

// protectThread prepares the calling thread for being restricted.
//
// The kernel lets a restricted process trace others with the same restrictions. Until this thread
// ends, it has the same restrictions as the child and shares memory with the rest of our process.
// So our process is marked as one that only a process with CAP_SYS_PTRACE can trace, which the
// child does not have.
func protectThread(lost []uintptr) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	// What started us may have left us files and sockets that we do not know of.
	if err := unix.CloseRange(firstFile, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return err
	}
	for _, capability := range lost {
		// This fails for an ordinary user, who has no capabilities anyway.
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if err != nil && !errors.Is(err, unix.EPERM) {
			return err
		}
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// firstFile is the first descriptor after the standard streams.
const firstFile = 3

// lostCapabilities returns the capabilities that a restricted process loses, even as root: trace
// processes, type into the terminals of others (part of CAP_SYS_ADMIN), change what keys type, the
// clock, the logs, the network or the kernel, reach disks and memory without a file, and open files
// by handle, which nothing hides. With a list of hosts it also loses raw sockets.
func (p Policy) lostCapabilities() []uintptr {
	lost := []uintptr{unix.CAP_SYS_PTRACE, unix.CAP_SYS_ADMIN, unix.CAP_SYS_MODULE,
		unix.CAP_SYS_RAWIO, unix.CAP_SYS_BOOT, unix.CAP_MKNOD, unix.CAP_PERFMON, unix.CAP_BPF,
		unix.CAP_SYS_TTY_CONFIG, unix.CAP_SYS_TIME, unix.CAP_SYS_PACCT, unix.CAP_SYSLOG,
		unix.CAP_AUDIT_CONTROL, unix.CAP_DAC_READ_SEARCH, unix.CAP_NET_ADMIN}
	if p.Outlet != nil {
		lost = append(lost, unix.CAP_NET_RAW)
	}
	return lost
}

// ruleset says what a thread will be allowed to do with files and ports.
type ruleset struct {
	fd      int
	handled uint64
}

// allow allows what p says.
func (r ruleset) allow(p Policy) error {
	for _, path := range p.Write {
		err := r.allowPath(path, reading|writing|reachingSockets, unix.RESOLVE_NO_SYMLINKS)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	for _, port := range p.connectsTo().List {
		if err := r.allowPort(port); err != nil {
			return fmt.Errorf("port %d: %w", port, err)
		}
	}
	add := func(paths []string, rights, resolve uint64) error {
		for _, path := range paths {
			err := r.allowPath(path, rights, resolve)
			if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EACCES) &&
				!errors.Is(err, unix.ELOOP) {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		return nil
	}
	if err := add(devices(), reading|writing|controlling, 0); err != nil {
		return err
	}
	if p.Mode != Strict {
		return nil
	}
	return errors.Join(add(systemPaths(), reading, 0),
		add(p.Read, reading, unix.RESOLVE_NO_SYMLINKS))
}

// allowPath allows rights to the file or directory that is at path now, and to everything in it. If
// something else takes its place, no rights apply to that.
func (r ruleset) allowPath(path string, rights, resolve uint64) error {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve}
	file, err := unix.Openat2(unix.AT_FDCWD, path, &how)
	if err != nil {
		return err
	}
	defer unix.Close(file)
	var stat unix.Stat_t
	if err := unix.Fstat(file, &stat); err != nil {
		return err
	}
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
	case unix.S_IFCHR:
		rights = rights&ofFiles | controlling
	default:
		rights &= ofFiles
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights & r.handled, Parent_fd: int32(file)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd),
		unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// allowPort allows connections to a TCP port.
func (r ruleset) allowPort(port uint16) error {
	const kind = 2 // LANDLOCK_RULE_NET_PORT
	rule := struct{ access, port uint64 }{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, uint64(port)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), kind,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// devices returns what every process may write to, as far as it exists. Without the right to
// control pseudo-terminals, shells that agents start fail silently.
func devices() []string {
	return []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/pts",
		"/dev/shm"}
}

// systemPaths returns what every process may read in mode Strict. /proc does not show more of
// processes outside the sandbox than their names, arguments and use of resources: the kernel keeps
// a restricted process from examining others.
func systemPaths() []string {
	return []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/opt", "/etc",
		"/nix/store", "/gnu/store", "/snap", "/proc", "/sys", "/run/systemd/resolve",
		"/run/current-system", "/var/lib/ca-certificates", "/dev/random", "/dev/urandom"}
}
