package interop

import (
	"testing"

	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/interop/scripted"
)

// The test binary also serves as the agent behind the program.
func TestMain(m *testing.M) {
	program.Main(m, func(role string) int {
		if role == "keeper" {
			return scripted.PlayKeeper()
		}
		return scripted.Play()
	})
}
