package dirfd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// aclAttribute is the extended attribute that holds a file's access control list.
const aclAttribute = "system.posix_acl_access"

// notCopied are attributes that vouch for the content of a file, which changes.
var notCopied = map[string]bool{
	"security.capability": true, "security.evm": true, "security.ima": true,
}

// copyAttributes gives f the extended attributes of old, and its access control list. Without a
// list, f gets the permissions. lost is what f could not get so far: in another group the list is
// dropped, because it would mean something else.
func copyAttributes(f, old *os.File, lost Losses, perm fs.FileMode) (Losses, error) {
	missed, err := copyOthers(f, old)
	if err != nil {
		return 0, err
	}
	list, err := attribute(old, aclAttribute)
	switch {
	case err != nil: // it is unknown what the group's permissions mean
		return missed | LosesACL, errors.Join(dropACL(f), setMode(f, perm&0o700))
	case list == nil:
		return missed, errors.Join(dropACL(f), setMode(f, perm))
	}
	if lost&LosesGroup == 0 && setAttribute(f, aclAttribute, list) == nil {
		return missed, nil
	}
	perm = perm&0o700 | 0o011*leastOf(list)
	return missed | LosesACL, errors.Join(dropACL(f), setMode(f, perm))
}

// copyOthers gives f the attributes of old but the access control list.
func copyOthers(f, old *os.File) (missed Losses, err error) {
	names, err := attributes(old)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		if name == aclAttribute || notCopied[name] {
			continue
		}
		value, err := attribute(old, name)
		if err == nil && value == nil {
			continue // it has been removed
		}
		if has, hasErr := attribute(f, name); err == nil && hasErr == nil && has != nil &&
			bytes.Equal(has, value) {
			continue
		}
		if err != nil || setAttribute(f, name, value) != nil {
			missed = LosesAttributes
		}
	}
	return missed, nil
}

// dropACL removes the access control list that f may have got from its directory.
func dropACL(f *os.File) error {
	err := onDescriptor(f, func(fd int) error { return unix.Fremovexattr(fd, aclAttribute) })
	if isNone(err) {
		return nil
	}
	return err
}

// isNone reports whether err means that a file has no such attribute, or cannot have any.
func isNone(err error) bool {
	return errors.Is(err, unix.ENODATA) || errors.Is(err, unix.EOPNOTSUPP)
}

// attributes returns the names of a file's extended attributes.
func attributes(f *os.File) ([]string, error) {
	list, err := growing(f, func(fd int, buf []byte) (int, error) {
		return unix.Flistxattr(fd, buf)
	})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00"), nil
}

// attribute returns the value of an extended attribute, or nil.
func attribute(f *os.File, name string) ([]byte, error) {
	return growing(f, func(fd int, buf []byte) (int, error) {
		return unix.Fgetxattr(fd, name, buf)
	})
}

// growing calls get with a buffer that is large enough. It returns nil if there is nothing to get.
func growing(f *os.File, get func(fd int, buf []byte) (int, error)) ([]byte, error) {
	for size := 256; ; size *= 16 {
		buf, n := make([]byte, size), 0
		err := onDescriptor(f, func(fd int) (err error) {
			n, err = get(fd, buf)
			return err
		})
		switch {
		case err == nil:
			return buf[:n], nil
		case isNone(err):
			return nil, nil
		case !errors.Is(err, unix.ERANGE) || size > 1<<16:
			return nil, err
		}
	}
}

func setAttribute(f *os.File, name string, value []byte) error {
	return onDescriptor(f, func(fd int) error { return unix.Fsetxattr(fd, name, value, 0) })
}

// An access control list is a version and entries: a tag, permissions and an id.
const (
	aclHeader = 4
	aclEntry  = 8

	aclUser       = 0x02
	aclOwnerGroup = 0x04
	aclGroup      = 0x08
	aclMask       = 0x10
	aclOther      = 0x20
)

// leastOf returns the permissions that everybody but the owner has at least.
func leastOf(list []byte) fs.FileMode {
	least := uint16(0o7)
	for at := aclHeader; at+aclEntry <= len(list); at += aclEntry {
		switch binary.LittleEndian.Uint16(list[at:]) {
		case aclUser, aclOwnerGroup, aclGroup, aclMask, aclOther:
			least &= binary.LittleEndian.Uint16(list[at+2:])
		}
	}
	return fs.FileMode(least)
}
