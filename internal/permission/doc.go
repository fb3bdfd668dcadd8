// Package permission decides what an agent may do without asking the user.
//
// [Decide] is the only function that decides. It compares an [Action], all that an agent says
// that it will do, with [Rules], which come from the user's configuration, from answers that the
// user gave before, and from the mode of a session. Deny rules come first, then ask rules, then
// allow rules; without a matching rule the user is asked.
//
// A session/request_permission (request.go) becomes an action (read_request.go, action.go), about
// which the rules (rule.go, and a file for each verb) decide (decide.go). What is read on the way
// from words to files is in command.go, mentions.go and place.go; arguments.go reads what a tool
// gets. spelling.go tells what may be names of the same file.
//
// Deny and ask rules match any part of an action, and text that is not understood. Allow rules need
// an action that is understood as a whole: there are no lists of what is dangerous. That of
// commands that change files (rule_read_only.go) only says what is denied, in place of asked about,
// in a root that may only be read.
//
// [Rules.Guard] makes deny and ask rules hold for whoever uses a workspace. Nothing here checks
// what a program then does.
package permission
