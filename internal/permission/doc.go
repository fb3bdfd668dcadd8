// Package permission decides what an agent may do without asking the user.
//
// [Decide] is the only function that decides. It compares an [Action], which is what an agent says
// that it will do, with [Rules], which come from the user's configuration, from answers that the
// user gave before, and from the mode of a session. Deny rules come first, then ask rules, then
// allow rules; without a matching rule the user is asked.
//
//	rule.go        rules, and what they have in common
//	rule_files.go  rules for reading and changing files: how they are written, what they match
//	rule_run.go    rules for commands
//	rule_tool.go   rules for tools of MCP servers
//	rule_fetch.go  rules for hosts
//	rule_kept.go   roots that may only be read
//	decide.go      actions, and the decision
//	search.go      parts of an action that deny and ask rules look for
//	request.go     the action in a session/request_permission
//	input.go       what the members of a tool's input mean
//	arguments.go   what the arguments of a tool of an MCP server may mean
//	place.go       the folders of a session, against which paths are checked
//	mentions.go    files that words may name
//	built.go       what a command does without naming it
//	offer.go       the rule that allows an action from now on, in words
//	permits.go     the rules that hold in a session, and what the user has answered there
//	access.go      files that are read and changed without a question
//	autorun.go     files that programs run or obey by themselves
//
// Deny and ask rules match any part of an action, and text that is not understood. Allow rules need
// an action that is understood as a whole: there are no lists of what is dangerous. That of commands
// that change files (rule_kept.go) only says what is denied, in place of asked about, in a root that
// may only be read.
//
// [Rules.Guard] makes deny and ask rules hold for whoever uses a workspace. Nothing here checks what a
// program then does.
package permission
