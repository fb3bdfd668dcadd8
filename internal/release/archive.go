package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"testing/fstest"
)

// The modes of files in archives.
const (
	plain      fs.FileMode = 0o644
	executable fs.FileMode = 0o755
)

// file returns a file of an archive. All of them have the commit's date.
func (r *release) file(content []byte, mode fs.FileMode) *fstest.MapFile {
	return &fstest.MapFile{Data: content, Mode: mode, ModTime: r.version.Date}
}

// writeArchives writes the archive of each program: a zip file for Windows and a compressed tar
// file for the others.
func (r *release) writeArchives() error {
	for _, p := range r.programs {
		content, err := os.ReadFile(p.path)
		if err != nil {
			return err
		}
		files := maps.Clone(r.files)
		files[p.executable()] = r.file(content, executable)
		pack := tarball
		if p.os == "windows" {
			pack = zipped
		}
		archive, err := pack(files)
		if err != nil {
			return err
		}
		if err := r.write(r.archiveName(p.target), archive); err != nil {
			return err
		}
	}
	return nil
}

// archiveName returns the file name of the archive for a platform.
func (r *release) archiveName(t target) string {
	ending := ".tar.gz"
	if t.os == "windows" {
		ending = ".zip"
	}
	return fmt.Sprintf("acp-agent_%s_%s_%s%s", r.version.Number, t.os, t.arch, ending)
}

// tarball returns a compressed tar file of files.
func tarball(files fs.FS) ([]byte, error) {
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	archive := tar.NewWriter(compressed)
	err := cmp.Or(archive.AddFS(files), archive.Close(), compressed.Close())
	return b.Bytes(), err
}

// zipped returns a zip file of files.
func zipped(files fs.FS) ([]byte, error) {
	var b bytes.Buffer
	archive := zip.NewWriter(&b)
	err := cmp.Or(archive.AddFS(files), archive.Close())
	return b.Bytes(), err
}
