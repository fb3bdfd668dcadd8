// Package config reads, checks and edits the configuration file. It does not know flags and
// environment variables: package main lets these take precedence.
//
//   - config.go: the file as a whole, and the settings that have a flag.
//   - read.go: finding, decoding, and errors that name the key or the line.
//   - agents.go, models.go, servers.go, workspaces.go: the sections, and what they mean for the
//     packages that they configure. keys.go has the keys and headers of models.
//   - edit.go: changing a file without touching the comments and the rest of it.
//
// No error quotes a value that may be secret.
package config
