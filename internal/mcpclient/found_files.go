package mcpclient

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// namedFile is a file in a root that the configuration of a server names, with the hash of its content.
type namedFile struct{ path, hash string }

const (
	// maxNamedBytes is the most bytes of named files that are hashed.
	maxNamedBytes = 256 << 20
	// maxNames is the most words of a configuration that are taken for names of files.
	maxNames = 10_000
)

// readFiles finds the files in the roots of w that the command line or an environment variable of Start names, so that a consent
// covers their content. What cannot be covered is added to gaps. It fails only if w was closed.
func (s *FoundServer) readFiles(w *workspace.Workspace) error {
	s.files, s.gaps = nil, nil
	if s.Start.Transport != Stdio {
		return nil
	}
	names := []string{s.Start.Command}
	if path, err := exec.LookPath(s.Start.Command); err == nil && !strings.ContainsRune(s.Start.Command, filepath.Separator) {
		names[0] = path
	}
	for i, arg := range s.Start.Args {
		words := wordsOf(arg)
		if strings.ContainsAny(arg, "$`*") || slices.Contains(words, "cd") {
			s.gaps = append(s.gaps, fmt.Sprintf("a shell may decide which files argument %d means", i+1)) // which may hold a secret
		}
		names = append(names, words...)
	}
	for _, p := range s.Start.Env {
		names = append(names, wordsOf(p.Value)...)
	}
	if len(names) > maxNames {
		s.gaps = append(s.gaps, "it has too many arguments")
		names = names[:maxNames]
	}
	seen, left := map[string]bool{"": true}, int64(maxNamedBytes)
	for _, name := range names {
		if seen[name] {
			continue
		}
		seen[name] = true
		if !filepath.IsAbs(name) {
			name = s.Start.Dir + string(filepath.Separator) + name // not cleaned, since the system follows a link before ".."
		}
		hash, err := hashFile(w, name, &left)
		switch {
		case errors.Is(err, workspace.ErrClosed):
			return err
		case err != nil:
			s.gaps = append(s.gaps, "changes of "+text.Quote(name)+" cannot be noticed: "+text.Printable(err.Error()))
		case hash != "":
			s.files = append(s.files, namedFile{name, hash})
		}
	}
	return nil
}

// wordsOf returns the parts of an argument or a value that may be names of files: all of it, the words of a shell command, and the
// values in options and lists.
func wordsOf(s string) []string {
	words := append([]string{s}, strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`;|&()<>", r) })...)
	separators := "=,@"
	if runtime.GOOS != "windows" {
		separators += ":"
	}
	for _, word := range words[1:] {
		words = append(words, strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune(separators, r) })...)
		if len(word) > 2 && word[0] == '-' && word[1] != '-' { // such as -rFILE
			words = append(words, word[2:])
		}
	}
	return words
}

// hashFile returns the hash of a file in a root of w, and "" if there is no such file. It reads at most left bytes and subtracts
// what it has read.
func hashFile(w *workspace.Workspace, path string, left *int64) (string, error) {
	info, err := w.Stat(path)
	var outside *workspace.OutsideError
	switch {
	case errors.As(err, &outside) && outside.Link == "": // an ordinary program
		return "", nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		return "", nil
	case err != nil:
		return "", err
	case info.IsDir():
		return "", nil
	}
	f, err := w.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	hash := sha256.New()
	n, err := io.Copy(hash, io.LimitReader(f, *left+1))
	if *left -= n; err == nil && *left < 0 {
		*left, err = 0, errors.New("it is too large")
	}
	return hex.EncodeToString(hash.Sum(nil)), err
}
