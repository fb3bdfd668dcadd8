package agents

import (
	"testing"

	"github.com/acp-agent/acp-agent/internal/test/interop/program"
)

func TestMain(m *testing.M) { program.Main(m, nil) }
