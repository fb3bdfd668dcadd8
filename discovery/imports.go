package discovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// importer reads what one instruction file imports by words such as @path, and what these files
// import. Relative paths start at the importing file.
type importer struct {
	*scanner
	a    *Artifact
	read map[string]bool // real paths; a file is imported once
	full bool            // whether a is known to import too many
	seen int             // number of imports in the text, including those not read
}

// follow reads the imports in content, which is the file at path.
func (in *importer) follow(ctx context.Context, path, content string, depth int) {
	for _, written := range importsOf(content) {
		in.seen++
		switch {
		case ctx.Err() != nil || in.seen > maxWritten && in.full:
			return
		case len(in.a.Imports) == in.limits.imports || in.seen > maxWritten:
			in.unread(targetOf(path, written))
			if !in.full {
				in.refuse(written, fmt.Sprintf("a file can import at most %d others",
					in.limits.imports))
			}
			in.full = true
		case depth > in.limits.importDepth:
			in.unread(targetOf(path, written))
			in.refuse(written, fmt.Sprintf("imports can be nested at most %d deep",
				in.limits.importDepth))
		default:
			in.importFile(ctx, path, written, depth)
		}
	}
}

// refuse adds a diagnostic for an import.
func (in *importer) refuse(written, why string) {
	in.a.diagnose("@%s is not imported: %s", text.Truncate(written, 200), why)
}

// importFile reads the file that written names in the file from.
func (in *importer) importFile(ctx context.Context, from, written string, depth int) {
	if strings.HasPrefix(written, "~") {
		if home, err := os.UserHomeDir(); err == nil {
			in.unread(filepath.Join(home, strings.TrimRight(written[1:], ".,;:!?)")))
		}
		in.refuse(written, "home directories are not supported")
		return
	}
	written, f, err := in.open(from, written)
	target := targetOf(from, written)
	if err != nil {
		in.unread(target)
		in.refuseError(written, err)
		return
	}
	defer f.Close()
	if in.read[f.Ref().Real()] {
		return
	}
	in.read[f.Ref().Real()] = true
	file, err := readText(f, in.limits.fileSize)
	in.bytes += int(file.size)
	if err != nil {
		in.unread(target)
		in.refuse(written, err.Error())
		return
	}
	in.a.Diagnostics = append(in.a.Diagnostics, file.diagnostics...)
	in.a.Imports = append(in.a.Imports, Import{f.Ref(), written, from, file.size, file.text})
	in.follow(ctx, target, file.text, depth+1)
}

// unread records an import that was not read.
func (in *importer) unread(target string) { in.a.Unread = append(in.a.Unread, target) }

// maxWritten is the most imports of a file that are examined.
const maxWritten = 2000

// targetOf returns the path of the file that written names in the file from.
func targetOf(from, written string) string {
	target := filepath.FromSlash(written)
	if !filepath.IsAbs(target) {
		target = from[:strings.LastIndexAny(from, `/`+string(filepath.Separator))+1] + target
	}
	return target
}

// open opens the file that written names in the file from. It removes punctuation from the end of
// the name, and the name of a section, until it finds a file, and returns the name that is left.
func (in *importer) open(from, written string) (name string, f *workspace.File, err error) {
	for name = written; ; {
		f, err = in.ws.Open(targetOf(from, name))
		shorter := strings.TrimRight(name, ".,;:!?)")
		if shorter == name {
			shorter, _, _ = strings.Cut(name, "#")
		}
		if err == nil || shorter == name || shorter == "" {
			return name, f, err
		}
		name = shorter
	}
}

// refuseError adds a diagnostic for an import that failed, unless written has neither a slash nor a
// dot: then it is more likely a name such as @alice.
func (in *importer) refuseError(written string, err error) {
	gone := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	switch {
	case gone && !strings.ContainsAny(written, "/."):
	case gone:
		in.refuse(written, "there is no such file")
	default:
		in.refuse(written, reasonOf(err))
	}
}

// importsOf returns the paths of the words @path in a Markdown text, outside code and comments.
func importsOf(markdown string) []string {
	var r importReader
	fence := ""
	for line := range strings.SplitSeq(markdown, "\n") {
		trimmed := strings.TrimLeft(line, " ")
		if mark := fenceOf(trimmed); mark != "" && !r.comment {
			switch {
			case fence == "":
				fence = mark
			case strings.HasPrefix(mark, fence) &&
				strings.TrimSpace(strings.TrimLeft(trimmed, mark[:1])) == "":
				fence = ""
			}
			continue
		}
		if fence == "" {
			r.readLine(line)
		}
	}
	return r.all
}

// fenceOf returns the three or more backticks or tildes at the beginning of a line, or "".
func fenceOf(line string) string {
	for _, c := range "`~" {
		if n := len(line) - len(strings.TrimLeft(line, string(c))); n >= 3 {
			return line[:n]
		}
	}
	return ""
}

// importReader collects the imports of a text.
type importReader struct {
	all     []string
	comment bool // whether the last line ended in a comment of HTML
}

// readLine reads a line outside fenced code. "\ " is a space in a path.
func (r *importReader) readLine(line string) {
	for i := 0; i < len(line); i++ {
		switch {
		case r.comment:
			end := strings.Index(line[i:], "-->")
			if end < 0 {
				return
			}
			r.comment = false
			i += end + len("-->") - 1
		case strings.HasPrefix(line[i:], "<!--"):
			r.comment = true
			i += len("<!--") - 1
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
				r.all = append(r.all, strings.ReplaceAll(word, `\ `, " "))
			}
			i += len(word)
		}
	}
}

// wordOf returns the beginning of s up to a space that is not escaped, a backtick or a quotation
// mark.
func wordOf(s string) string {
	for i := range len(s) {
		if (s[i] == ' ' || s[i] == '\t') && (i == 0 || s[i-1] != '\\') {
			return s[:i]
		}
		if s[i] == '`' || s[i] == '"' {
			return s[:i]
		}
	}
	return s
}
