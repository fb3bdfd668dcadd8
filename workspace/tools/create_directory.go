package tools

import "context"

type createDirectoryInput struct {
	Path string `json:"path" jsonschema:"the new directory"`
}

type createdDirectory struct{ location }

func (s *Set) createDirectoryTool() Tool {
	return define(s, Tool{
		Name:        "create_directory",
		Description: "Create a directory in an existing one.",
		Annotations: Annotations{Idempotent: true},
	}, func(in *schema) { in.notEmpty("path") }, s.createDirectory)
}

func (s *Set) createDirectory(ctx context.Context,
	in createDirectoryInput) (createdDirectory, error) {
	c, err := planDirectory(s.ws, in.Path)
	if err == nil {
		err = s.apply(ctx, c)
	}
	if err != nil {
		return createdDirectory{}, err
	}
	return createdDirectory{locate(c.Ref)}, nil
}

func (c createdDirectory) String() string { return c.location.String() + " was created\n" }
