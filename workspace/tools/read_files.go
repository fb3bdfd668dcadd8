package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

type readFilesInput struct {
	Paths []string `json:"paths" jsonschema:"each PATH" min:"1"`
}

// readFiles is the result of read_files.
type readFiles struct {
	Files  []readResult
	Unread []string // the files that did not fit, as they were requested
	Cut    *truncation
}

// readResult is a file that was read, or the reason why it was not.
type readResult struct {
	fileText
	Asked string
	Err   error
}

func (s *Set) readSeveral(ctx context.Context, in readFilesInput) (readFiles, error) {
	var out readFiles
	room, failed, begun := s.limits.bytes, []error{}, time.Now()
	for i, path := range in.Paths {
		if ctx.Err() != nil {
			return out, context.Cause(ctx)
		}
		switch {
		case out.Cut != nil:
		case room <= 0:
			out.Cut = s.limits.reached("bytes")
		case time.Since(begun) > s.limits.time:
			out.Cut = s.limits.reached("time")
		}
		if out.Cut != nil {
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
			out.Unread, out.Cut = append(out.Unread, path), s.limits.reached("bytes")
			continue
		default:
			at := locate(read.Ref)
			room -= len(at.Path) + len(at.Root) + len(read.Content)
		}
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
	if r.Cut != nil {
		var names []string
		for _, path := range r.Unread[:min(len(r.Unread), maxPaths)] {
			names = append(names, text.Printable(path))
		}
		if more := len(r.Unread) - len(names); more > 0 {
			names = append(names, fmt.Sprintf("and %d more", more))
		}
		r.Cut.How = "Read the others in another call: " + strings.Join(names, ", ")
		parts = append(parts, r.Cut.note())
	}
	return strings.Join(parts, "\n")
}
