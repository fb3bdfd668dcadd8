package sandbox

import (
	"fmt"
	"math"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock and namespaces do not cover everything. A filter of system calls does the rest. It sees
// numbers only: not the address to which a process connects.

// filterCalls keeps the calling thread from typing into its terminal, making subvolumes, limiting
// other processes and using the kernel's keyrings. If p is strict and ownObjects is not set, it
// also keeps it from shared memory, queues and semaphores that are not files.
//
// With a list of hosts the thread makes only sockets that the rules of its level cover: not those
// to the host of a virtual machine, which belong to no namespace, and at level ProxyPort only TCP.
// It cannot use io_uring then, which no filter sees, or run programs for another architecture.
func (p Policy) filterCalls(ownObjects bool) error {
	f := p.callFilter(interfaces()[runtime.GOARCH], ownObjects)
	filter := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0,
		uintptr(unsafe.Pointer(&filter)))
	switch {
	case errno == unix.ENOSYS || errno == unix.EINVAL || errno == unix.EPERM:
		return unavailable("this Linux kernel or container allows no filter of system calls: %w",
			errno)
	case errno != 0:
		return setupError(fmt.Errorf("the filter of system calls is refused: %w", errno))
	}
	return nil
}

// callInterface is a set of system calls of the kernel.
type callInterface struct {
	name    uint32 // what the kernel calls it
	ioctl   uint32
	limit   uint32 // prlimit
	keys    span   // of the kernel's keyrings
	objects []span // of shared memory, queues and semaphores
}

// span are the numbers of calls that follow each other.
type span struct{ first, last uint32 }

// interfaces returns the interfaces that a kernel for an architecture of Go can have. The first one
// is its own, the others are for 32-bit programs.
func interfaces() map[string][]callInterface {
	generic := callInterface{unix.AUDIT_ARCH_AARCH64, 29, 261, span{217, 219},
		[]span{{180, 181}, {186, 197}}}
	riscv, loong := generic, generic
	riscv.name, loong.name = unix.AUDIT_ARCH_RISCV64, unix.AUDIT_ARCH_LOONGARCH64
	return map[string][]callInterface{
		"amd64": {
			{unix.AUDIT_ARCH_X86_64, 16, 302, span{248, 250},
				[]span{{29, 31}, {64, 71}, {220, 220}, {240, 241}}},
			{unix.AUDIT_ARCH_I386, 54, 340, span{286, 288},
				[]span{{117, 117}, {277, 278}, {393, 402}, {420, 420}}},
		},
		"arm64": {
			generic,
			{unix.AUDIT_ARCH_ARM, 54, 369, span{309, 311},
				[]span{{274, 275}, {298, 308}, {312, 312}, {420, 420}}},
		},
		"loong64": {loong},
		"riscv64": {riscv},
	}
}

// program is a filter of system calls.
type program []unix.SockFilter

// Answers of a filter.
const (
	allowed      uint32 = unix.SECCOMP_RET_ALLOW
	missingCall         = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	wrongFamily         = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
	notPermitted        = unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)
	notAllowed          = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
)

// callFilter returns the filter of p for a kernel with these interfaces. Other ones are missing.
func (p Policy) callFilter(known []callInterface, ownObjects bool) (f program) {
	const nameOffset, x32 = 4, 0x40000000
	for i, c := range known {
		hidden := []span{c.keys, {x32, math.MaxUint32}}
		if p.Mode == Strict && !ownObjects {
			hidden = append(hidden, c.objects...)
		}
		if p.Outlet != nil {
			if i > 0 {
				break // the calls for sockets have other numbers
			}
			hidden = append(hidden, span{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_REGISTER})
		}
		body := program{}.on(c.ioctl, withoutBypasses()).on(c.limit, onlyItself())
		for _, calls := range hidden {
			body = body.within(calls, program{answer(missingCall)})
		}
		if p.Outlet != nil {
			body = body.withSockets(p.Outlet.Level)
		}
		body = append(body, answer(allowed))
		f = append(f, load(nameOffset), jump(unix.BPF_JEQ, c.name, 0, uint8(len(body))))
		f = append(f, body...)
	}
	return append(f, answer(missingCall))
}

// withoutBypasses decides about a call of ioctl. Two requests type into a terminal. The others make
// and remove subvolumes of btrfs, with content, wherever a directory can be read.
func withoutBypasses() program {
	const btrfs = 0x50009400
	p := program{load(argument(1))}
	for _, request := range []uint32{unix.TIOCSTI, unix.TIOCLINUX,
		btrfs | 1, btrfs | 14, btrfs | 15, btrfs | 23, btrfs | 24, btrfs | 63} {
		p = append(p, jump(unix.BPF_JEQ, request, 0, 1), answer(notAllowed))
	}
	return p
}

// onlyItself decides about a call of prlimit. A limit of time would end another process. Who reads
// its limits gives no new one.
func onlyItself() program {
	const upperHalf = 4
	return program{load(argument(0)), jump(unix.BPF_JEQ, 0, 5, 0),
		load(argument(2)), jump(unix.BPF_JEQ, 0, 0, 2),
		load(argument(2) + upperHalf), jump(unix.BPF_JEQ, 0, 1, 0), answer(notAllowed)}
}

// withSockets adds what decides about sockets at a level.
func (p program) withSockets(level Network) program {
	if level == OwnNetwork {
		return p.on(unix.SYS_SOCKET, anyInternet())
	}
	p = p.on(unix.SYS_SOCKET, onlyTCP())
	// Data that is sent along with the request for a connection passes by Landlock.
	p = p.on(unix.SYS_SENDTO, withoutFastOpen(3))
	p = p.on(unix.SYS_SENDMSG, withoutFastOpen(2))
	return p.on(unix.SYS_SENDMMSG, withoutFastOpen(3))
}

// anyInternet decides about a call of socket at level OwnNetwork.
func anyInternet() program {
	p := program{load(argument(0))}
	for _, family := range []uint32{unix.AF_UNIX, unix.AF_NETLINK, unix.AF_INET, unix.AF_INET6} {
		p = append(p, jump(unix.BPF_JEQ, family, 0, 1), answer(allowed))
	}
	return append(p, answer(wrongFamily))
}

// onlyTCP decides about a call of socket at level ProxyPort.
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
func (p program) on(call uint32, body program) program { return p.within(span{call, call}, body) }

// within adds what decides about several system calls.
func (p program) within(calls span, body program) program {
	p = append(p, load(callOffset), jump(unix.BPF_JGE, calls.first, 0, uint8(len(body))+1),
		jump(unix.BPF_JGT, calls.last, uint8(len(body)), 0))
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
	return unix.SockFilter{Code: unix.BPF_JMP | comparison | unix.BPF_K, K: k, Jt: ifTrue,
		Jf: ifFalse}
}

// answer ends the filter.
func answer(action uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
}
