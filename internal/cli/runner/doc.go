// Package runner opens a session as an editor does, sends one prompt, and shows the answer on a
// terminal.
package runner
