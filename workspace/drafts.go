package workspace

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/dirfd"
	"github.com/acp-agent/acp-agent/internal/privatefile"
)

// Drafts keeps a record of each file that a write makes beside the one that it replaces, because a
// process that is killed leaves it there. A record is locked while its process lives, so that another
// can tell. Where the system has no locks there are no records.
type Drafts struct{ dir string }

// NewDrafts returns the records in dir, which is created for the first of them. Only the user may
// have access to it.
func NewDrafts(dir string) *Drafts { return &Drafts{dir} }

// draftRecord is the content of a record.
type draftRecord struct {
	Dir  []byte `json:"dir"` // need not be UTF-8
	Name string `json:"name"`
	// Only are the versions that the file may have to be removed. If there are none, it is a draft,
	// perhaps an unfinished one. Otherwise it may have become what was replaced, which another
	// program may have changed.
	Only []string `json:"only,omitempty"`
}

// draftNote is a record of this process. Its methods may be called on nil.
type draftNote struct {
	file   *os.File
	record draftRecord
}

// note makes a record of the file name in dir. It returns nil if that is impossible: a record is not
// worth a failed write.
func (d *Drafts) note(dir, name string) *draftNote {
	if d == nil {
		return nil
	}
	path := filepath.Join(d.dir, strings.TrimPrefix(name, temporaryPrefix)+".json")
	const flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	file, err := os.OpenFile(path, flags, 0o600)
	if errors.Is(err, fs.ErrNotExist) && privatefile.MakeDir(d.dir) == nil {
		file, err = os.OpenFile(path, flags, 0o600)
	}
	if err != nil {
		return nil
	}
	n := &draftNote{file, draftRecord{Dir: []byte(dir), Name: name}}
	if dirfd.TryLock(file) != nil || n.write() != nil {
		n.done()
		return nil
	}
	return n
}

// only allows the file to be removed only with one of these versions. If it cannot be noted, there
// is no record any more.
func (n *draftNote) only(versions ...Version) {
	if n == nil {
		return
	}
	for _, v := range versions {
		n.record.Only = append(n.record.Only, v.text())
	}
	if n.write() != nil {
		n.done()
	}
}

// write writes the record, which only grows.
func (n *draftNote) write() error {
	content, err := json.Marshal(n.record)
	if err == nil {
		_, err = n.file.WriteAt(content, 0)
	}
	return err
}

// done removes the record.
func (n *draftNote) done() {
	if n != nil {
		_ = os.Remove(n.file.Name())
		_ = n.file.Close()
	}
}

// keep leaves the record to the next process.
func (n *draftNote) keep() {
	if n != nil {
		_ = n.file.Close()
	}
}

// RemoveLeft removes the files that processes have left which are no longer there, and returns their
// paths. A file that cannot be removed now is tried again the next time.
func (d *Drafts) RemoveLeft() (removed []string, err error) {
	records, err := os.ReadDir(d.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, r := range records {
		path, failed := d.removeLeft(filepath.Join(d.dir, r.Name()))
		err = errors.Join(err, failed)
		if path != "" {
			removed = append(removed, path)
		}
	}
	return removed, err
}

// removeLeft removes the file of the record at path, unless its process lives, and then the record.
func (d *Drafts) removeLeft(path string) (removed string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", ignoreMissing(err)
	}
	defer file.Close()
	if dirfd.TryLock(file) != nil {
		return "", nil
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return "", err
	}
	var r draftRecord
	if json.Unmarshal(content, &r) == nil && isTemporary(r.Name) {
		if removed, err = r.remove(); err != nil {
			return "", err
		}
	}
	return removed, ignoreMissing(os.Remove(path))
}

// remove removes the file, and returns its path if it was there.
func (r draftRecord) remove() (string, error) {
	path := filepath.Join(string(r.Dir), r.Name)
	info, err := os.Lstat(path)
	if err != nil || !filepath.IsAbs(path) || !info.Mode().IsRegular() || info.Size() > maxWrite {
		return "", ignoreMissing(err)
	}
	if len(r.Only) > 0 {
		content, err := os.ReadFile(path)
		if err != nil {
			return "", ignoreMissing(err)
		}
		if !slices.Contains(r.Only, VersionOf(content).text()) {
			return "", fmt.Errorf("%s may have what another program wrote: remove it if it has not",
				path)
		}
	}
	if err := os.Remove(path); err != nil {
		return "", ignoreMissing(err)
	}
	return path, nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// text returns the version as text.
func (v Version) text() string { return fmt.Sprint(v.size, ":", hex.EncodeToString(v.sum[:])) }
