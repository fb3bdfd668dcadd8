package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/conversation"
	"github.com/acp-agent/acp-agent/internal/namedfile"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// exportFlags are the flags of sessions export.
type exportFlags struct{ format, output string }

func newSessionsExport(s streams, set *settings) *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export SESSION [--format FORMAT] [--output FILE]",
		Short: "Write a conversation as a document, or for another machine",
		Long: `export writes a session's conversation. FORMAT is md for Markdown, html for a
page that needs no other file and loads nothing, or json for acp-agent sessions
import. Without --format the ending of FILE decides.

A conversation contains what the agent read and what commands printed: look
through it before you give it to others.`,
		Example: `  acp-agent sessions export last --output conversation.md
  acp-agent sessions export last --output conversation.html`,
		Args:              sessionArgs(1),
		ValidArgsFunction: set.completeSession,
		RunE: func(cmd *cobra.Command, names []string) error {
			write, err := f.writer()
			if err != nil {
				return err
			}
			return set.withSessions(cmd, s, names, func(
				ctx context.Context, s streams, store sessionstore.Store, one sessionstore.Session,
			) error {
				return f.export(ctx, s, store, one, write)
			})
		},
	}
	set.accept(cmd, "state-dir", "store")
	cmd.Flags().StringVar(&f.format, "format", "",
		"write `FORMAT`: md, html or json (default the ending of --output, or md)")
	cmd.Flags().StringVarP(&f.output, "output", "o", "",
		"write `FILE`, which must not exist; - is stdout (default stdout)")
	return cmd
}

// exportFunc writes a session in a format.
type exportFunc func(
	ctx context.Context, w io.Writer, store sessionstore.Histories, one sessionstore.Session,
) error

// writer returns what writes the format that --format names, or else the ending of the file.
func (f exportFlags) writer() (exportFunc, error) {
	format := f.format
	if format == "" {
		format = strings.ToLower(strings.TrimPrefix(filepath.Ext(f.output), "."))
	}
	switch {
	case format == "html", f.format == "" && format == "htm":
		return documentWriter(conversation.WriteHTML), nil
	case format == "json":
		return writeSessionJSON, nil
	case format == "md", f.format == "":
		return documentWriter(conversation.WriteMarkdown), nil
	}
	return nil, usagef("--format is md, html or json, not %s", text.Name(f.format))
}

// export writes a session to stdout or to a new file, which is removed if that fails.
func (f exportFlags) export(
	ctx context.Context, s streams, store sessionstore.Histories, one sessionstore.Session,
	write exportFunc,
) error {
	buffered := func(w io.Writer) error {
		b := bufio.NewWriterSize(contextWriter{ctx, w}, 1<<16)
		return cmp.Or(write(ctx, b, store, one), b.Flush())
	}
	if f.output == "" || f.output == "-" {
		return buffered(s.out)
	}
	// Only the user may read it: a conversation can have secrets in it.
	file, err := os.OpenFile(f.output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: remove it, or give another name with --output",
			text.Printable(f.output))
	}
	if err != nil {
		return namedfile.Explain(err)
	}
	err = buffered(file)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = os.Remove(f.output)
		return err
	}
	_, err = fmt.Fprintf(s.err, "acp-agent: wrote %s\n", text.Printable(f.output))
	return err
}

// contextWriter writes until its context ends.
type contextWriter struct {
	ctx context.Context
	w   io.Writer
}

func (c contextWriter) Write(b []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.w.Write(b)
}

// documentWriter returns an exportFunc for a document.
func documentWriter(write func(io.Writer, conversation.Document) error) exportFunc {
	return func(
		ctx context.Context, w io.Writer, store sessionstore.Histories, one sessionstore.Session,
	) error {
		entries, err := conversation.Read(store.History(ctx, one.ID))
		if err != nil {
			return err
		}
		r := report(one)
		d := conversation.Document{
			Title:   cmp.Or(titleColumn(one), "Conversation"),
			Session: text.Printable(string(r.ID)), Agent: text.Printable(r.Agent),
			Created: r.CreatedAt, Updated: r.UpdatedAt, Entries: entries,
		}
		for _, dir := range one.Keys.Roots.All() {
			d.Folders = append(d.Folders, text.Printable(dir.String()))
		}
		return write(w, d)
	}
}

// writeSessionJSON writes a session and its updates, one JSON object per line.
func writeSessionJSON(
	ctx context.Context, w io.Writer, store sessionstore.Histories, one sessionstore.Session,
) error {
	if err := writeJSON(w, report(one)); err != nil {
		return err
	}
	for u, err := range store.History(ctx, one.ID) {
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\n", text.EscapeJSON(u.Raw)); err != nil {
			return err
		}
	}
	return nil
}
