package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"

	"github.com/acp-agent/acp-agent/workspace"
)

// Media is the content of an image, sound or PDF document.
type Media struct {
	// Type is the MIME type, such as "image/png".
	Type string
	// URI is the file URI.
	URI  string
	Data []byte
}

func (s *service) readMedia(_ context.Context, in pathInput) (Result, error) {
	file, err := s.checked.Open(in.Path)
	if err != nil {
		return Result{}, err
	}
	defer file.Close()
	if err := showable(in.Path, file.Ref()); err != nil {
		return Result{}, err
	}
	limit := s.limits.fileSize
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return Result{}, err
	}
	kind := mediaType(content)
	switch info, err := file.Stat(); {
	case kind == "":
		return Result{}, &fs.PathError{Op: "read", Path: in.Path, Err: errNotMedia}
	case err != nil:
		return Result{}, err
	case int64(len(content)) > limit:
		return Result{}, &workspace.TooLargeError{Path: in.Path,
			Size: max(info.Size(), int64(len(content))), Limit: limit}
	}
	at, err := workspace.ParseDir(file.Ref().Path())
	return Result{
		Text:  fmt.Sprintf("%s, %s, %d bytes\n", locate(file.Ref()), kind, len(content)),
		Media: &Media{Type: kind, URI: at.URI(), Data: content},
	}, err
}

var errNotMedia = errors.New("it is not an image, sound or PDF that can be shown")

// mediaType returns the MIME type of a file, or "" if it is not a type that can be shown to models.
func mediaType(content []byte) string {
	switch found := http.DetectContentType(content); found {
	case "image/png", "image/jpeg", "image/gif", "image/webp", "audio/mpeg", "application/pdf":
		return found
	case "audio/wave":
		return "audio/wav"
	case "application/ogg":
		return "audio/ogg"
	}
	return ""
}
