package sessions

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/history/conversation"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Format writes a session in a format.
type Format func(
	ctx context.Context, w io.Writer, store sessionstore.Store, one sessionstore.Session,
) error

// FormatOf returns the format with this name. Without a name, the ending of the file decides.
func FormatOf(name, file string) (Format, error) {
	format := name
	if format == "" {
		format = strings.ToLower(strings.TrimPrefix(filepath.Ext(file), "."))
	}
	switch {
	case format == "html", name == "" && format == "htm":
		return document(conversation.WriteHTML), nil
	case format == "json":
		return WriteJSON, nil
	case format == "md", name == "" && slices.Contains([]string{"", "markdown", "txt"}, format):
		return document(conversation.WriteMarkdown), nil
	case name == "":
		return nil, usage.Errorf("--output: the name %s does not fit the format %s: let it end in "+
			".md, .html or .json, or use --format", text.Printable(file), text.Printable(format))
	}
	return nil, usage.Errorf("--format is md, html or json, not %s", text.Name(name))
}

// Export writes a session to w, or to a new file unless its name is "" or "-". It removes the file
// if that fails.
func (f Format) Export(
	ctx context.Context, w io.Writer, store sessionstore.Store, one sessionstore.Session,
	file string,
) (err error) {
	if file != "" && file != "-" {
		// Only the user may read it: a conversation can have secrets in it.
		created, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s exists: remove it, or give another name with --output",
				text.Printable(file))
		}
		if err != nil {
			return namedfile.ExplainNew(err)
		}
		defer func() {
			if closeErr := created.Close(); err == nil {
				err = closeErr
			}
			if err != nil {
				_ = os.Remove(file)
			}
		}()
		w = created
	}
	b := bufio.NewWriterSize(w, 1<<16)
	return cmp.Or(f(ctx, b, store, one), b.Flush())
}

// document returns a Format for a document.
func document(write func(io.Writer, conversation.Document) error) Format {
	return func(
		ctx context.Context, w io.Writer, store sessionstore.Store, one sessionstore.Session,
	) error {
		entries, err := conversation.Read(store.History(ctx, one.ID))
		if err != nil {
			return err
		}
		r := NewReport(one)
		d := conversation.Document{
			Title:   cmp.Or(TitleLine(one), "Conversation"),
			Session: text.Printable(string(r.ID)),
			Agent:   conversation.AgentName(one.Agent),
			Created: r.CreatedAt, Updated: r.UpdatedAt, Entries: entries,
		}
		for _, dir := range one.Keys.Roots.All() {
			d.Folders = append(d.Folders, text.Printable(dir.String()))
		}
		return write(w, d)
	}
}

// WriteJSON writes a session and its updates, one JSON object per line.
func WriteJSON(
	ctx context.Context, w io.Writer, store sessionstore.Store, one sessionstore.Session,
) error {
	charges, err := store.Charges(ctx, one.ID)
	if err != nil {
		return err
	}
	line, err := json.Marshal(struct {
		Report
		Charges []sessionstore.Charge `json:"charges,omitempty"`
	}{NewReport(one), charges})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "%s\n", text.EscapeJSON(line)); err != nil {
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
