// Package confine decides what a command in the sandbox may do: [Command] makes the sandbox.Policy
// of a command from a user's settings, the roots of a session, and what is installed.
//
// Where a restricted process may write, it can put a link in the place of anything. If a later
// process were granted a path that leads through this link, the first one would have chosen what
// the second one may do. So we remember every directory that a restricted process could ever write,
// and follow no link in it, unless the link leads where it led before, or the user accepts it. A
// path that was resolved has no links, and package sandbox grants it only as long as that is so.
//
// The same holds for files that name others: the file .git of a linked worktree, git's settings,
// and scripts with an interpreter. Who could have written them decides what they may name.
package confine
