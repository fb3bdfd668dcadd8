package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
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
		if !isPlainFile(from, name) {
			continue
		}
		digest, size, err := copyFile(from, to, name, left)
		if err != nil {
			return fmt.Errorf("cannot copy %s: %w", text.Printable(name), err)
		}
		left -= size
		c.Copied[name] = digest
	}
	return nil
}

// isPlainFile reports whether name is a regular file in root, and no part of its path a link.
func isPlainFile(root *os.Root, name string) bool {
	info, err := root.Lstat(filepath.FromSlash(name))
	return err == nil && info.Mode().IsRegular() && !isBelowLink(root, name)
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

// copyFile copies a file of at most the given number of bytes, and returns its digest and size.
func copyFile(from, to *os.Root, name string, most int64) (digest string, size int64, err error) {
	name = filepath.FromSlash(name)
	source, err := from.Open(name)
	if err != nil {
		return "", 0, err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return "", 0, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return "", 0, fmt.Errorf("all of them together have more than %s",
			text.Size(maxCopiedBytes))
	}
	if err := to.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return "", 0, err
	}
	target, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return "", 0, err
	}
	hash := sha256.New()
	size, err = io.Copy(io.MultiWriter(target, hash), io.LimitReader(source, most))
	return hex.EncodeToString(hash.Sum(nil)), size, errors.Join(err, target.Close())
}

// digestOf returns the digest of a regular file in root, or "".
func digestOf(root *os.Root, name string) string {
	if !isPlainFile(root, name) {
		return ""
	}
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return ""
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, io.LimitReader(f, maxCopiedBytes+1)); err != nil {
		return ""
	}
	return hex.EncodeToString(hash.Sum(nil))
}
