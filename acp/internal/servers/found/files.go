package found

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// maxNames is the maximum number of words in a configuration that are looked up as files.
const maxNames = 10_000

// gapsOf returns what the command line or an environment variable of a server to start names in the
// roots of w, where an agent may change it, and what else a lasting consent could not cover. It
// fails if w was closed.
func gapsOf(start mcpclient.Config, w *workspace.Workspace) (gaps []string, err error) {
	if start.Transport != mcp.Stdio {
		return nil, nil
	}
	names := []string{start.Command}
	if !strings.ContainsRune(names[0], filepath.Separator) {
		if path, err := exec.LookPath(names[0]); err == nil {
			names[0] = path
		}
	}
	for i, arg := range start.Args {
		words := wordsOf(arg)
		if strings.ContainsAny(arg, "$`*") || slices.Contains(words, "cd") {
			// The argument may hold a secret.
			gaps = append(gaps,
				fmt.Sprintf("a shell may decide which files argument %d means", i+1))
		}
		names = append(names, words...)
	}
	for _, p := range start.Env {
		names = append(names, wordsOf(p.Value)...)
	}
	if len(names) > maxNames {
		gaps = append(gaps, "it has too many arguments")
		names = names[:maxNames]
	}
	seen := map[string]bool{"": true}
	for _, name := range names {
		if seen[name] {
			continue
		}
		seen[name] = true
		if !filepath.IsAbs(name) {
			// Not cleaned, since the system follows a link before "..".
			name = start.Dir + string(filepath.Separator) + name
		}
		inside, err := liesIn(w, name)
		if err != nil {
			return nil, err
		}
		if inside {
			gaps = append(gaps,
				text.Quote(name)+" lies in a folder: what is there when the server starts will run")
		}
	}
	return gaps, nil
}

// liesIn reports whether there is a file, a directory or a link at a path in the roots of w.
func liesIn(w *workspace.Workspace, path string) (bool, error) {
	_, err := w.Stat(path)
	var outside *workspace.OutsideError
	switch {
	case errors.Is(err, workspace.ErrClosed):
		return false, err
	case errors.As(err, &outside) && outside.Link == "", // an ordinary program
		errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid),
		errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		return false, nil
	}
	return true, nil
}

// asAsked returns the configuration that starts only what the user was asked about, with these gaps.
// A server that names something in a folder is started once: afterwards an agent may have changed
// it.
func (s Server) asAsked(gaps []string) mcpclient.Config {
	start := s.Start
	if len(gaps) > 0 {
		start.Asked = rand.Text()
	}
	var started atomic.Bool
	start.Consent = string(s.ID())
	start.Check = func(w *workspace.Workspace) error {
		now, err := gapsOf(s.Start, w)
		if err != nil {
			return err
		}
		again := started.Swap(true)
		if len(now) > 0 && (again || !slices.Equal(now, gaps)) {
			return fmt.Errorf("it may have been changed since you were asked, because %s: start it again",
				now[0])
		}
		return nil
	}
	return start
}

// maxEnvFile is the maximum size of a file with environment variables, in bytes.
const maxEnvFile = 64 << 10

// readEnvFile adds the variables in EnvFile, whose path is relative to folder, to Start. Those of
// the configuration take precedence.
func (s *Server) readEnvFile(w *workspace.Workspace, folder string) error {
	if s.EnvFile == "" {
		return nil
	}
	if !filepath.IsAbs(s.envPath) {
		s.envPath = filepath.Join(folder, s.envPath)
	}
	f, err := w.Open(s.envPath)
	if err != nil {
		return fmt.Errorf("cannot read its environment file: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxEnvFile+1))
	if err != nil {
		return fmt.Errorf("cannot read its environment file: %w", err)
	}
	if len(content) > maxEnvFile {
		return fmt.Errorf("its environment file %s has more than %d bytes", s.envPath, maxEnvFile)
	}
	pairs, err := parseEnv(string(content))
	if err != nil {
		return fmt.Errorf("its environment file %s: %w", s.envPath, err)
	}
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
