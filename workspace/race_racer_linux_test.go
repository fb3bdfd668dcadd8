package workspace_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/acp-agent/acp-agent/workspace"
)

// racer does things, and has a name of its own to move things to and from.
type racer struct {
	ws      *workspace.Workspace
	scratch string
}

type raceOperation struct {
	name string
	do   func(r *racer, path string) (string, error)
}

// reading is an operation that is in the corpus too.
func reading(name string) raceOperation {
	for _, op := range operations {
		if op.name == name {
			return raceOperation{name, func(r *racer, path string) (string, error) { return op.do(r.ws, path) }}
		}
	}
	panic("no operation " + name)
}

var raceable = []raceOperation{
	reading("read"), reading("text"), reading("list"), reading("search"), reading("stat"), reading("lstat"), reading("readlink"),
	reading("fs-read"), reading("write"), reading("write-new"), reading("open"), reading("create"), reading("append"),
	reading("truncate"), reading("fs-create"), reading("chmod"), reading("mkdir"), reading("mkdirall"), reading("remove"),
	reading("removeall"),
	{"read by handle", (*racer).readByHandle},
	{"times", (*racer).setTimes},
	{"rename from", (*racer).moveFrom},
	{"rename to", (*racer).moveTo},
	{"copy from", (*racer).copyFrom},
	{"copy to", (*racer).copyTo},
}

func (r *racer) readByHandle(path string) (string, error) {
	d, err := r.ws.OpenDir(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	defer d.Close()
	f, err := d.Open(filepath.Base(path))
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	return string(text), err
}

func (r *racer) setTimes(path string) (string, error) {
	return "", r.ws.FsWith(readWrite).Chtimes(path, time.Unix(1, 0), time.Unix(1, 0))
}

func (r *racer) moveFrom(path string) (string, error) {
	return r.from(path, (*workspace.Workspace).Rename)
}
func (r *racer) copyFrom(path string) (string, error) {
	return r.from(path, (*workspace.Workspace).RenameByCopy)
}
func (r *racer) moveTo(path string) (string, error) { return r.to(path, (*workspace.Workspace).Rename) }
func (r *racer) copyTo(path string) (string, error) {
	return r.to(path, (*workspace.Workspace).RenameByCopy)
}

type rename = func(*workspace.Workspace, context.Context, string, string, workspace.RenameOptions) (workspace.Ref, error)

// from moves what is at path to a place of its own, and reads it there.
func (r *racer) from(path string, by rename) (string, error) {
	ctx := context.Background()
	if err := r.ws.RemoveAll(ctx, r.scratch, workspace.RemoveOptions{}); err != nil {
		return "", err
	}
	if _, err := by(r.ws, ctx, path, r.scratch, workspace.RenameOptions{}); err != nil {
		return "", err
	}
	text, _, _ := read(r.ws, r.scratch)
	return text, nil
}

// to moves a file, or a directory with one, to path.
func (r *racer) to(path string, by rename) (string, error) {
	ctx := context.Background()
	if err := r.ws.RemoveAll(ctx, r.scratch, workspace.RemoveOptions{}); err != nil {
		return "", err
	}
	name := r.scratch
	if filepath.Base(path) != "f" {
		name = filepath.Join(r.scratch, "f")
		if _, err := r.ws.Mkdir(r.scratch, 0o755, workspace.MkdirOptions{}); err != nil {
			return "", err
		}
	}
	if err := scribble(r.ws.OpenFile(name, os.O_WRONLY|os.O_CREATE, workspace.OpenOptions{})); err != nil {
		return "", err
	}
	_, err := by(r.ws, ctx, r.scratch, path, workspace.RenameOptions{})
	return "", err
}
