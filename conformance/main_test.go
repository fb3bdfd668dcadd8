package conformance

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "rewrite what is generated in docs/conformance.md")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
