package proctest

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// Role is the environment variable that names the role of a process. [Env] sets it.
const Role = "ACP_AGENT_TEST_ROLE"

// Main is a package's TestMain: it plays the role that the process was started in, and in none it runs the tests
// and fails if they leave a goroutine behind.
func Main(m *testing.M, play func(role string) int) {
	Play(play)
	goleak.VerifyTestMain(m)
}

// Play plays the role that the process was started in and exits with the status that play returns. In no
// role it returns at once: it is for a TestMain that has more to do than [Main].
func Play(play func(role string) int) {
	if role := os.Getenv(Role); role != "" {
		os.Exit(play(role))
	}
}

// Executable is the path of the test binary. It panics if the system does not tell.
func Executable() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

// Env are the variables, as "NAME=VALUE", of a process in a role: env, and what this package adds.
func Env(role string, env ...string) []string {
	return append(env[:len(env):len(env)], Role+"="+role, "GORACE=atexit_sleep_ms=0")
}
