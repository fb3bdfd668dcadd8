package worktree

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
)

// maxCopied and maxCopiedBytes limit the ignored files that are copied into a worktree.
const (
	maxCopied      = 1000
	maxCopiedBytes = 64 << 20
)

// ignoredFiles returns the ignored files of c that match a pattern, relative to its top.
func (c *checkout) ignoredFiles(ctx context.Context, patterns []string) ([]string, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	args := []string{"ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--"}
	for _, pattern := range patterns {
		args = append(args, ":(top,glob)"+pattern)
	}
	list, err := c.git.output(ctx, args...)
	if err != nil {
		return nil, err
	}
	files := strings.FieldsFunc(list, func(r rune) bool { return r == 0 })
	if len(files) > maxCopied {
		return nil, fmt.Errorf("%s: more than %d ignored files match worktree.copy of the "+
			"configuration", text.Printable(c.Top), maxCopied)
	}
	return files, nil
}

// copyIgnored copies the ignored files into the worktree at a path. It follows no links and
// replaces nothing.
func (c *checkout) copyIgnored(ctx context.Context, at string) error {
	if len(c.ignored) == 0 {
		return nil
	}
	from, err := os.OpenRoot(c.Top)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenRoot(at)
	if err != nil {
		return err
	}
	defer to.Close()
	c.Copied = make(map[string]string)
	left := int64(maxCopiedBytes)
	for _, name := range c.ignored {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		content, perm, err := readPlain(from, name, left)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = writeNew(to, filepath.FromSlash(name), content, perm)
		}
		if err != nil {
			return fmt.Errorf("cannot copy %s: %w", text.Printable(name), err)
		}
		left -= int64(len(content))
		c.Copied[name] = fmt.Sprintf("%x", sha256.Sum256(content))
	}
	return nil
}

// readPlain reads a regular file of at most the given number of bytes. Others, and those behind
// links, do not exist for it.
func readPlain(
	root *os.Root, name string, most int64,
) (content []byte, perm fs.FileMode, err error) {
	info, err := root.Lstat(filepath.FromSlash(name))
	switch {
	case err != nil || !info.Mode().IsRegular() || isBelowLink(root, name):
		return nil, 0, fs.ErrNotExist
	case info.Size() > most:
		return nil, 0, fmt.Errorf("all of them together have more than %s",
			text.Size(maxCopiedBytes))
	}
	content, err = root.ReadFile(filepath.FromSlash(name))
	return content, info.Mode().Perm(), err
}

// writeNew writes a file that must not exist.
func writeNew(root *os.Root, name string, content []byte, perm fs.FileMode) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// isBelowLink reports whether a part of the path before name is not a directory.
func isBelowLink(root *os.Root, name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if info, err := root.Lstat(filepath.FromSlash(dir)); err != nil || !info.IsDir() {
			return true
		}
	}
	return false
}

// digestOf returns the digest of a regular file in root, or "".
func digestOf(root *os.Root, name string) string {
	content, _, err := readPlain(root, name, maxCopiedBytes)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(content))
}
