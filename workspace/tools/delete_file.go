package tools

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"github.com/acp-agent/acp-agent/workspace"
)

// planDelete plans to delete a file, a link or an empty directory.
func (s *service) planDelete(ctx context.Context, in pathInput) (Change, error) {
	info, err := s.checked.RemoveTarget(in.Path)
	if err != nil {
		return Change{}, err
	}
	c := Change{Kind: Delete, Asked: in.Path, Ref: info.Ref(), What: typeName(info.Mode()), shown: info}
	if err := showable(in.Path, c.Ref); err != nil {
		return Change{}, err
	}
	switch c.What {
	case "directory":
		return c, s.requireEmpty(ctx, in.Path)
	case "file":
		now, err := s.currentText(ctx, nil, in.Path, c.Ref)
		switch {
		case errors.As(err, new(*workspace.NotTextError)),
			errors.As(err, new(*workspace.TooLargeError)): // it is deleted without showing it
		case err != nil:
			return Change{}, err
		case now != nil:
			c.Old, c.edited = &now.disk, *now
		}
	}
	return c, nil
}

// requireEmpty returns an error unless the directory at path is empty.
func (s *service) requireEmpty(ctx context.Context, path string) error {
	dir, err := s.checked.OpenDir(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	entries, err := dir.Entries(ctx)
	if err == nil && len(entries) > 0 {
		err = &fs.PathError{Op: "delete", Path: path, Err: syscall.ENOTEMPTY}
	}
	return err
}
