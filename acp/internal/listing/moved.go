package listing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// MatchCwd checks that cwd is the session's, by its spelling or its real path.
func (s *Sessions) MatchCwd(
	ctx context.Context, cwd workspace.Dir, stored sessionstore.Keys,
) error {
	if cwd == stored.Roots.Cwd() {
		return nil
	}
	var real workspace.Dir
	var hint string
	err := s.Tasks.OnDisk(ctx, func() error {
		real = workspace.Real(cwd)
		hint = MoveHint(stored.Roots.Cwd().String(), cwd.String())
		return nil
	})
	if err != nil {
		return err
	}
	if len(stored.Real) > 0 && real == stored.Real[0] {
		return nil
	}
	return strictjson.Refuse(strictjson.NewViolation("cwd", cwd.String(), strictjson.CwdMismatch).
		Expecting(stored.Roots.Cwd().String()).Hinting(hint))
}

// HintMoves adds to violations about missing folders how to make those in worktrees again, or how
// to move the session. movable are the fields with folders of the session.
func HintMoves(wrong []strictjson.Violation, movable []string, worktrees *worktree.Registry) {
	for i, v := range wrong {
		var path string
		if v.Reason != strictjson.Missing || json.Unmarshal(v.Value, &path) != nil ||
			!slices.Contains(movable, v.Field) {
			continue
		}
		if how := worktrees.Removed(path); how != "" {
			wrong[i] = v.Expecting(how)
		} else {
			wrong[i] = v.Hinting(MoveHint(path, ""))
		}
	}
}

// MoveHint returns how to move sessions after the folder that contains path was renamed, "" if path
// exists. now is where path may be now, "" if that is unknown.
func MoveHint(path, now string) string {
	if !isMissing(path) {
		return ""
	}
	// The renamed folder is the first one on the way that is missing.
	folder, below := path, ""
	for parent := filepath.Dir(folder); filepath.Clean(folder) == folder &&
		isMissing(parent); parent = filepath.Dir(folder) {
		below = string(filepath.Separator) + filepath.Base(folder) + below
		folder = parent
	}
	to := "NEW-FOLDER"
	if now != "" {
		var found bool
		if to, found = strings.CutSuffix(now, below); !found || to == "" {
			folder, to = path, now
		}
		to = text.ShellWord(to)
	}
	return "if the folder was renamed, run: acp-agent sessions move " + text.ShellWord(folder) +
		" " + to
}

func isMissing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// MovedRoots returns a message to the user about roots whose paths lead elsewhere than when the
// session was last opened, or "". The request names them, so they are opened, but somebody other
// than the user may have replaced them.
func (s *Sessions) MovedRoots(
	id sessionstore.ID, stored sessionstore.Keys, opened []workspace.Root,
) string {
	var lines []string
	for i, dir := range stored.Roots.All() {
		for _, root := range opened {
			if root.Dir == dir && root.Recorded() != stored.Real[i] {
				s.Log.Warn(
					"a root now points somewhere else than when the session was last opened",
					"session", id, "root", dir, "now", root.Real, "before", stored.Real[i])
				lines = append(lines, fmt.Sprintf("The folder %s now leads to %s. When this "+
					"session was last opened, it led to %s.\n\n",
					text.Printable(dir.String()), text.Printable(root.Real.String()),
					text.Printable(stored.Real[i].String())))
			}
		}
	}
	return strings.Join(lines, "")
}
