package found

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// maxNames is the maximum number of words in a configuration that are looked up as files.
const maxNames = 10_000

// findGaps finds what the command line or an environment variable of Start names in the roots of w,
// where an agent may change it, and what else a lasting consent could not cover. It fails if w was
// closed.
func (s *Server) findGaps(w *workspace.Workspace) error {
	s.gaps = nil
	if s.Start.Transport != mcp.Stdio {
		return nil
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
	seen := map[string]bool{"": true}
	for _, name := range names {
		if seen[name] {
			continue
		}
		seen[name] = true
		if !filepath.IsAbs(name) {
			// Not cleaned, since the system follows a link before "..".
			name = s.Start.Dir + string(filepath.Separator) + name
		}
		inside, err := liesIn(w, name)
		if err != nil {
			return err
		}
		if inside {
			s.gaps = append(s.gaps,
				text.Quote(name)+" lies in a folder: what is there when the server starts will run")
		}
	}
	return nil
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

// hold makes Start start only what the user was asked about. A server that names something in a
// folder is started once: afterwards an agent may have changed it.
func (s *Server) hold() {
	asked := *s
	if len(asked.gaps) > 0 {
		s.Start.Asked = rand.Text()
	}
	var started atomic.Bool
	s.Start.Consent = string(s.ID())
	s.Start.Check = func(w *workspace.Workspace) error {
		now := asked
		if err := now.findGaps(w); err != nil {
			return err
		}
		again := started.Swap(true)
		if len(now.gaps) > 0 && (again || !slices.Equal(now.gaps, asked.gaps)) {
			return fmt.Errorf("it may have been changed since you were asked, because %s: start it again",
				now.gaps[0])
		}
		return nil
	}
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
