package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// enter moves the calling thread to a new network, unless it is there, opens the sockets of o, and
// hands them to listening. A failure that is due to the system is [ErrUnavailable].
func (o *Outlet) enter(listening func([]*os.File) error) error {
	if o == nil || o.Level != OwnNetwork {
		return nil
	}
	if !o.Entered {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return unavailable("no network namespace can be made: %w", err)
		}
	}
	if err := raiseLoopback(); err != nil {
		return unavailable("the loopback of a network namespace cannot be used: %w", err)
	}
	var files []*os.File
	for _, port := range o.Ports {
		v4, err := listen(unix.AF_INET,
			&unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}})
		if err != nil {
			return unavailable("nothing can listen in a network namespace: %w", err)
		}
		files = append(files, v4)
		v6, err := listen(unix.AF_INET6,
			&unix.SockaddrInet6{Port: int(port), Addr: [16]byte{15: 1}})
		if err == nil { // IPv6 is not turned off
			files = append(files, v6)
		}
	}
	err := listening(files)
	// A process that has entered kept a capability for this, as its user does not have it.
	return errors.Join(err, unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
}

// separate gives the calling thread shared memory, queues and semaphores, if the system
// lets it, as it does root and at level OwnNetwork, and reports whether it did. Where it may mount,
// there are also no terminals of others, and the directories p.Hidden are empty. If what is granted
// contains a directory to keep, the process does not start where it may not.
func (p Policy) separate() (bool, error) {
	kept := p.kept()
	if p.Outlet == nil || !p.Outlet.Entered {
		err := unix.Unshare(unix.CLONE_NEWIPC | unix.CLONE_NEWNS)
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EINVAL) {
			return false, keepError(kept, err)
		}
		if err != nil {
			return false, setupError(fmt.Errorf("no namespaces can be made: %w", err))
		}
	}
	err := p.hideFiles() // some containers, and a change of root, allow no mounts
	for _, dir := range kept {
		if err == nil {
			err = keepFiles(dir)
		}
	}
	if err != nil && len(kept) > 0 {
		return false, keepError(kept, err)
	}
	return true, leaveHidden()
}

// keepError says that directories cannot be kept, or nil.
func keepError(dirs []string, err error) error {
	if len(dirs) == 0 {
		return nil
	}
	return unavailable("%s is read-only, but lies in a folder that the program may change, and "+
		"only root, or sandboxHosts, can separate the two here: %w", dirs[0], err)
}

// keepFiles mounts a directory over itself, with all that is mounted in it, so that it can only be
// read.
func keepFiles(dir string) error {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, dir, &how)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	tree, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|
		unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE,
		&unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	if err != nil {
		return err
	}
	return unix.MoveMount(tree, "", fd, "",
		unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// leaveHidden leaves the working directory if something was mounted over it: it would still lead
// below the mount. Only the working directory of the calling thread changes, because the mounts are
// those of this thread, or of a helper's process.
func leaveHidden() error {
	dir, err := unix.Getwd()
	if err == nil {
		err = unix.Chdir(dir)
	}
	if err != nil {
		err = unix.Chdir("/")
	}
	return err
}

// hideFiles mounts new directories over those with other terminals and over p.Hidden.
func (p Policy) hideFiles() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return err
	}
	err := mountOver("/dev/pts", "devpts", 0, "newinstance,mode=0620,ptmxmode=0666")
	for _, dir := range p.Hidden {
		if err == nil {
			err = mountOver(dir, "tmpfs", unix.MS_RDONLY, "mode=0")
		}
	}
	return err
}

// mountOver mounts a new file system over a directory. It does nothing if the directory is missing
// or a link.
func mountOver(dir, kind string, flags uintptr, data string) error {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, dir, &how)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	flags |= unix.MS_NOSUID | unix.MS_NOEXEC
	return unix.Mount(kind, "/proc/self/fd/"+strconv.Itoa(fd), kind, flags, data)
}

// raiseLoopback enables the loopback of the calling thread's network.
func raiseLoopback() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, request)
}

// listen returns a socket of the calling thread's network that listens at an address.
func listen(family int, address unix.Sockaddr) (*os.File, error) {
	s, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	err = unix.Bind(s, address)
	if err == nil {
		err = unix.Listen(s, unix.SOMAXCONN)
	}
	if err != nil {
		_ = unix.Close(s)
		return nil, err
	}
	return os.NewFile(uintptr(s), "listener "+strconv.Itoa(s)), nil
}
