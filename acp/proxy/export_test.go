package proxy

import "github.com/acp-agent/acp-agent/internal/process"

// WithoutBlocks is a text without what the agent was told.
func WithoutBlocks(text string) string { return withoutBlocks(text) }

// Names are the profile and the command line of a command.
func Names(c process.Command) (string, string) { return agentName(c), commandLine(c) }
