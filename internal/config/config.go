// Package config reads, checks and edits the configuration file. It does not know flags and
// environment variables: package main lets these take precedence.
//
//   - config.go: the file as a whole, and the settings that have a flag.
//   - read.go: finding, decoding, and errors that name the key or the line.
//   - agents.go, models.go, servers.go, workspaces.go: the sections, and what they mean for the
//     packages that they configure. keys.go has the keys and headers of models.
//   - edit.go: changing a file without touching the comments and the rest of it.
//
// No error quotes a value that may be secret.
package config

import "github.com/acp-agent/acp-agent/internal/permission"

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
	Permissions *permission.Permissions `json:"permissions"`
	Agent       string                  `json:"agent"`      // see settings.choice
	Model       string                  `json:"model"`      // likewise
	Agents      map[string]Agent        `json:"agents"`     // by name
	MCPServers  map[string]Server       `json:"mcpServers"` // by name, or "*" for all others
	Models      map[string]Model        `json:"models"`     // by ID
	Notify      []string                `json:"notify"`     // a command with its arguments

	Path string `json:"-"`
}

// whenOmitted says whether a session that is loaded by a request without additionalDirectories
// keeps the folders that it had. It is the value of the flag --keep-dirs.
type whenOmitted string

func override[T any](value, configured *T) {
	if configured != nil {
		*value = *configured
	}
}
