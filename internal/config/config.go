package config

import (
	"strconv"

	"github.com/acp-agent/acp-agent/internal/policy"
)

// Config is the content of the configuration file. The zero value stands for a missing file.
type Config struct {
	StateDir   string      `json:"stateDir"`
	LogLevel   string      `json:"logLevel"`
	LogFile    string      `json:"logFile"`
	Trace      string      `json:"trace"`
	MaxLine    *int        `json:"maxLine"`
	Mounts     string      `json:"mounts"`
	ReplayRate *int        `json:"replayRate"`
	Store      string      `json:"store"`
	Workspaces []Workspace `json:"workspaces"`
	Omitted    whenOmitted `json:"whenOmitted"`
	// Permissions are rules for all sessions; see [Config.PermissionsFor].
	Permissions *policy.Permissions `json:"permissions"`
	Agent       string              `json:"agent"`      // see settings.answering
	Model       string              `json:"model"`      // likewise
	Agents      map[string]Agent    `json:"agents"`     // by name
	MCPServers  map[string]Server   `json:"mcpServers"` // by name, or "*" for all others
	Models      map[string]Model    `json:"models"`     // by ID
	Notify      []string            `json:"notify"`     // a command with its arguments

	Path string
}

// whenOmitted says which folders a session gets if it is loaded by a request without
// additionalDirectories.
type whenOmitted string

const (
	useConfigured whenOmitted = "configured" // those of --dir and workspaces
	useStored     whenOmitted = "stored"     // those that it had
)

// Setting is a setting in the configuration file and its value, "" if the file does not have it.
type Setting struct{ Flag, Key, Value string }

// Settings returns all settings that have a flag.
func (c Config) Settings() []Setting {
	number := func(n *int) string {
		if n == nil {
			return ""
		}
		return strconv.Itoa(*n)
	}
	return []Setting{
		{"state-dir", "stateDir", c.StateDir},
		{"store", "store", c.Store},
		{"log-level", "logLevel", c.LogLevel},
		{"log-file", "logFile", c.LogFile},
		{"trace", "trace", c.Trace},
		{"max-line", "maxLine", number(c.MaxLine)},
		{"mounts", "mounts", c.Mounts},
		{"replay-rate", "replayRate", number(c.ReplayRate)},
		{"keep-dirs", "whenOmitted", c.keepDirs()},
	}
}

// keepDirs returns the value of --keep-dirs.
func (c Config) keepDirs() string {
	switch c.Omitted {
	case useStored:
		return "true"
	case useConfigured:
		return "false"
	}
	return ""
}

func override[T any](value, configured *T) {
	if configured != nil {
		*value = *configured
	}
}
