package tools

import (
	"context"
	"fmt"
)

type deleteFileInput struct {
	Path string `json:"path"`
}

type deletedFile struct {
	location
	Type string // what was deleted: file, directory, link or other
}

func deleteFileTool() definition {
	return define(Tool{
		Name:        "delete_file",
		Description: "Delete a file, a link (not its target) or an empty directory.",
		Annotations: Annotations{Destructive: true, Idempotent: true},
		Kind:        KindDelete, HoldsFile: true,
	}, func(in deleteFileInput) string {
		return about("Delete", in.Path, "a file")
	}, func(in *schema) { in.notEmpty("path") }, (*Set).deleteFile)
}

func (s *Set) deleteFile(ctx context.Context, in deleteFileInput) (deletedFile, error) {
	c, err := planDelete(ctx, s.ws, in.Path)
	if err == nil {
		c, err = s.apply(ctx, c)
	}
	if err != nil {
		return deletedFile{}, err
	}
	return deletedFile{locate(c.Ref), c.What}, nil
}

func (d deletedFile) String() string {
	return fmt.Sprintf("%s was deleted (%s)\n", d.location, d.Type)
}
