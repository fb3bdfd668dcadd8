package proxy

import "github.com/acp-agent/acp-agent/acp/child"

// Names are the profile and the command line of a command.
func Names(c child.Command) (string, string) { return agentName(c), commandLine(c) }
