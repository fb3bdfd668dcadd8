package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/acp/explore"
	"github.com/acp-agent/acp-agent/acp/model"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

func newSessionsImport(s streams, set *settings) *cobra.Command {
	var r rootFlags
	cmd := &cobra.Command{
		Use:   "import FILE [--cwd DIR [--dir DIR]...]",
		Short: "Store a session that was exported as JSON",
		Long: `import stores the session in FILE, which acp-agent sessions export --format
json wrote, and prints its id: the same as before, or a new one if that is
taken. FILE can be "-" for stdin.

The session gets the folders that it had, if they exist here. With --cwd or
--dir it gets these. An agent behind acp-agent that does not know the session
is told the last part of the conversation.`,
		Example: "  acp-agent sessions import conversation.json --cwd ~/src/app",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return usagef("%s needs one FILE, or - for stdin", words(cmd))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			in, name := s.in, "stdin"
			if args[0] != "-" {
				file, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer file.Close()
				in, name = file, text.Printable(args[0])
			}
			i := sessionImport{lines: jsonrpc.NewReader(in, set.maxLine)}
			err := i.readSession()
			if err == nil && (cmd.Flags().Changed("cwd") || cmd.Flags().Changed("dir")) {
				i.roots, err = r.roots()
			}
			if err != nil {
				return i.describe(err, name)
			}
			return i.describe(i.store(cmd.Context(), s, set), name)
		},
	}
	r.define(cmd)
	set.accept(cmd, "max-line", "max-roots", "mounts", "state-dir", "store")
	return cmd
}

// sessionImport stores an exported session.
type sessionImport struct {
	lines *jsonrpc.Reader
	line  int // the number of the last line that was read

	session sessionstore.NewSession // without Keys
	roots   workspace.Roots
	updates int
}

// describe adds to an error which line of the file it is about.
func (i *sessionImport) describe(err error, name string) error {
	if at, ok := errors.AsType[*importLineError](err); ok {
		return fmt.Errorf("%s, line %d: %w", name, i.line, at.err)
	}
	return err
}

// importLineError says what is wrong with a line of an exported session.
type importLineError struct{ err error }

func (e *importLineError) Error() string { return e.err.Error() }

func (e *importLineError) Unwrap() error { return e.err }

// next returns the next line that is not blank. The error is io.EOF after the last one.
func (i *sessionImport) next() ([]byte, error) {
	for {
		i.line++
		line, err := i.lines.Append(nil)
		if errors.As(err, new(*jsonrpc.TooLongError)) {
			return nil, &importLineError{fmt.Errorf("%w; --max-line raises it", err)}
		}
		if line = bytes.TrimSpace(line); len(line) > 0 || err != nil {
			return line, err
		}
	}
}

// readSession reads the first line.
func (i *sessionImport) readSession() error {
	line, err := i.next()
	if err != nil && err != io.EOF {
		return err
	}
	var said struct {
		SessionID             string
		Agent, Title          string
		Cwd                   string
		AdditionalDirectories []string
	}
	if json.Unmarshal(line, &said) != nil || said.SessionID == "" || said.Agent == "" {
		return &importLineError{errors.New(
			"it is not a session that acp-agent sessions export --format json wrote")}
	}
	if !isPlainID(said.SessionID) {
		said.SessionID = string(sessionstore.NewID())
	}
	kind, profile, _ := strings.Cut(said.Agent, " ")
	if !slices.Contains([]string{explore.Kind, model.Kind, proxy.Kind}, kind) {
		return &importLineError{fmt.Errorf("its agent %s is not known to this version: update acp-agent",
			text.Name(said.Agent))}
	}
	i.session = sessionstore.NewSession{
		ID:    sessionstore.ID(said.SessionID),
		Agent: sessionstore.Agent{Kind: kind, Profile: profile},
		Title: text.Line(said.Title, 1000),
	}
	if i.roots, err = workspace.NewRoots(said.Cwd, said.AdditionalDirectories); err != nil {
		return &importLineError{err}
	}
	return nil
}

// isPlainID reports whether a session may keep its id: one that terminals show and commands take.
func isPlainID(id string) bool {
	const most = 128
	odd := func(r rune) bool {
		return r > unicode.MaxASCII || r != '-' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}
	return id != lastSession && !strings.HasPrefix(id, "-") && len(id) <= most &&
		!strings.ContainsFunc(id, odd)
}

// store stores the session and prints its id. If it fails, nothing of the session is stored.
func (i *sessionImport) store(ctx context.Context, s streams, set *settings) error {
	options, err := set.workspace()
	if err != nil {
		return err
	}
	w, err := workspace.Open(ctx, i.roots, options)
	if err != nil {
		return fmt.Errorf("%w; name the session's folders on this machine with --cwd and --dir", err)
	}
	i.session.Keys = sessionstore.Keys{Roots: w.Roots()}
	for _, root := range w.Opened() {
		i.session.Keys.Real = append(i.session.Keys.Real, root.Recorded())
	}
	w.Close()
	store, err := set.serverStore(slog.New(slog.NewTextHandler(s.err, nil)))
	if err != nil {
		return err
	}
	err = i.create(ctx, store)
	if closeErr := store.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(s.err, "acp-agent: imported %s\n", text.Count(i.updates, "update", "updates"))
	_, err = fmt.Fprintln(s.out, i.session.ID)
	return err
}

// create creates the session, with another id if its own is taken, and gives it its history.
func (i *sessionImport) create(ctx context.Context, store sessionstore.Store) error {
	lease, err := store.Create(ctx, i.session)
	if errors.Is(err, sessionstore.ErrExists) {
		i.session.ID = sessionstore.NewID()
		lease, err = store.Create(ctx, i.session)
	}
	if err != nil {
		return err
	}
	if err := i.record(ctx, recording{store: store, lease: lease}); err != nil {
		return errors.Join(err, store.Delete(context.WithoutCancel(ctx), lease.ID))
	}
	return nil
}

// record gives the session the updates on the remaining lines as its history.
func (i *sessionImport) record(ctx context.Context, r recording) error {
	for {
		line, err := i.next()
		if err == io.EOF {
			return r.end(ctx)
		}
		if err != nil {
			return err
		}
		u, err := sessionstore.ParseUpdate(line)
		if err != nil {
			return &importLineError{err}
		}
		if err := r.add(ctx, u); err != nil {
			return err
		}
		i.updates++
	}
}

// recording records updates as turns: each begins with the blocks of a prompt.
type recording struct {
	store  sessionstore.Histories
	lease  sessionstore.Lease
	turn   int64 // 0 before the first one
	prompt []sessionstore.Update
	rest   []sessionstore.Update // not yet stored
	size   int                   // of rest, in bytes
}

func (r *recording) add(ctx context.Context, u sessionstore.Update) error {
	if u.Kind == sessionstore.UserMessageChunk {
		if len(r.prompt) == 0 {
			if err := r.end(ctx); err != nil {
				return err
			}
		}
		r.prompt = append(r.prompt, u)
		return nil
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	r.rest = append(r.rest, u)
	if r.size += len(u.Raw); r.size < 1<<20 {
		return nil
	}
	return r.flush(ctx)
}

// begin begins the turn with the prompt that was read.
func (r *recording) begin(ctx context.Context) (err error) {
	if len(r.prompt) > 0 {
		r.turn, err = r.store.BeginTurn(ctx, r.lease, sessionstore.Turn{Prompt: r.prompt})
		r.prompt = nil
	}
	return err
}

// flush stores what was read of a turn.
func (r *recording) flush(ctx context.Context) error {
	err := r.store.Append(ctx, r.lease, r.rest)
	r.rest, r.size = nil, 0
	return err
}

// end ends the turn.
func (r *recording) end(ctx context.Context) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	if err := r.flush(ctx); err != nil || r.turn == 0 {
		return err
	}
	return r.store.EndTurn(ctx, r.lease, r.turn)
}
