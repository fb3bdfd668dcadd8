// Package worktree makes linked worktrees of git for all folders of a session, and removes them.
//
// The worktrees are folders like others: no path is mapped to another one. [Registry.Plan] finds
// out what is to be made and whether that is possible, without an effect. [Plan.Make] makes all of
// it or nothing. [Registry.Remove] removes only what has nothing to lose, and keeps the branch.
//
// Git runs without anything that a repository chooses: no hook, no fsmonitor, no filter, no network
// (git.go). Where the system has a sandbox, git may write only the repository and the new folders.
//
//	plan.go      what would be made for a session's folders
//	checkout.go  the branch and commit for one of them, and what its worktree will lack
//	make.go      making it in a hidden folder, and undoing what was made after an error or a kill
//	copy.go      ignored files that the user wants in new worktrees
//	registry.go  the worktrees that were made
//	changes.go   what was done in them, and how far it is
//	snapshot.go  what any folder of a session had before, to compare it in the same way
//	commit.go    committing it in all repositories, as the user does
//	origin.go    the folder of which another is a worktree, whoever made it
//	remove.go    removing them; inspect.go what speaks against it, busy_linux.go who uses them
package worktree
