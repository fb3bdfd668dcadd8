// Package found starts the MCP servers that files in roots configure, once the user has allowed it.
//
//	server, err := found.New(artifact, workspace)
//	err = server.Ask(ctx, user, consents, workspace)
//	// server.Start may be started
//
// # Where to find things
//
//   - server.go: a [Server], what identifies it, and what the user is shown of it
//   - artifact.go: the server that discovery found
//   - files.go: the files that its configuration names, which an agent may change
//   - consent.go: the question whether it may start
package found
