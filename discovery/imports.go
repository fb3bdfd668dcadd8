package discovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/acp-agent/acp-agent/workspace"
)

// importer reads what one instruction file imports.
type importer struct {
	*scanner
	a    *Artifact
	read map[string]bool // by real path; a file is imported once
}

// imports reads what a imports: the files that its words @path name, and what they import, up to MaxHops. Paths start at
// the importing file, and are opened through the workspace, as every other file.
func (s *scanner) imports(ctx context.Context, a *Artifact) {
	in := &importer{scanner: s, a: a, read: map[string]bool{a.Ref.Real(): true}}
	in.follow(ctx, a.Path, a.text, 1)
}

// follow imports what text, which is the file at path, names.
func (in *importer) follow(ctx context.Context, path, text string, hop int) {
	for _, written := range importsOf(text) {
		switch {
		case ctx.Err() != nil:
			return
		case len(in.a.Imports) == in.o.MaxImports:
			in.refuse(written, fmt.Sprintf("a file imports at most %d others (MaxImports)", in.o.MaxImports))
			return
		case hop > in.o.MaxHops:
			in.refuse(written, fmt.Sprintf("imports go %d hops at most (MaxHops)", in.o.MaxHops))
		default:
			in.one(ctx, path, written, hop)
		}
	}
}

func (in *importer) refuse(written, why string) {
	in.a.diagnose(RuleImport, fmt.Sprintf("@%s is not imported: %s", firstRunes(written, 200), why))
}

// one imports one file.
func (in *importer) one(ctx context.Context, from, written string, hop int) {
	if strings.HasPrefix(written, "~") {
		in.refuse(written, "a home directory is not in the roots")
		return
	}
	target, f, err := in.open(from, &written)
	if err != nil {
		in.refused(written, err)
		return
	}
	defer f.Close()
	if in.read[f.Ref().Real()] {
		return
	}
	in.read[f.Ref().Real()] = true
	info, err := f.Stat()
	if err != nil {
		in.refused(written, err)
		return
	}
	imported := Artifact{Size: info.Size()}
	text, ok := in.readText(&imported, f)
	if !ok {
		in.refuse(written, imported.Reason)
		return
	}
	in.a.Diagnostics = append(in.a.Diagnostics, imported.Diagnostics...)
	in.a.Imports = append(in.a.Imports, Import{written, from, f.Ref(), info.Size(), text})
	in.follow(ctx, target, text, hop+1)
}

// open opens the file that written names. What ends a sentence is not part of it, unless there is such a file.
func (in *importer) open(from string, written *string) (target string, f *workspace.File, err error) {
	for {
		target = filepath.FromSlash(*written)
		if !filepath.IsAbs(target) {
			target = from[:strings.LastIndexAny(from, `/`+string(filepath.Separator))+1] + target
		}
		f, err = in.ws.Open(target)
		shorter := strings.TrimRight(*written, ".,;:!?)")
		if err == nil || shorter == *written || shorter == "" {
			break
		}
		*written = shorter
	}
	return target, f, err
}

// refused reports an import that failed. Much that begins with @ is no path: a word without a slash or a dot that is no
// file is somebody's name.
func (in *importer) refused(written string, err error) {
	gone := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	switch {
	case gone && !strings.ContainsAny(written, "/."):
	case gone:
		in.refuse(written, "there is no such file")
	default:
		in.refuse(written, reasonOf(err))
	}
}

// importsOf are the words @path of a Markdown text, outside of code.
func importsOf(text string) []string {
	var all []string
	fence := ""
	for line := range strings.SplitSeq(text, "\n") {
		trimmed := strings.TrimLeft(line, " ")
		if mark := fenceOf(trimmed); mark != "" {
			switch {
			case fence == "":
				fence = mark
			case strings.HasPrefix(mark, fence) && strings.TrimSpace(strings.TrimLeft(trimmed, mark[:1])) == "":
				fence = ""
			}
			continue
		}
		if fence == "" {
			all = append(all, importsOfLine(line)...)
		}
	}
	return all
}

// fenceOf is the run of three or more backticks or tildes that a line begins with.
func fenceOf(line string) string {
	for _, c := range "`~" {
		if n := len(line) - len(strings.TrimLeft(line, string(c))); n >= 3 {
			return line[:n]
		}
	}
	return ""
}

// importsOfLine are the words @path of a line, outside of code spans. "\ " is a blank in a path.
func importsOfLine(line string) []string {
	var all []string
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '`':
			run := len(line[i:]) - len(strings.TrimLeft(line[i:], "`"))
			end := strings.Index(line[i+run:], line[i:i+run])
			i += run - 1
			if end >= 0 {
				i += end + run
			}
		case line[i] == '@' && (i == 0 || strings.ContainsRune(" \t([*-", rune(line[i-1]))):
			word := wordOf(line[i+1:])
			if word != "" {
				all = append(all, strings.ReplaceAll(word, `\ `, " "))
			}
			i += len(word)
		}
	}
	return all
}

// wordOf is what text begins with, up to a blank without a backslash before it.
func wordOf(text string) string {
	for i := range len(text) {
		if (text[i] == ' ' || text[i] == '\t') && (i == 0 || text[i-1] != '\\') {
			return text[:i]
		}
		if text[i] == '`' || text[i] == '"' {
			return text[:i]
		}
	}
	return text
}
