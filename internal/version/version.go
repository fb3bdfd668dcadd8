// Package version says which version of acp-agent a program was built from.
package version

import (
	"runtime/debug"
	"strings"
	"time"
)

// development is the number of a program whose version Go did not record.
const development = "0.0.0-dev"

// Version describes what a program was built from.
type Version struct {
	// Number is a semantic version without a leading v.
	Number string
	// Commit is the revision, "" if it is not known: Go records it only for builds from a checkout.
	Commit string
	// Date is when the commit was made, in UTC, zero if it is not known.
	Date time.Time
	// Changed means that the checkout had changes that were not committed.
	Changed bool
}

// Of returns the version of a program with the given build information, which may be nil.
func Of(info *debug.BuildInfo) Version {
	v := Version{Number: development}
	if info == nil {
		return v
	}
	number, _, changed := strings.Cut(strings.TrimPrefix(info.Main.Version, "v"), "+dirty")
	v.Changed = changed
	if number != "" && number != "(devel)" {
		v.Number = number
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.time":
			v.Date, _ = time.Parse(time.RFC3339, s.Value) // zero if malformed
		case "vcs.modified":
			v.Changed = v.Changed || s.Value == "true"
		}
	}
	return v
}
