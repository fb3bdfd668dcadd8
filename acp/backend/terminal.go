package backend

import (
	"strings"

	sdk "github.com/coder/acp-go-sdk"
)

// TerminalParams returns the members of the params of terminal/create that say what runs. env has
// entries NAME=VALUE.
func TerminalParams(program string, args, env []string) map[string]any {
	params := map[string]any{"command": program, "args": append([]string{}, args...)}
	if len(env) > 0 {
		variables := make([]sdk.EnvVariable, len(env))
		for i, entry := range env {
			variables[i].Name, variables[i].Value, _ = strings.Cut(entry, "=")
		}
		params["env"] = variables
	}
	return params
}
