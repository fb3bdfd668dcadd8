package tools

import (
	"context"
	"fmt"
)

type deletedFile struct {
	location
	Type string // what was deleted: file, directory, link or other
}

func (s *Set) deleteFile(ctx context.Context, in pathInput) (deletedFile, error) {
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
