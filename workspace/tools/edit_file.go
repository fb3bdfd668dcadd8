package tools

import (
	"context"
	"io/fs"
)

type editFileInput struct {
	Path       string `json:"path" jsonschema:"the file; absolute, or relative to the first root"`
	OldText    string `json:"old_text" jsonschema:"the text to replace, exactly as it is in the file, indentation included; it must be there exactly once unless replace_all is true"`
	NewText    string `json:"new_text" jsonschema:"what to put in its place"`
	ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"whether to replace it wherever it is; default false"`
	IfVersion  string `json:"if_version,omitempty" jsonschema:"the version that read_file gave: nothing is written if the file has another content by now"`
}

func (s *Set) editFileTool() Tool {
	return define(s, Tool{
		Name:  "edit_file",
		Title: "Edit file",
		Description: "Replace a text in a file by another, exactly. The user may be asked first. The answer is the difference. " +
			"Line ends are those of the file.",
		Annotations: Annotations{Destructive: true},
	}, func(in *schema) { in.notEmpty("path", "old_text", "if_version") }, s.edit)
}

func (s *Set) edit(ctx context.Context, in editFileInput) (changedFile, error) {
	r := Replacement{Old: in.OldText, New: in.NewText}
	if in.ReplaceAll {
		r.Occurrences = Every
	}
	return s.change(ctx, in.Path, in.IfVersion, func(old *string) (string, error) {
		if old == nil {
			return "", &fs.PathError{Op: "edit", Path: in.Path, Err: fs.ErrNotExist}
		}
		text, err := r.Apply(in.Path, *old)
		if err == nil && !isText([]byte(text)) {
			err = notText(in.Path, []byte(text))
		}
		return text, err
	})
}
