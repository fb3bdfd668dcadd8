package tools

import "context"

func (s *Set) deleteFile(ctx context.Context, in pathInput) (Result, error) {
	c, err := planDelete(ctx, s.ws, in.Path)
	return s.applyPlanned(ctx, c, err)
}
