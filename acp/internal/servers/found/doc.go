// Package found starts the MCP servers that files in roots configure, once the user has allowed it.
//
//	server, err := found.New(artifact, workspace)
//	err = server.Ask(ctx, user, consents, workspace)
//	// server.Start may be started
package found
