package tools

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

const gif = "GIF89a\x01\x00\x01\x00\x00\x00\x00;"

func TestReadMedia(t *testing.T) {
	files := map[string]string{
		"image/png": "\x89PNG\r\n\x1a\n\x00", "image/jpeg": "\xff\xd8\xff\xe0", "image/gif": gif, "image/webp": "RIFF\x00\x00\x00\x00WEBPVP8 ",
		"audio/wav": "RIFF\x00\x00\x00\x00WAVEfmt ", "audio/mpeg": "ID3\x03\x00", "audio/ogg": "OggS\x00",
		"application/pdf": "%PDF-1.7\n" + strings.Repeat("x", 100),
	}
	tree := fileTree{"text": "GIF\n", "RIFF": "RIFF", "empty": "", "large": gif +
		strings.Repeat("x", 200), "a b/image": gif}
	for name, content := range files {
		tree[name] = content
	}
	app := plant(t, tree)
	h := serve(t, openRoots(t, app), Options{limits: limits{fileSize: 200}})
	for name, content := range files {
		result, err := h.try("read_media", args{"path": name})
		require.NoError(t, err)
		require.Equal(t, name, result.Media.Type)
		require.Equal(t, content, string(result.Media.Data))
		require.Contains(t, result.Text, filepath.Join(app, name))
		require.Contains(t, result.Text, name+", ")
	}
	spaced, err := h.try("read_media", args{"path": "a b/image"})
	require.NoError(t, err)
	require.Equal(t, "file://"+app+"/a%20b/image", spaced.Media.URI)
	for _, name := range []string{"text", "RIFF", "empty"} {
		require.ErrorIs(t, h.refused("read_media", args{"path": name}), errNotMedia)
	}
	var large *workspace.TooLargeError
	require.ErrorAs(t, h.refused("read_media", args{"path": "large"}), &large)
	require.ErrorIs(t, h.refused("read_media", args{"path": "none"}), fs.ErrNotExist)
	require.Error(t, h.refused("read_media", args{"path": "a b"}))
}
