package sandbox

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock and a network namespace do not cover every kind of socket. A filter of system calls does
// the rest. It sees numbers only: not the address to which a process connects.

// filterSockets lets the calling thread make only sockets that the rules of level cover: not those
// to the host of a virtual machine, which belong to no namespace, and at level Ports only TCP. It
// cannot use io_uring then, which no filter sees, or run programs for another architecture.
func filterSockets(level Network) error {
	arch, known := auditArchitectures()[runtime.GOARCH]
	if !known {
		return nil
	}
	p := socketFilter(arch, level)
	filter := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0,
		uintptr(unsafe.Pointer(&filter)))
	if errno != 0 {
		return fmt.Errorf("the filter of sockets is refused: %w", errno)
	}
	return nil
}

// auditArchitectures returns what the kernel calls the architectures of Go.
func auditArchitectures() map[string]uint32 {
	return map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}
}

// program is a filter of system calls.
type program []unix.SockFilter

// Answers of a filter.
const (
	allowed      uint32 = unix.SECCOMP_RET_ALLOW
	missingCall         = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	wrongFamily         = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
	notPermitted        = unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)
)

// socketFilter returns the filter for an architecture.
func socketFilter(arch uint32, level Network) program {
	const archOffset, x32 = 4, 0x40000000
	p := program{load(archOffset), jump(unix.BPF_JEQ, arch, 1, 0), answer(missingCall),
		load(callOffset), jump(unix.BPF_JGE, x32, 0, 1), answer(missingCall)}
	for _, call := range []uint32{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER,
		unix.SYS_IO_URING_REGISTER} {
		p = p.on(call, program{answer(missingCall)})
	}
	if level == Namespace {
		return append(p.on(unix.SYS_SOCKET, anyInternet()), answer(allowed))
	}
	p = p.on(unix.SYS_SOCKET, onlyTCP())
	// Data that is sent along with the request for a connection passes by Landlock.
	p = p.on(unix.SYS_SENDTO, withoutFastOpen(3))
	p = p.on(unix.SYS_SENDMSG, withoutFastOpen(2))
	p = p.on(unix.SYS_SENDMMSG, withoutFastOpen(3))
	return append(p, answer(allowed))
}

// anyInternet decides about a call of socket at level Namespace.
func anyInternet() program {
	p := program{load(argument(0))}
	for _, family := range []uint32{unix.AF_UNIX, unix.AF_NETLINK, unix.AF_INET, unix.AF_INET6} {
		p = append(p, jump(unix.BPF_JEQ, family, 0, 1), answer(allowed))
	}
	return append(p, answer(wrongFamily))
}

// onlyTCP decides about a call of socket at level Ports.
func onlyTCP() program {
	const typeMask = 0xf // the rest are flags
	return program{
		load(argument(0)),
		jump(unix.BPF_JEQ, unix.AF_UNIX, 0, 1), answer(allowed),
		jump(unix.BPF_JEQ, unix.AF_NETLINK, 0, 1), answer(allowed),
		jump(unix.BPF_JEQ, unix.AF_INET, 2, 0), jump(unix.BPF_JEQ, unix.AF_INET6, 1, 0),
		answer(wrongFamily),
		load(argument(1)), {Code: unix.BPF_ALU | unix.BPF_AND, K: typeMask},
		jump(unix.BPF_JEQ, unix.SOCK_STREAM, 1, 0), answer(notPermitted),
		load(argument(2)),
		jump(unix.BPF_JEQ, 0, 1, 0), jump(unix.BPF_JEQ, unix.IPPROTO_TCP, 0, 1), answer(allowed),
		answer(notPermitted),
	}
}

// withoutFastOpen decides about a call that sends, whose flags are an argument.
func withoutFastOpen(flags uint32) program {
	return program{load(argument(flags)), jump(unix.BPF_JSET, unix.MSG_FASTOPEN, 0, 1),
		answer(notPermitted)}
}

// on adds what decides about a system call.
func (p program) on(call uint32, body program) program {
	p = append(p, load(callOffset), jump(unix.BPF_JEQ, call, 0, uint8(len(body))))
	return append(p, body...)
}

// callOffset is where the number of the call is in its description.
const callOffset = 0

// argument returns where the lower half of an argument is in the description of a call.
func argument(n uint32) uint32 { return 16 + 8*n }

// load loads the number at an offset of the description of a call.
func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// jump skips instructions depending on how the loaded number compares to k.
func jump(comparison uint16, k uint32, ifTrue, ifFalse uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | comparison | unix.BPF_K, K: k, Jt: ifTrue, Jf: ifFalse}
}

// answer ends the filter.
func answer(action uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
}
