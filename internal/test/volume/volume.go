// Package volume says how often tests repeat what they prove by its number: random operations,
// combinations, and places where something fails. It must only be imported by tests.
package volume

import "os"

// Of returns few, which is what make test does, or many if ACP_AGENT_VOLUME is set, as make kills
// does.
func Of(few, many int) int {
	if os.Getenv("ACP_AGENT_VOLUME") != "" {
		return many
	}
	return few
}
