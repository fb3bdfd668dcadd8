// Package scripted is an agent that does what its prompt says, for tests and benchmarks of
// the program in front of it. The first word of a prompt is the script:
//
//	wait          says "waiting PID", then nothing until session/cancel; ends "cancelled"
//	stubborn      says "waiting PID", ignores session/cancel, ends "end_turn" after half a second
//	stream N      sends N message chunks as fast as it can; session/cancel stops it
//	say TEXT      says TEXT
//	roots         says its session's cwd and additionalDirectories, one a line
//
// It is independent of the agent's own code, and ends when its input does.
package scripted
