package model

import _ "embed"

//go:embed system.md
var systemText string

// systemPrompt returns what the model is told first: our own text, the roots, their instructions and their skills.
func (s *session) systemPrompt(m mode) string { return systemText }
