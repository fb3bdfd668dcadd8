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

type mediaFile struct {
	location
	Media
}

func (s *Set) readMedia(_ context.Context, in pathInput) (mediaFile, error) {
	file, err := s.ws.Open(in.Path)
	if err != nil {
		return mediaFile{}, err
	}
	defer file.Close()
	if err := showable(in.Path, file.Ref()); err != nil {
		return mediaFile{}, err
	}
	limit := s.limits.fileSize
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return mediaFile{}, err
	}
	out := mediaFile{location: locate(file.Ref()),
		Media: Media{Type: mediaType(content), Data: content}}
	switch info, err := file.Stat(); {
	case out.Type == "":
		return mediaFile{}, &fs.PathError{Op: "read", Path: in.Path, Err: errNotMedia}
	case err != nil:
		return mediaFile{}, err
	case int64(len(content)) > limit:
		return mediaFile{}, &workspace.TooLargeError{Path: in.Path,
			Size: max(info.Size(), int64(len(content))), Limit: limit}
	}
	at, err := workspace.ParseDir(file.Ref().Path())
	out.URI = at.URI()
	return out, err
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

func (m mediaFile) String() string {
	return fmt.Sprintf("%s, %s, %d bytes\n", m.location, m.Type, len(m.Data))
}
