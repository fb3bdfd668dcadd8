package workspace

import (
	"net/url"
	"path/filepath"
	"runtime"
)

// Native spells a path with slashes in the platform's way.
func Native(path string) string {
	if runtime.GOOS == "windows" {
		return `C:` + filepath.FromSlash(path)
	}
	return path
}

// FromURI is the path that a reader takes from a file URI.
func FromURI(uri *url.URL) string {
	if runtime.GOOS == "windows" {
		if uri.Host != "" {
			return `\\` + uri.Host + filepath.FromSlash(uri.Path)
		}
		return filepath.FromSlash(uri.Path[1:])
	}
	return uri.Path
}
