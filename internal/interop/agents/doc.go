// Package agents holds no code, only tests of the built program in front of real agents, those that people
// use. Nothing leaves the machine: package modelserver stands for the model of each.
//
// The client in front is ours, package client, and once the official TypeScript client, a script in
// testdata/node-agents. Which agents, and how each is brought to run without an account, a question or an update, stands in the files
// that end in subjects_test.go. Their packages are those of testdata/node-agents: "make test" installs what the tests here
// need, "make interop-agents" also those of testdata/node-agents/more, and writes the tables of
// docs/agents.md anew. Without packages the tests that need them are skipped, except where CI is set; so
// they are on platforms that the packages are not for.
//
// ACP_AGENT_BINARY names a program to test instead of a fresh build.
package agents
