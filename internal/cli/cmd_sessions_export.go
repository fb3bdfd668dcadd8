package cli

import (
	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/history/sessions"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// exportFlags are the flags of sessions export.
type exportFlags struct{ format, output string }

func newSessionsExport(s streams, set *settings) *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:               "export SESSION [--format FORMAT] [--output FILE]",
		Short:             "Write a conversation as a document, or for another machine",
		Args:              sessionArgs(1),
		ValidArgsFunction: set.completeSession,
		RunE: func(cmd *cobra.Command, names []string) error {
			format, err := sessions.FormatOf(f.format, f.output)
			if err != nil {
				return err
			}
			return set.withSessions(cmd, s, names, func(
				store sessionstore.Store, one sessionstore.Session,
			) error {
				err := format.Export(cmd.Context(), s.out, store, one, f.output)
				if err == nil && f.output != "" && f.output != "-" {
					s.note("wrote %s", text.Printable(f.output))
				}
				return err
			})
		},
	}
	set.acceptStore(cmd)
	cmd.Flags().StringVar(&f.format, "format", "",
		"write `FORMAT`: md, html or json (default the ending of --output, or md)")
	cmd.Flags().StringVarP(&f.output, "output", "o", "",
		"write `FILE`, which must not exist; - is stdout (default stdout)")
	return cmd
}
