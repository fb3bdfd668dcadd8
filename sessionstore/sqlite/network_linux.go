package sqlite

import "golang.org/x/sys/unix"

// onNetwork reports whether dir is on a network file system, where SQLite's shared memory does not
// work. It does not detect those of FUSE, most of which are local.
func onNetwork(dir string) bool {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return false
	}
	switch uint32(s.Type) {
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC,
		unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC, unix.CODA_SUPER_MAGIC, unix.NCP_SUPER_MAGIC,
		unix.CEPH_SUPER_MAGIC, unix.V9FS_MAGIC, unix.OCFS2_SUPER_MAGIC:
		return true
	}
	return false
}
