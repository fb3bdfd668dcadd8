package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/version"
)

// ownVersion returns the version of this program.
var ownVersion = sync.OnceValue(func() version.Version {
	info, _ := debug.ReadBuildInfo() // can be nil
	return version.Of(info)
})

// printVersion prints the version of the program, its platform and Go, and the commit if known.
func printVersion(s streams) error {
	v := ownVersion()
	commit := ""
	if v.Commit != "" {
		commit = " commit " + v.Commit
		if !v.Date.IsZero() {
			commit += " of " + v.Date.UTC().Format(time.DateOnly)
		}
		if v.Changed {
			commit += " with changes"
		}
	}
	_, err := fmt.Fprintf(s.out, "acp-agent %s %s/%s %s%s\n",
		v.Number, runtime.GOOS, runtime.GOARCH, runtime.Version(), commit)
	return err
}

func newVersion(set *settings) *cobra.Command {
	return set.newCommand("version", noArgs, needsNothing, flags{"json": &set.json},
		func(*cobra.Command, []string) error {
			v := ownVersion()
			return set.print(struct {
				Version string `json:"version"`
				System  string `json:"system"`
				Go      string `json:"go"`
				Commit  string `json:"commit,omitempty"`
			}{v.Number, runtime.GOOS + "/" + runtime.GOARCH, runtime.Version(), v.Commit},
				func() error { return printVersion(set.streams) })
		})
}
