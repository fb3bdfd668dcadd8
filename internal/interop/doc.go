// Package interop holds no code, only tests of the built program as its users meet it: a
// process, driven over real pipes.
//
// Five clients drive it:
//
//   - the official TypeScript client (testdata/node), so that somebody else's idea of the
//     protocol is part of the proof;
//   - acpx (testdata/node-acpx), a product that starts the program anew for each of its commands;
//   - the client of the Go SDK, a second codec;
//   - transcripts (testdata/*.txtar), which show every byte of short conversations and
//     are rewritten with go test ./interop -run Transcripts -update;
//   - the tests themselves, through package pipes, where a test needs what no client would
//     do: malformed requests, signals, several lines in one write.
//
// Whatever the program writes in any of them is validated against the schema of ACP v1
// by package schema (clause W1). Where a turn must last until somebody ends it, package
// scripted is the agent behind the program.
//
// The schema and the TypeScript client come with the packages of testdata/node, acpx with those of
// testdata/node-acpx: "npm ci" in each, or "make test". Without them the tests that need them are
// skipped, except where CI is set. Package stock fills the session store before the program starts.
// Package program builds what is tested; ACP_AGENT_BINARY names another program instead, such as one that was built
// with -race.
package interop
