package workspace

import (
	"crypto/sha256"
	"encoding/binary"
	"io"
	"os"
)

// Version tells the contents of files apart. It is a hash of the content: times are too coarse to notice
// two changes in a row, and a file that was touched has not changed. Of a file that is too large to
// be read to its end it is what the system says about it: which file it is, its size and
// its times. Versions compare with ==. The zero Version is none.
type Version struct {
	size int64
	sum  [sha256.Size]byte
	told bool // whether sum is of what the system says
}

// VersionOf is the version of a file with this content.
func VersionOf(content []byte) Version {
	return Version{size: int64(len(content)), sum: sha256.Sum256(content)}
}

// IsZero reports whether v is no version. That of an empty file is not zero.
func (v Version) IsZero() bool { return v == Version{} }

// versionOfFile is the version of a file by what the system says about it.
func versionOfFile(f *os.File) (Version, error) {
	info, err := f.Stat()
	if err != nil {
		return Version{}, err
	}
	about := binary.LittleEndian.AppendUint64(nil, uint64(info.ModTime().UnixNano()))
	for _, n := range identity(f, info) {
		about = binary.LittleEndian.AppendUint64(about, n)
	}
	return Version{info.Size(), sha256.Sum256(about), true}, nil
}

// matches reports whether the file, which has this size, has the version.
func (v Version) matches(f *os.File, size int64) (bool, error) {
	if size != v.size {
		return false, nil
	}
	if v.told {
		now, err := versionOfFile(f)
		return now == v, err
	}
	hash := sha256.New()
	n, err := io.Copy(hash, io.LimitReader(f, v.size+1))
	return n == v.size && [sha256.Size]byte(hash.Sum(nil)) == v.sum, err
}
