package tools

import (
	"context"
	"fmt"
)

func (s *Set) deleteFile(ctx context.Context, in pathInput) (plain, error) {
	c, err := planDelete(ctx, s.ws, in.Path)
	if err == nil {
		c, err = s.apply(ctx, c)
	}
	if err != nil {
		return "", err
	}
	return plain(fmt.Sprintf("%s was deleted (%s)\n", locate(c.Ref), c.What)), nil
}
