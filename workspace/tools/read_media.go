package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

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

func (s *Set) readMedia(ctx context.Context, in pathInput) (mediaFile, error) {
	file, err := s.ws.Open(in.Path)
	if err != nil {
		return mediaFile{}, err
	}
	defer file.Close()
	if err := showable(in.Path, file.Ref()); err != nil {
		return mediaFile{}, err
	}
	head := make([]byte, 64)
	n, err := io.ReadFull(file, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return mediaFile{}, err
	}
	out := mediaFile{location: locate(file.Ref()), Media: Media{Type: mediaType(head[:n])}}
	if out.Type == "" {
		return mediaFile{}, &fs.PathError{Op: "read", Path: in.Path, Err: errNotMedia}
	}
	if out.Data, err = s.content(ctx, in.Path, file, head[:n]); err != nil {
		return mediaFile{}, err
	}
	at, err := workspace.ParseDir(file.Ref().Path())
	out.URI = at.URI()
	return out, err
}

var errNotMedia = errors.New("it is not an image, sound or PDF that can be shown")

// content returns the rest of a file after its head, together with the head.
func (s *Set) content(ctx context.Context, path string, file *workspace.File,
	head []byte) ([]byte, error) {
	limit := s.limits.fileSize
	info, err := file.Stat()
	if err == nil && info.Size() > limit {
		err = &workspace.TooLargeError{Path: path, Size: info.Size(), Limit: limit}
	}
	if err != nil {
		return nil, err
	}
	content := bytes.NewBuffer(head)
	for ctx.Err() == nil {
		n, err := io.CopyN(content, file, 1<<20)
		switch {
		case int64(content.Len()) > limit: // it has grown
			return nil, &workspace.TooLargeError{Path: path, Size: int64(content.Len()),
				Limit: limit}
		case err == io.EOF || err == nil && n == 0:
			return content.Bytes(), nil
		case err != nil:
			return nil, err
		}
	}
	return nil, context.Cause(ctx)
}

// mediaType returns the MIME type of a file that begins with head, or "" if it is not a type that
// can be shown to models.
func mediaType(head []byte) string {
	for _, known := range []struct{ start, then, mime string }{
		{"\x89PNG\r\n\x1a\n", "", "image/png"},
		{"\xff\xd8\xff", "", "image/jpeg"},
		{"GIF87a", "", "image/gif"},
		{"GIF89a", "", "image/gif"},
		{"RIFF", "WEBP", "image/webp"},
		{"RIFF", "WAVE", "audio/wav"},
		{"ID3\x02", "", "audio/mpeg"},
		{"ID3\x03", "", "audio/mpeg"},
		{"ID3\x04", "", "audio/mpeg"},
		{"\xff\xfb", "", "audio/mpeg"},
		{"\xff\xf3", "", "audio/mpeg"},
		{"\xff\xf2", "", "audio/mpeg"},
		{"OggS\x00", "", "audio/ogg"},
		{"fLaC", "", "audio/flac"},
		{"%PDF-", "", "application/pdf"},
	} {
		rest, ok := strings.CutPrefix(string(head), known.start)
		if ok && (known.then == "" || len(rest) >= 4 && strings.HasPrefix(rest[4:], known.then)) {
			return known.mime
		}
	}
	return ""
}

func (m mediaFile) String() string {
	return fmt.Sprintf("%s, %s, %d bytes\n", m.location, m.Type, len(m.Data))
}
