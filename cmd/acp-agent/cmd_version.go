package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version returns the version of the main module, "dev" if it was built from a working tree without
// one.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "dev"
	}
	return info.Main.Version
}

// printVersion prints the version of the program, its platform and Go.
func printVersion(s streams) error {
	_, err := fmt.Fprintf(s.out, "acp-agent %s %s/%s %s\n", version(), runtime.GOOS, runtime.GOARCH,
		runtime.Version())
	return err
}

func newVersion(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE:  func(*cobra.Command, []string) error { return printVersion(s) },
	}
}
