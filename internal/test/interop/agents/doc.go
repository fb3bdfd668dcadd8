// Package agents tests the built program in front of real agents. Nothing leaves the machine:
// package modelserver takes the place of their models.
//
// The client is package acp/client. subjects_test.go lists the agents and how each runs without an
// account, a question or an update. "make npm" installs the packages that the tests here need;
// "make interop-agents" also installs those of testdata/node-agents/more and rewrites the tables of
// docs/agents-compared.md. Tests whose packages are missing are skipped, except in CI.
//
// recorded_test.go tests the configurations of docs/editors.md. testdata/editors has what their
// editors sent, and the drivers that run the editors to record it:
//
//	ACP_AGENT_NVIM=nvim ACP_AGENT_EMACS=emacs ACP_AGENT_PLUGINS=DIR go test ./internal/test/interop/agents -run Recorded -record
//
// DIR contains git checkouts of codecompanion.nvim, plenary.nvim, agentic.nvim, acp.el, shell-maker
// and agent-shell.
//
// ACP_AGENT_BINARY names a program to test instead of a fresh build.
package agents
