// Package interop holds no code, only tests of the built program as its users meet it: a
// process, driven over real pipes.
//
// Three clients drive it:
//
//   - the official TypeScript client (testdata/node/client.mjs), so that somebody
//     else's idea of the protocol is part of the proof;
//   - transcripts (testdata/*.txtar), which show every byte of short conversations and
//     are rewritten with go test ./interop -run Transcripts -update;
//   - the tests themselves, through package pipes, where a test needs what no client would
//     do: malformed requests, signals, several lines in one write.
//
// Whatever the program writes in any of them is validated against the schema of ACP v1
// by package schema (clause W1). Where a turn must last until somebody ends it, package
// scripted is the agent behind the program.
//
// The schema and the TypeScript client come with the packages of testdata/node: "npm ci" there, or
// "make test". Without them the tests that need them are skipped, except where CI is set.
// ACP_AGENT_BINARY names a program to test instead of a fresh build, such as one that
// was built with -race.
package interop
