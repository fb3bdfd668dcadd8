package found

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

	"github.com/acp-agent/acp-agent/acp/mcp"
	mcpclient "github.com/acp-agent/acp-agent/internal/mcp/client"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// namedFile is a file in a root that the configuration of a server names, with the hash of its
// content.
type namedFile struct{ path, hash string }

const (
	// maxNamedBytes is the maximum size of the named files that are hashed.
	maxNamedBytes = 256 << 20
	// maxNames is the maximum number of words in a configuration that are looked up as files.
	maxNames = 10_000
)

// readFiles finds the files in the roots of w that the command line or an environment variable of
// Start names, so that a consent covers their content. It adds what a consent cannot cover to gaps.
// It fails if w was closed, or if EnvFile has changed since it was read.
func (s *Server) readFiles(w *workspace.Workspace) error {
	s.files, s.gaps = nil, nil
	if s.Start.Transport != mcp.Stdio {
		return nil
	}
	if s.EnvFile != "" {
		left := int64(maxEnvFile)
		hash, err := hashFile(w, s.env.path, &left)
		if err == nil && hash != s.env.hash {
			err = fmt.Errorf("the environment file %s has changed: start the server again to see "+
				"the change", text.Quote(s.env.path))
		}
		if err != nil {
			return err
		}
	}
	names := []string{s.Start.Command}
	if !strings.ContainsRune(names[0], filepath.Separator) {
		if path, err := exec.LookPath(names[0]); err == nil {
			names[0] = path
		}
	}
	for i, arg := range s.Start.Args {
		words := wordsOf(arg)
		if strings.ContainsAny(arg, "$`*") || slices.Contains(words, "cd") {
			// The argument may hold a secret.
			s.gaps = append(s.gaps,
				fmt.Sprintf("a shell may decide which files argument %d means", i+1))
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
			// Not cleaned, since the system follows a link before "..".
			name = s.Start.Dir + string(filepath.Separator) + name
		}
		hash, err := hashFile(w, name, &left)
		switch {
		case errors.Is(err, workspace.ErrClosed):
			return err
		case err != nil:
			why := text.Printable(err.Error())
			s.gaps = append(s.gaps, "changes of "+text.Quote(name)+" cannot be noticed: "+why)
		case hash != "":
			s.files = append(s.files, namedFile{name, hash})
		}
	}
	return nil
}

// unchanged returns an error if the files in w have another content than when s read them.
func (s *Server) unchanged(w *workspace.Workspace) error {
	now := *s
	if err := now.readFiles(w); err != nil {
		return err
	}
	if now.ID() != s.ID() || !slices.Equal(now.gaps, s.gaps) {
		return errors.New("a file that it names was changed since you were asked: " +
			"start it again to see the change")
	}
	return nil
}

// hold makes Start start only what the user was asked about.
func (s *Server) hold() {
	asked := *s
	asked.EnvFile = "" // Start has its variables, as they were shown
	s.Start.Consent, s.Start.Check = string(s.ID()), asked.unchanged
}

// maxEnvFile is the maximum size of a file with environment variables, in bytes.
const maxEnvFile = 64 << 10

// readEnvFile adds the variables in EnvFile, whose path is relative to folder, to Start. Those of
// the configuration take precedence.
func (s *Server) readEnvFile(w *workspace.Workspace, folder string) error {
	if s.EnvFile == "" {
		return nil
	}
	if !filepath.IsAbs(s.env.path) {
		s.env.path = filepath.Join(folder, s.env.path)
	}
	f, err := w.Open(s.env.path)
	if err != nil {
		return fmt.Errorf("cannot read its environment file: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxEnvFile+1))
	if err != nil {
		return fmt.Errorf("cannot read its environment file: %w", err)
	}
	if len(content) > maxEnvFile {
		return fmt.Errorf("its environment file %s has more than %d bytes", s.env.path, maxEnvFile)
	}
	pairs, err := parseEnv(string(content))
	if err != nil {
		return fmt.Errorf("its environment file %s: %w", s.env.path, err)
	}
	hash := sha256.Sum256(content)
	s.env.hash, s.added = hex.EncodeToString(hash[:]), nil
	for _, p := range pairs {
		named := func(own mcpclient.Pair) bool { return own.Name == p.Name }
		if !slices.ContainsFunc(s.Config.Env, named) {
			s.Start.Env = append(s.Start.Env, p)
			s.Start.Secrets = append(s.Start.Secrets, p.Value)
			s.added = append(s.added, p)
		}
	}
	return nil
}

// parseEnv reads lines NAME=VALUE. Comments, a leading "export" and quotation marks around a value
// are left out; nothing is expanded.
func parseEnv(content string) ([]mcpclient.Pair, error) {
	var pairs []mcpclient.Pair
	for i, line := range strings.Split(strings.TrimPrefix(content, "\ufeff"), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" || strings.ContainsAny(name, " \t\x00") ||
			strings.ContainsRune(value, 0) {
			return nil, fmt.Errorf("line %d is not NAME=VALUE", i+1)
		}
		quoted := value != "" && (value[0] == '"' || value[0] == '\'')
		if quoted && strings.IndexByte(value[1:], value[0]) >= 0 {
			value = value[1 : 1+strings.IndexByte(value[1:], value[0])]
		} else {
			value, _, _ = strings.Cut(value, " #")
			value = strings.TrimSpace(value)
		}
		pairs = slices.DeleteFunc(pairs, func(p mcpclient.Pair) bool { return p.Name == name })
		pairs = append(pairs, mcpclient.Pair{Name: name, Value: value})
	}
	return pairs, nil
}

// wordsOf returns the parts of an argument or a value that may be names of files: all of it, the
// words of a shell command, and the values in options and lists.
func wordsOf(s string) []string {
	split := func(s, separators string) []string {
		separates := func(r rune) bool { return strings.ContainsRune(separators, r) }
		return strings.FieldsFunc(s, separates)
	}
	words := append([]string{s}, split(s, " \t\r\n\"'`;|&()<>")...)
	separators := "=,@"
	if runtime.GOOS != "windows" {
		separators += ":"
	}
	for _, word := range words[1:] {
		words = append(words, split(word, separators)...)
		if len(word) > 2 && word[0] == '-' && word[1] != '-' { // such as -rFILE
			words = append(words, word[2:])
		}
	}
	return words
}

// hashFile returns the hash of a file in a root of w, and "" if there is no such file. It reads at
// most left bytes and subtracts what it has read.
func hashFile(w *workspace.Workspace, path string, left *int64) (string, error) {
	hash, size, err := w.Hash(path, *left)
	var outside *workspace.OutsideError
	switch {
	case errors.As(err, &outside) && outside.Link == "": // an ordinary program
		return "", nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid), errors.Is(err, syscall.EISDIR),
		errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		return "", nil
	case err != nil:
		return "", err
	}
	if *left -= size; *left < 0 {
		*left = 0
		return "", errors.New("it is too large")
	}
	return hash, nil
}
