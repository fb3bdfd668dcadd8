package model

import "github.com/acp-agent/acp-agent/internal/llm"

// smallContext is the largest context, in tokens, with which the model gets only the tools of
// essentialTools: the others cost a tenth of it, and weak models choose better among few.
const smallContext = 32 << 10

// essentialTools are the tools of our own that every model has, in every context. The others do
// what several calls of these do.
var essentialTools = map[string]bool{
	"list_directory": true, "read_file": true, "find_files": true, "search": true,
	"write_file": true, "edit_file": true, "delete_file": true, "move_file": true,
	"run_command": true, "update_plan": true,
}

// ownTokens is about how many tokens our own text and the essential tools have.
const ownTokens = 2500

// leastInstructions and mostInstructions bound the part of the context that the instructions of
// folders may have, a twenty-fifth, in bytes. Small contexts have room for less.
const leastInstructions, mostInstructions = 32 << 10, 256 << 10

// shares are how much of the context the parts of the beginning of each request may have, in bytes:
// together about half of it, so that there is room for the conversation.
type shares struct {
	instructions, skills, serverWords int
	serverTools                       int // the tools of MCP servers
	names                             int // at the top of each root, not bytes
}

// sharesOf returns the shares for a model.
func sharesOf(m llm.Model) shares {
	tokens := room(m)
	instructions := min(max(m.ContextTokens*bytesPerToken/25, leastInstructions), mostInstructions)
	if m.InstructionTokens > 0 {
		instructions = m.InstructionTokens * bytesPerToken
	}
	quarter := max(tokens-ownTokens, ownTokens/4) * bytesPerToken / 4
	return shares{
		instructions: min(instructions, quarter*3/4),
		skills:       min(maxSkills, quarter/4),
		serverWords:  min(maxServerWords, quarter/4),
		serverTools:  quarter,
		names:        min(maxOverview, max(tokens/300, 5)),
	}
}
