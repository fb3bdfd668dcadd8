// Package commands answers the adapter's slash commands without a model, for any backend.
//
// [Answer] answers one, in a file per command; what it needs of its session is [Session].
// [Announce] adds the commands to those that a backend announces. What an answer looks like is
// decided here too, once for all commands: [Reply] sends text as whole Markdown and shows tool
// calls, [Root] is a root under the label that answers use for it.
package commands
