package tools

import "context"

type createDirectoryInput struct {
	Path string `json:"path" jsonschema:"the new directory, absolute or relative to the first root; its parent directory must exist"`
}

type createdDirectory struct{ Location }

func (s *Set) createDirectoryTool() Tool {
	return define(s, Tool{
		Name:        "create_directory",
		Title:       "Create directory",
		Description: "Create an empty directory. Fails if the path exists. The user may be asked for permission first.",
	}, func(in *schema) { in.notEmpty("path") }, s.createDirectory)
}

func (s *Set) createDirectory(ctx context.Context, in createDirectoryInput) (createdDirectory, error) {
	c, err := planDirectory(s.ws, in.Path)
	if err == nil {
		err = s.apply(ctx, c)
	}
	if err != nil {
		return createdDirectory{}, err
	}
	return createdDirectory{locate(c.Ref)}, nil
}

func (c createdDirectory) String() string { return c.Location.String() + " was created\n" }
