// Package found starts the MCP servers that files in roots configure, once the user has allowed it.
//
//	server, err := found.New(artifact, workspace)
//	start, err := server.Ask(ctx, user, consents, workspace)
//	// start may be started
package found
