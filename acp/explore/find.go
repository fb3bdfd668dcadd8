package explore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// maxDepth is how deep directories are entered.
const maxDepth = 100

// scan goes through the files of all roots.
func (t *turn) scan() tools.Scan {
	return tools.Scan{Workspace: t.workspace(), Ignored: workspace.LeaveIgnored, MaxFiles: t.options.MaxFiles, MaxDepth: maxDepth}
}

// find answers /find.
func (t *turn) find(ctx context.Context, p prompt) error {
	if p.text == "" {
		return t.write("Say what to find: " + code("/find GLOB") + ", such as " + code("/find **/*.go") + ".\n")
	}
	scan := t.scan()
	var err error
	if scan.Only, err = tools.NewGlob(p.text); err != nil {
		var bad *tools.GlobError
		_ = errors.As(err, &bad)
		return t.write(code(p.text) + " is no glob: " + bad.Why + ".\n")
	}
	call, err := t.begin(toolSearch, "Find "+p.text, map[string]string{"glob": p.text})
	if err != nil {
		return err
	}
	list := t.listing("file", "files")
	folder := ""
	tally, err := scan.Files(ctx, func(f tools.File) error {
		if now := filepath.Dir(f.Path()); now != folder {
			folder = now
			if err := t.flush(); err != nil {
				return err
			}
		}
		root := t.roots[f.Root().Index]
		return list.add(root.Index, root.show(f.Rel()), location{Path: f.Path()})
	})
	return t.finish(err, call, list, tally)
}

// finish ends a look at the files: err is what ended it.
func (t *turn) finish(err error, call tool, list *listing, tally tools.Tally) error {
	if err != nil && err != errEnough {
		return err
	}
	if err := t.write(list.end()); err != nil {
		return err
	}
	said := list.summary()
	if tally.Full {
		said += fmt.Sprintf(" Only the first %d files were looked at, which is the limit.", t.options.MaxFiles)
	}
	if list.cut != "" {
		said += " Cut: " + list.cut + ". Ask for something narrower to see the rest."
	} else if left := t.leftOut(tally.Skipped); left != "" {
		said += " " + left
	}
	if err := call.end(toolCompleted, said, list.places); err != nil {
		return err
	}
	return t.write(said + "\n")
}
