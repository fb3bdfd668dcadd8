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
	Paths []string `json:"paths" jsonschema:"each {path}" min:"1"`
}

func (s *service) readSeveral(ctx context.Context, in readFilesInput) (Result, error) {
	var parts, unread []string
	var failed []error
	var cut *truncation
	room, begun := s.limits.bytes, time.Now()
	full := &truncation{Unit: "bytes", Limit: s.limits.bytes}
	for i, path := range in.Paths {
		if ctx.Err() != nil {
			return Result{}, context.Cause(ctx)
		}
		switch {
		case cut != nil:
		case room <= 0:
			cut = full
		case time.Since(begun) > s.limits.time:
			cut = &truncation{Unit: "ms", Limit: int(s.limits.time.Milliseconds())}
		}
		if cut != nil {
			unread = append(unread, text.Printable(path))
			continue
		}
		read, err := s.readLines(ctx, readFileInput{Path: path}, room)
		switch {
		case errors.Is(err, workspace.ErrClosed):
			return Result{}, err
		case err != nil:
			failed = append(failed, err)
			why := s.explain("read_files", path, err).Error()
			room -= len(why)
			parts = append(parts, text.Printable(path)+" could not be read: "+why+"\n")
		case i > 0 && read.Cut != nil && read.Cut.Unit == "bytes":
			unread, cut = append(unread, text.Printable(path)), full
		default:
			at := locate(read.Ref)
			room -= len(at.Path) + len(at.Root) + len(read.Content)
			parts = append(parts, read.String())
		}
	}
	if len(failed) == len(in.Paths) {
		return Result{}, errors.Join(failed...)
	}
	if cut != nil {
		names := unread[:min(len(unread), maxPaths)]
		if more := len(unread) - len(names); more > 0 {
			names = append(names, fmt.Sprintf("and %d more", more))
		}
		cut.How = "Read the others in another call: " + strings.Join(names, ", ")
		parts = append(parts, cut.note())
	}
	return Result{Text: strings.Join(parts, "\n")}, nil
}
