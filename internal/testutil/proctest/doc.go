// Package proctest is for tests that start processes. The test binary plays them itself, each in a role, so that
// there is nothing to build and nothing to install:
//
//	func TestMain(m *testing.M) { proctest.Main(m, play) }
//
//	// play does what a process does, and returns its exit status.
//	func play(role string) int { … }
//
//	cmd := exec.Command(proctest.Executable())
//	cmd.Env = append(os.Environ(), proctest.Env("echo")...)
//
// Three things show a test what became of a process, without a wait for "long enough":
//
//   - [Holders]: a process that calls [Hold] has a connection, which the system closes when it ends, whoever started it
//     and whether or not somebody has collected it;
//   - [Mark], on Linux: a variable in the environment finds processes that play nothing, such as servers from npm, and all
//     that they have started;
//   - [Record]: the lines that a process was sent, if it reads its [Input].
//
// [AsOrdinaryUser] runs a test again without the powers of root. Only tests import it.
package proctest
