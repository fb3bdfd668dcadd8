package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/history/sessions"
	"github.com/acp-agent/acp-agent/internal/text"
)

func newSessionsImport(set *settings) *cobra.Command {
	r := rootFlags{cwd: "."}
	return set.accept(&cobra.Command{
		Use:  "import",
		Args: takes(1, 1, "one FILE", ", or - for stdin"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, name := set.input(cmd.Context(), "a session"), "stdin"
			if args[0] != "-" {
				file, err := namedfile.Open(args[0])
				if err != nil {
					return fmt.Errorf("%w (acp-agent sessions export ID --format json makes such "+
						"a file)", namedfile.Explain(err))
				}
				defer file.Close()
				in, name = file, text.Printable(args[0])
			}
			i, err := sessions.NewImport(in, name, set.maxLine)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("cwd") || cmd.Flags().Changed("dir") {
				roots, err := r.roots()
				if err != nil {
					return err
				}
				i.MoveTo(roots)
			}
			return importSession(cmd.Context(), set, i)
		},
	}, needsStore, flags{"cwd": &r.cwd, "dir": &r.dirs}, "max-line", "mounts")
}

// importSession stores a session and prints its id.
func importSession(ctx context.Context, set *settings, i *sessions.Import) error {
	options, err := set.workspace()
	if err != nil {
		return err
	}
	if err := i.Open(ctx, options); err != nil {
		return err
	}
	store, err := set.serverStore(set.log)
	if err != nil {
		return err
	}
	id, updates, err := i.Store(ctx, store)
	if err = cmp.Or(err, store.Close()); err != nil {
		return err
	}
	set.note("imported %s", text.Count(updates, "update", "updates"))
	_, err = fmt.Fprintln(set.out, id)
	return err
}
