package workspace

import (
	"crypto/sha256"
	"io"
	"os"
)

// Version tells the contents of files apart. It is a hash of the content: times are too coarse to notice
// two changes in a row, and a file that was touched has not changed. Versions compare with ==. The zero
// Version is none.
type Version struct {
	size int64
	sum  [sha256.Size]byte
}

// VersionOf is the version of a file with this content.
func VersionOf(content []byte) Version {
	return Version{int64(len(content)), sha256.Sum256(content)}
}

// IsZero reports whether v is no version. That of an empty file is not zero.
func (v Version) IsZero() bool { return v == Version{} }

// matches reports whether the file, which has this size, has the content.
func (v Version) matches(f *os.File, size int64) (bool, error) {
	if size != v.size {
		return false, nil
	}
	hash := sha256.New()
	n, err := io.Copy(hash, io.LimitReader(f, v.size+1))
	return n == v.size && [sha256.Size]byte(hash.Sum(nil)) == v.sum, err
}
