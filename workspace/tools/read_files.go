package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

type readFilesInput struct {
	Paths []string `json:"paths" jsonschema:"the files"`
}

// readFiles is the result of read_files.
type readFiles struct {
	Files  []readResult
	Unread []string // the files for which there was no room, as they were asked for
	Bound  int      // the limit of bytes
}

// readResult is a file that was read, or the reason why it was not.
type readResult struct {
	fileText
	Asked string
	Err   error
}

func (s *Set) readFilesTool() Tool {
	return define(s, Tool{
		Name:        "read_files",
		Description: "Read several small text files at once.",
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
	}, func(in *schema) { in.notEmptyList("paths") }, s.readSeveral)
}

func (s *Set) readSeveral(ctx context.Context, in readFilesInput) (readFiles, error) {
	out := readFiles{Bound: s.limits.bytes}
	room, failed := s.limits.bytes, []error{}
	for i, path := range in.Paths {
		if ctx.Err() != nil {
			return out, context.Cause(ctx)
		}
		if room <= 0 {
			out.Unread = append(out.Unread, path)
			continue
		}
		read, err := s.readLines(ctx, readFileInput{Path: path}, room)
		switch {
		case errors.Is(err, workspace.ErrClosed):
			return out, err
		case err != nil:
			failed = append(failed, err)
			err = s.explain("read_files", path, err)
			room -= len(err.Error())
		case i > 0 && read.Cut != nil && read.Cut.Limit == "bytes":
			out.Unread, room = append(out.Unread, path), 0
			continue
		}
		room -= len(read.Content)
		out.Files = append(out.Files, readResult{read, path, err})
	}
	if len(failed) == len(in.Paths) {
		return out, errors.Join(failed...)
	}
	return out, nil
}

func (r readFiles) String() string {
	var parts []string
	for _, f := range r.Files {
		if f.Err != nil {
			parts = append(parts, text.Printable(f.Asked)+" could not be read: "+f.Err.Error()+"\n")
		} else {
			parts = append(parts, f.fileText.String())
		}
	}
	if len(r.Unread) > 0 {
		var names []string
		for _, path := range r.Unread {
			names = append(names, text.Printable(path))
		}
		parts = append(parts, fmt.Sprintf("[truncated: the limit of %d bytes was reached. Read the others in another call: %s]\n",
			r.Bound, strings.Join(names, ", ")))
	}
	return strings.Join(parts, "\n")
}
