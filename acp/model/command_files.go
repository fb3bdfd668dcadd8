package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/text"
)

const (
	// maxWords is how many words of a command are looked up as files.
	maxWords = 1000
	// maxHashed bounds the files of a command whose content is compared, in bytes.
	maxHashed = 64 << 20
)

// commandFiles are the files in the roots that a command names, such as the script it runs.
type commandFiles struct {
	names []string // as the command writes them
	// state changes if the content of one of them changes, or if one is created. It is "" if that
	// cannot be determined.
	state string
}

// commandFiles returns the files that a command names. A word counts if it is a path from the
// command's directory, or from another directory that the command names, as in "cd sub && ./run".
func (c *modelCall) commandFiles(cmd shellCommand) commandFiles {
	ws := c.turn.host.Workspace()
	words := permission.Words(cmd.line)
	if len(words) > maxWords {
		return commandFiles{}
	}
	dirs := []string{cmd.dir}
	for _, word := range words {
		dir := absolute(cmd.dir, word)
		if info, err := ws.Stat(dir); err == nil && info.Mode().IsDir() && len(dirs) < 10 {
			dirs = append(dirs, dir)
		}
	}
	var found commandFiles
	seen := map[string]bool{}
	sum, room := sha256.New(), int64(maxHashed)
	for _, word := range words {
		for _, dir := range dirs {
			path := absolute(dir, word)
			if seen[path] {
				continue
			}
			seen[path] = true
			hash, size, err := ws.Hash(path, room)
			if err != nil {
				continue
			}
			if size > room {
				return commandFiles{}
			}
			room -= size
			found.names = append(found.names, word)
			fmt.Fprintf(sum, "%q %s\n", path, hash)
		}
	}
	found.state = hex.EncodeToString(sum.Sum(nil))
	return found
}

// absolute returns a path that may be relative to a directory.
func absolute(dir, path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	return dir + "/" + path
}

// label says what a permission for the session covers.
func (f commandFiles) label() string {
	const label = "Always allow this command in this session, "
	switch n := len(f.names); {
	case f.state == "" || n == 0:
		return label + "even if files that it runs change"
	case n == 1:
		return label + "as long as " + text.Argument(f.names[0]) + " stays as it is"
	default:
		return label + "as long as " + text.Argument(f.names[0]) + " and " +
			text.Count(n-1, "other file", "other files") + " stay as they are"
	}
}
