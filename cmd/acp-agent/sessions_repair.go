package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// repairReport is what a repair did, as it is shown.
type repairReport struct {
	Damaged    string            `json:"damagedFile"`
	Sessions   int               `json:"sessions"`
	Updates    int               `json:"updates"`
	Incomplete []sessionstore.ID `json:"incomplete,omitempty"`
	Lost       []sessionstore.ID `json:"lost,omitempty"`
}

// repairFlags are those of the repair subcommand.
type repairFlags struct{ json bool }

func newSessionsRepair(s streams, f *serveFlags) *cobra.Command {
	var r repairFlags
	cmd := &cobra.Command{
		Use:   "repair",
		Short: "Make a damaged session store usable again",
		Long: "repair copies what can be read of a damaged session store into a new one, and keeps the damaged file beside it. " +
			"Close your editors first. A store that is not damaged is left alone; the damagedFile of --json is empty then.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := f.state()
			if err != nil {
				return err
			}
			done, err := sqlite.Repair(cmd.Context(), sqlite.Options{Dir: dir})
			if err != nil {
				return err
			}
			return r.show(s, repairReport(done))
		},
	}
	cmd.Flags().BoolVar(&r.json, "json", false, "print one JSON object")
	return cmd
}

func (r repairFlags) show(s streams, done repairReport) error {
	if r.json {
		return json.NewEncoder(s.out).Encode(done)
	}
	if done.Damaged == "" {
		_, err := fmt.Fprintln(s.out, "the session store is not damaged; nothing was changed")
		return err
	}
	fmt.Fprintf(s.out, "kept %s with %s\n", countOf(done.Sessions, "session"), countOf(done.Updates, "update"))
	for _, id := range done.Incomplete {
		fmt.Fprintln(s.out, "lost a part of", id)
	}
	for _, id := range done.Lost {
		fmt.Fprintln(s.out, "lost", id)
	}
	_, err := fmt.Fprintf(s.out, "the damaged file is %s; remove it when you do not need it\n", done.Damaged)
	return err
}
