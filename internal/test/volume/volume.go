// Package volume says how often tests repeat what they prove by its number: random operations,
// combinations, and places where something fails; and how long they wait. It must only be imported
// by tests.
package volume

import (
	"flag"
	"os"
	"strconv"
	"time"
)

// Patience is how long tests wait for what must happen. A busy machine does not use it up: only a
// fault does.
const Patience = 3 * time.Minute

// Full reports whether ACP_AGENT_VOLUME is set, as make kills does.
func Full() bool { return os.Getenv("ACP_AGENT_VOLUME") != "" }

// Of returns few, which is what the normal run does, or many if the volume is full.
func Of(few, many int) int {
	if Full() {
		return many
	}
	return few
}

// Checks makes package rapid check each property as often as [Of] says, unless the flag
// -rapid.checks follows. It is for TestMain.
func Checks(few, many int) {
	if err := flag.Set("rapid.checks", strconv.Itoa(Of(few, many))); err != nil {
		panic(err) // the test does not import rapid
	}
}
