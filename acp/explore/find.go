package explore

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// find answers /find.
func (t *turn) find(ctx context.Context, p prompt) error {
	if p.text == "" {
		return t.write("Say what to find: " + code("/find GLOB") + ", such as " + code("/find **/*.go") + ".\n")
	}
	if !doublestar.ValidatePattern(p.text) {
		return t.write(code(p.text) + " is no glob: a bracket or a brace is not closed, or nothing follows a backslash.\n")
	}
	call, err := t.begin(toolSearch, "Find "+p.text, map[string]string{"glob": p.text})
	if err != nil {
		return err
	}
	files, list := t.tree(), t.listing("file", "files")
	err = files.walk(ctx, func(f *folder) error {
		for _, name := range f.files {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			rel := f.join(name)
			if !globMatches(p.text, rel) {
				continue
			}
			if err := list.add(f.root.Index, f.root.show(rel), location{Path: f.root.path(rel)}); err != nil {
				return err
			}
		}
		return t.flush()
	})
	return t.finish(err, call, list, files)
}

// globMatches compares a path with a glob, and its last name with one that has no slash.
func globMatches(glob, rel string) bool {
	glob = strings.TrimPrefix(glob, "./")
	if !strings.Contains(glob, "/") && doublestar.MatchUnvalidated(glob, path.Base(rel)) {
		return true
	}
	return doublestar.MatchUnvalidated(glob, rel)
}

// finish ends a look at the files: err is what ended it.
func (t *turn) finish(err error, call tool, list *listing, files *tree) error {
	if err != nil && err != errEnough {
		return err
	}
	if err := t.write(list.end()); err != nil {
		return err
	}
	said := list.summary()
	if files.full {
		said += fmt.Sprintf(" Only the first %d files were looked at, which is the limit.", t.options.MaxFiles)
	}
	if list.cut != "" {
		said += " Cut: " + list.cut + ". Ask for something narrower to see the rest."
	} else if left := files.skipped.describe(t.options.MaxFileSize); left != "" {
		said += " " + left
	}
	if err := call.end(toolCompleted, said, list.places); err != nil {
		return err
	}
	return t.write(said + "\n")
}
