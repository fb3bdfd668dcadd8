package tools

import "context"

func (s *service) deleteFile(ctx context.Context, in pathInput) (Result, error) {
	c, err := s.planDelete(ctx, in.Path)
	if err != nil {
		return Result{}, err
	}
	return s.applyPlanned(ctx, c)
}
