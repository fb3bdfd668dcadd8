// Package commandline reads command lines of a shell.
//
// [Read] returns everything that a line may run, for rules that deny or ask. [Understand] answers
// one question, for rules that allow: is a line a single command whose every word is known, and that
// names nothing outside the roots of a session? Only then may a rule such as "always allow go test"
// apply to it. Everything that is not listed is not understood; there are no lists of what is
// forbidden.
//
//	split.go       a line as words and operators
//	line.go        all commands that a line may run
//	understand.go  a line as a command of the table, and a rule in words
//	programs.txt   the table: programs, their options and what else they may be given
//	programs.go    the table as it is read
//	paths.go       words that are or could be paths
//	git.go         repositories whose configuration runs nothing
//	reads.go       what a command may print
//
// A rule covers what the command itself runs and loads, such as tests and a Makefile. It does not
// cover other programs, other folders, and settings that its words could change.
package commandline
