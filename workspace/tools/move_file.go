package tools

import "context"

type moveFileInput struct {
	Path string `json:"path"`
	To   string `json:"to" jsonschema:"the new path, in an existing directory, {path}" min:"1"`
}

func (s *service) moveFile(ctx context.Context, in moveFileInput) (Result, error) {
	c, err := s.planMove(in.Path, in.To)
	if err != nil {
		return Result{}, err
	}
	return s.applyPlanned(ctx, c)
}
