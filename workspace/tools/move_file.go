package tools

import "context"

type moveFileInput struct {
	Path string `json:"path"`
	To   string `json:"to" jsonschema:"the new path, in an existing directory, PATH" min:"1"`
}

func (s *service) moveFile(ctx context.Context, in moveFileInput) (Result, error) {
	c, err := s.planMove(in.Path, in.To)
	return s.applyPlanned(ctx, c, err)
}
