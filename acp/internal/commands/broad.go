package commands

import (
	"path/filepath"

	"github.com/acp-agent/acp-agent/workspace"
)

// BroadGrant explains what access to a directory means for which BroadFolder gives a reason.
const BroadGrant = "including the keys, passwords and settings of your programs, and searches " +
	"will be slow"

// BroadFolder says why dir, a real path, has far more in it than a project: it is the top of a file
// system, or it is or contains home, which is a real path too. It is "" for other directories.
func BroadFolder(dir, home workspace.Dir) string {
	path := filepath.Clean(dir.String())
	if filepath.Dir(path) == path {
		return "is the top of the file system"
	}
	switch rel, err := filepath.Rel(path, home.String()); {
	case home.IsZero() || err != nil || !filepath.IsLocal(rel):
		return ""
	case rel == ".":
		return "is your home directory"
	default:
		return "contains your home directory"
	}
}
