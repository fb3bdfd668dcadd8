package tools

import (
	"context"
	"errors"
)

type moveFileInput struct {
	Path string `json:"path"`
	To   string `json:"to" jsonschema:"the new path, in an existing directory, {path}" min:"1"`
}

// planMove plans to give a file, link or directory a new path.
func (s *service) planMove(_ context.Context, in moveFileInput) (Change, error) {
	info, target, err := s.checked.RenameTarget(in.Path, in.To)
	if err != nil {
		return Change{}, err
	}
	c := Change{Kind: Move, Asked: in.Path, Ref: info.Ref(), AskedTo: in.To, To: target,
		What: typeName(info.Mode())}
	if alike := lookAlike(s.checked, in.To, looksExactly); alike != c.Ref.Path() {
		c.Alike = alike
	}
	return c, errors.Join(showable(in.Path, c.Ref), showable(in.To, c.To))
}
