package interop

import (
	"testing"

	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/interop/scripted"
	"github.com/acp-agent/acp-agent/internal/test/pgtest"
)

// The test binary also serves as the agent behind the program.
func TestMain(m *testing.M) {
	program.Main(stopping{m}, func(role string) int {
		if role == "keeper" {
			return scripted.PlayKeeper()
		}
		return scripted.Play()
	})
}

// database is of tests that do not stop it.
var database pgtest.Server

// stopping stops the database after the tests.
type stopping struct{ *testing.M }

func (s stopping) Run() int {
	defer database.Stop()
	return s.M.Run()
}
