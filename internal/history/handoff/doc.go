// Package handoff writes what an agent is told about a conversation that it does not have: because
// another agent led it, or because the agent has lost its session.
//
// [Digest] quotes a history, shortened part by part, without asking a model, so the same history
// gives the same text. Each part has a share of the limit, and what a part does not use goes to the
// last turns:
//
//	turns.go     reads the history into turns, without those that were undone
//	digest.go    the parts and their shares
package handoff
