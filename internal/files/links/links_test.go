//go:build unix

package links_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/files/links"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
)

// T is the folder with the links.
func TestFollow(t *testing.T) {
	top := dirtest.New(t)
	require.NoError(t, os.MkdirAll(filepath.Join(top, "dir/sub"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(top, "file"), nil, 0o600))
	for name, target := range map[string]string{
		"relative": "dir/sub", "absolute": top + "/dir/sub", "slashed": "dir//./sub/", "parent": "..",
		"dir/sub/up": "../..", "chain": "relative/up/absolute", "toFile": "file",
		"dangling": "gone/deeper", "dangling2": "dangling/x", "dots": "relative/../../file",
		"self": "self", "there": "back", "back": "there", "top": "/", "missingDots": "gone/../dir",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(top, name)))
	}
	type way struct {
		real, missing, links string
		err                  error
	}
	ways := map[string]way{
		"T":                   {real: "T"},
		"T//dir/./sub/":       {real: "T/dir/sub"},
		"T/dir/sub/..":        {real: "T/dir"},
		"T/gone":              {real: "T", missing: "gone"},
		"T/dir/gone/deeper//": {real: "T/dir", missing: "gone/deeper"},
		"T/GONE/./x":          {real: "T", missing: "GONE/x"},
		"/../..":              {real: "/"},
		"T/relative":          {real: "T/dir/sub", links: "T/relative"},
		"T/absolute/":         {real: "T/dir/sub", links: "T/absolute"},
		"T/slashed/gone":      {real: "T/dir/sub", missing: "gone", links: "T/slashed"},
		"T/relative/..":       {real: "T/dir", links: "T/relative"},
		"T/relative/../gone":  {real: "T/dir", missing: "gone", links: "T/relative"},
		"T/top/../no such":    {real: "/", missing: "no such", links: "T/top"},
		"T/dir/sub/up/file":   {real: "T/file", links: "T/dir/sub/up"},
		"T/chain":             {real: "T/dir/sub", links: "T/chain T/relative T/dir/sub/up T/absolute"},
		"T/dots":              {real: "T/file", links: "T/dots T/relative"},
		"T/dangling":          {real: "T", missing: "gone/deeper", links: "T/dangling"},
		"T/dangling2/y":       {real: "T", missing: "gone/deeper/x/y", links: "T/dangling2 T/dangling"},
		"T/file/":             {real: "T/file"},
		"T/toFile/x/../y":     {real: "T/file/y", links: "T/toFile", err: syscall.ENOTDIR},
		"T/gone/../relative":  {real: "T/dir/sub", links: "T/relative", err: fs.ErrNotExist},
		"T/gone/x/../y":       {real: "T", missing: "gone/y", err: fs.ErrNotExist},
		"T/dangling/..":       {real: "T", missing: "gone", links: "T/dangling", err: fs.ErrNotExist},
		"T/missingDots/sub":   {real: "T/dir/sub", links: "T/missingDots", err: fs.ErrNotExist},
		"T/self/x":            {real: "T", missing: "self/x", links: strings.Repeat(" T/self", 40)[1:], err: syscall.ELOOP},
		"T/there":             {real: "T", missing: "there", links: strings.Repeat(" T/there T/back", 20)[1:], err: syscall.ELOOP},
		"dir":                 {real: "dir", err: fs.ErrInvalid},
		"":                    {err: fs.ErrInvalid},
	}
	if os.Getuid() != 0 {
		require.NoError(t, os.Mkdir(filepath.Join(top, "locked"), 0))
		ways["T/locked/x/../../relative"] = way{real: "T/dir/sub", links: "T/relative", err: fs.ErrPermission}
	}
	expand := func(paths string) string {
		return strings.TrimPrefix(strings.ReplaceAll(" "+paths, " T", " "+top), " ")
	}
	for path, want := range ways {
		path = expand(path)
		w, err := links.Follow(path)
		require.ErrorIs(t, err, want.err, path)
		var at []string
		for _, link := range w.Links {
			at = append(at, link.At)
			if want.err != syscall.ELOOP {
				again, _ := links.Follow(link.Then)
				require.Equal(t, w.Path(), again.Path(), "%s by way of %s", path, link.Then)
			}
		}
		require.Equal(t, expand(want.real), w.Real, path)
		require.Equal(t, want.missing, strings.Join(w.Missing, "/"), path)
		require.Equal(t, expand(want.links), strings.Join(at, " "), path)
	}
}
