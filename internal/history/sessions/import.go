package sessions

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/acp-agent/acp-agent/acp/explore"
	"github.com/acp-agent/acp-agent/acp/model"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Import says how an exported session is stored.
type Import struct {
	Name      string            // of the file, for errors
	MaxLine   int               // how many bytes its lines may have
	Roots     workspace.Roots   // the session's folders, empty for those in the file
	Workspace workspace.Options // for opening the folders
}

// Store stores the session in a file, with another id if its own is taken, and its history. It
// returns the id and the number of updates. If it fails, nothing of the session is stored.
func (i Import) Store(
	ctx context.Context, store sessionstore.Store, file io.Reader,
) (id sessionstore.ID, updates int, err error) {
	lines := &exportedLines{Reader: jsonrpc.NewReader(file, i.MaxLine), name: i.Name}
	session, charges, err := lines.session()
	if err != nil {
		return "", 0, err
	}
	if i.Roots.Len() > 0 {
		session.Keys.Roots = i.Roots
	}
	if session.Keys, err = i.open(ctx, session.Keys.Roots); err != nil {
		return "", 0, err
	}
	history, err := store.NewDraft(ctx, "")
	if err != nil {
		return "", 0, err
	}
	updates, session.Turns, err = lines.fill(ctx, history)
	if err == nil {
		if _, err := store.Get(ctx, session.ID); err == nil {
			session.ID, charges = sessionstore.NewID(), nil // the other one has them
		}
		session.Created = time.Now()
		session.Updated = session.Created
		var stored bool
		stored, err = store.Restore(ctx, session, history, charges)
		if err == nil && !stored {
			err = sessionstore.ErrExists // since a moment ago
		}
	}
	if err != nil {
		err = errors.Join(err, history.Discard(context.WithoutCancel(ctx)))
	}
	return session.ID, updates, err
}

// open opens the folders of the session, and returns them as they must be stored.
func (i Import) open(ctx context.Context, roots workspace.Roots) (k sessionstore.Keys, err error) {
	w, err := workspace.Open(ctx, roots, i.Workspace)
	if err != nil {
		return k, fmt.Errorf("%w; name the session's folders on this machine with --cwd and --dir",
			err)
	}
	defer w.Close()
	k.Roots = w.Roots()
	for _, root := range w.Opened() {
		k.Real = append(k.Real, root.Recorded())
	}
	return k, nil
}

// exportedLines reads the lines of an exported session.
type exportedLines struct {
	*jsonrpc.Reader
	name string // of the file
	line int    // the number of the last line that was read
}

// wrong returns an error about the last line that was read.
func (l *exportedLines) wrong(err error) error {
	return fmt.Errorf("%s, line %d: %w", l.name, l.line, err)
}

// next returns the next line that is not blank. The error is io.EOF after the last one.
func (l *exportedLines) next() ([]byte, error) {
	for {
		l.line++
		line, err := l.Append(nil)
		if _, ok := errors.AsType[*jsonrpc.TooLongError](err); ok {
			return nil, l.wrong(fmt.Errorf("%w; --max-line raises it", err))
		}
		if line = bytes.TrimSpace(line); len(line) > 0 || err != nil {
			return line, err
		}
	}
}

// session returns the session on the first line, with its folders as they were.
func (l *exportedLines) session() (
	session sessionstore.Session, charges []sessionstore.Charge, err error,
) {
	line, err := l.next()
	if err != nil && err != io.EOF {
		return session, nil, err
	}
	var said struct {
		SessionID             string
		Agent, Title          string
		Cwd                   string
		AdditionalDirectories []string
		ReadOnlyDirectories   []string
		Charges               []sessionstore.Charge
	}
	if json.Unmarshal(line, &said) != nil || said.SessionID == "" || said.Agent == "" {
		return session, nil, l.wrong(errors.New(
			"it is not a session that acp-agent sessions export --format json wrote"))
	}
	if !isPlainID(said.SessionID) {
		said.SessionID = string(sessionstore.NewID())
	}
	kind, profile, _ := strings.Cut(said.Agent, " ")
	if !slices.Contains([]string{explore.Kind, model.Kind, proxy.Kind}, kind) {
		return session, nil, l.wrong(fmt.Errorf(
			"its agent %s is not known to this version: update acp-agent", text.Name(said.Agent)))
	}
	if err := sessionstore.ValidateCharges(said.Charges); err != nil {
		return session, nil, l.wrong(err)
	}
	roots, err := workspace.NewRoots(said.Cwd, said.AdditionalDirectories)
	if err != nil {
		return session, nil, l.wrong(err)
	}
	return sessionstore.Session{
		ID:    sessionstore.ID(said.SessionID),
		Agent: sessionstore.Agent{Kind: kind, Profile: profile},
		Title: text.Line(said.Title, 1000),
		Keys:  sessionstore.Keys{Roots: roots.ReadOnlyAt(said.ReadOnlyDirectories)},
	}, said.Charges, nil
}

// fill gives a history the updates on the remaining lines, and counts them and the turns.
func (l *exportedLines) fill(
	ctx context.Context, history sessionstore.Draft,
) (updates int, turns int64, err error) {
	var counter sessionstore.TurnCounter
	err = sessionstore.Fill(ctx, history, func(yield func(sessionstore.Update, error) bool) {
		for ; ; updates++ {
			line, err := l.next()
			if err == io.EOF {
				return
			}
			var u sessionstore.Update
			if err == nil {
				if u, err = sessionstore.ParseUpdate(line); err != nil {
					err = l.wrong(err)
				}
			}
			turns, _ = counter.Next(u)
			if !yield(u, err) {
				return
			}
		}
	})
	return updates, turns, err
}

// isPlainID reports whether a session may keep its id: one that terminals show and commands take.
func isPlainID(id string) bool {
	const most = 128
	odd := func(r rune) bool {
		return r > unicode.MaxASCII ||
			r != '-' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}
	return id != Last && !strings.HasPrefix(id, "-") && len(id) <= most &&
		!strings.ContainsFunc(id, odd)
}
