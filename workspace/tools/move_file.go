package tools

import (
	"context"
	"fmt"
)

type moveFileInput struct {
	Path string `json:"path"`
	To   string `json:"to" jsonschema:"the new path, in an existing directory, PATH" min:"1"`
}

type movedFile struct {
	From location
	To   location
	Type string // what was moved: file, directory, link or other
}

func (s *Set) moveFile(ctx context.Context, in moveFileInput) (movedFile, error) {
	c, err := planMove(s.ws, in.Path, in.To)
	if err == nil {
		c, err = s.apply(ctx, c)
	}
	if err != nil {
		return movedFile{}, err
	}
	return movedFile{From: locate(c.Ref), To: locate(c.To), Type: c.What}, nil
}

func (m movedFile) String() string {
	return fmt.Sprintf("%s was moved to %s (%s)\n", m.From, m.To, m.Type)
}
