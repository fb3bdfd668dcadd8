package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"
)

// A file is part of an archive.
type file struct {
	name    string // with slashes
	content []byte
	mode    fs.FileMode
}

// The modes of files in archives.
const (
	plain      fs.FileMode = 0o644
	executable fs.FileMode = 0o755
)

// writeArchives writes the archive of each program: a zip file for Windows and a compressed tar
// file for the others.
func (r *release) writeArchives() error {
	for _, p := range r.programs {
		content, err := os.ReadFile(p.path)
		if err != nil {
			return err
		}
		files := append(slices.Clone(r.files), file{p.executable(), content, executable})
		pack := tarball
		if p.os == "windows" {
			pack = zipped
		}
		archive, err := pack(files, r.version.Date)
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

// tarball returns a compressed tar file of files, which all have the same date.
func tarball(files []file, date time.Time) ([]byte, error) {
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		err := archive.WriteHeader(&tar.Header{
			Name: f.name, Mode: int64(f.mode), Size: int64(len(f.content)), ModTime: date,
			Format: tar.FormatUSTAR,
		})
		if err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	err := compressed.Close()
	return b.Bytes(), err
}

// zipped returns a zip file of files, which all have the same date.
func zipped(files []file, date time.Time) ([]byte, error) {
	var b bytes.Buffer
	archive := zip.NewWriter(&b)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: date}
		header.SetMode(f.mode)
		w, err := archive.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(w, bytes.NewReader(f.content)); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return b.Bytes(), err
}
