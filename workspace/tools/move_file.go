package tools

import (
	"context"
	"fmt"
)

type moveFileInput struct {
	Path string `json:"path"`
	To   string `json:"to" jsonschema:"the new path, in an existing directory, PATH" min:"1"`
}

func (s *Set) moveFile(ctx context.Context, in moveFileInput) (plain, error) {
	c, err := planMove(s.ws, in.Path, in.To)
	if err == nil {
		c, err = s.apply(ctx, c)
	}
	if err != nil {
		return "", err
	}
	return plain(fmt.Sprintf("%s was moved to %s (%s)\n", locate(c.Ref), locate(c.To), c.What)), nil
}
