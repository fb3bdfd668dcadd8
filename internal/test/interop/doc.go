// Package interop tests the built program as a process driven over pipes.
//
// Five clients drive it:
//
//   - the official TypeScript client (testdata/node), also declaring every capability and none, and
//     as a page in a browser;
//   - acpx (testdata/node-acpx), a client that starts the program for each of its commands;
//   - acp-factory (testdata/node-clients), a library that starts agents for other programs;
//   - the client of the Go SDK;
//   - the tests themselves, through package program, for what no client would do: malformed requests,
//     signals, several lines in one write.
//
// Everything the program writes is validated against the ACP v1 schema by internal/conform/schema.
// Where a turn must last until it is ended, package scripted is the agent behind the program.
//
// "make npm" installs the npm packages. Without them the tests that need them are skipped, except
// in CI. Package stock fills the session store before the program starts. Package program builds
// the program; ACP_AGENT_BINARY names another one to test, such as one built with -race.
package interop
