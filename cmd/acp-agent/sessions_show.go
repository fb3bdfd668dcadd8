package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// showFlags are those of the show subcommand.
type showFlags struct{ json bool }

func newSessionsShow(s streams, f *serveFlags) *cobra.Command {
	var show showFlags
	cmd := &cobra.Command{
		Use:   "show SESSION",
		Short: "Show a session's folders and its conversation",
		Args:  sessionArgs(1),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return f.completeSessions(cmd, args, word)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.withStore(func(store sessionstore.Store) error {
				return show.session(cmd.Context(), s, store, sessionstore.ID(args[0]))
			})
		},
	}
	cmd.Flags().BoolVar(&show.json, "json", false, "print the session, then each update, one JSON object a line")
	return cmd
}

// session prints a session's record and its history.
func (f showFlags) session(ctx context.Context, s streams, store sessionstore.Store, id sessionstore.ID) error {
	stored, err := store.Get(ctx, id)
	if err != nil {
		return err
	}
	show := &transcript{out: s, json: f.json, printer: newPrinter(s.out)}
	if err := show.session(report(stored)); err != nil {
		return err
	}
	for u, err := range store.History(ctx, id) {
		if err != nil {
			return err
		}
		if err := show.update(ctx, u); err != nil {
			return err
		}
	}
	return show.end()
}

// transcript prints a stored session.
type transcript struct {
	out     streams
	json    bool
	printer *printer
}

func (t *transcript) session(r sessionReport) error {
	if t.json {
		return json.NewEncoder(t.out.out).Encode(r)
	}
	fmt.Fprintf(t.out.out, "session  %s\nagent    %s\ncreated  %s\nupdated  %s\n", r.ID, r.Agent,
		r.CreatedAt.Format(time.RFC3339), r.UpdatedAt.Format(time.RFC3339))
	if r.Title != "" {
		fmt.Fprintf(t.out.out, "title    %s\n", harmless(r.Title))
	}
	fmt.Fprintf(t.out.out, "root 0   %s\n", r.Cwd)
	for i, d := range r.AdditionalDirectories.All() {
		fmt.Fprintf(t.out.out, "root %d   %s\n", i+1, d)
	}
	if r.Directories != "" {
		fmt.Fprintf(t.out.out, "given    %s\n", r.Directories)
	}
	_, err := fmt.Fprintln(t.out.out)
	return err
}

func (t *transcript) update(ctx context.Context, u sessionstore.Update) error {
	if t.json {
		_, err := fmt.Fprintf(t.out.out, "%s\n", u.Raw)
		return err
	}
	var params struct{ Update json.RawMessage }
	if json.Unmarshal(u.Raw, &params) != nil {
		return nil
	}
	t.printer.update(ctx, client.Update{Kind: string(u.Kind), Update: params.Update})
	return t.printer.err()
}

func (t *transcript) end() error {
	if !t.json {
		t.printer.end("end_turn")
	}
	return t.printer.err()
}
