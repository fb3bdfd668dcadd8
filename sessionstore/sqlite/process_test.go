package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/storetest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// The test binary acts as other processes, which get a directory and a name.
const (
	dirVariable  = "SESSIONSTORE_TEST_DIR"
	nameVariable = "SESSIONSTORE_TEST_NAME"
)

func play(role string) int {
	s := sqlite.New(sqlite.Options{Dir: os.Getenv(dirVariable)})
	act := map[string]func(context.Context, *sqlite.Store, string) error{
		"writer": writer, "window": window, "deleter": deleter, "dumper": dumper,
		"worker": worker, "holder": holder,
	}[role]
	err := errors.Join(act(context.Background(), s, os.Getenv(nameVariable)), s.Close())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func process(t *testing.T, role, dir, name string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), proctest.Executable())
	cmd.Env = append(os.Environ(), proctest.Env(role, dirVariable+"="+dir, nameVariable+"="+name)...)
	return cmd
}

// worker makes random changes forever.
func worker(ctx context.Context, s *sqlite.Store, name string) error {
	return storetest.Work(ctx, s, name, math.MaxInt, os.Stdout)
}

// Clauses S1, S2, S3.
func TestShared(t *testing.T) {
	t.Parallel() // it waits for the disk
	dir := t.TempDir()
	var n atomic.Int64
	storetest.TestShared(t,
		func(t *testing.T) sessionstore.Shared { return open(t, sqlite.Options{Dir: dir}) },
		func(t *testing.T, lines int) ([]byte, error) {
			name := fmt.Sprint("process ", n.Add(1))
			return proctest.KillAfter(process(t, "worker", dir, name), lines)
		})
}

// deleter deletes all sessions but one, says so, and waits.
func deleter(ctx context.Context, s *sqlite.Store, except string) error {
	page, err := s.List(ctx, sessionstore.Query{Limit: sessionstore.MaxPageSize})
	if err != nil {
		return err
	}
	for _, session := range page.Sessions {
		if string(session.ID) == except {
			continue
		}
		if err := s.Delete(ctx, session.ID); err != nil {
			return err
		}
	}
	fmt.Println("deleted")
	<-ctx.Done()
	return nil
}

// dumper prints the files of the store.
func dumper(_ context.Context, s *sqlite.Store, _ string) error {
	return fs.WalkDir(os.DirFS(s.Dir()), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(s.Dir(), name))
		if err == nil {
			_, err = os.Stdout.Write(content)
		}
		return err
	})
}

// writer opens the session "one" and appends to it forever. Each line of its output acknowledges a
// word that is stored.
func writer(ctx context.Context, s *sqlite.Store, name string) error {
	keys, err := plainKeys("app")
	if err != nil {
		return err
	}
	lease, err := s.Activate(ctx, "one", sessionstore.Activation{Keys: keys})
	if err != nil {
		return err
	}
	var turn int64
	for n := 0; ; n++ {
		words := fmt.Sprintf("%s.%d", name, n)
		switch n % 5 {
		case 0:
			turn, err = s.BeginTurn(ctx, lease, sessionstore.Turn{Prompt: []sessionstore.Update{say(words)}})
		case 4:
			if err = s.EndTurn(ctx, lease, turn); err == nil {
				continue
			}
		default:
			err = s.Append(ctx, lease, []sessionstore.Update{say(words)})
		}
		if err != nil {
			return err
		}
		fmt.Println(words)
	}
}

// Clause S1.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	first := sqlite.New(sqlite.Options{Dir: dir})
	create(t, first, "one")
	require.NoError(t, first.Close())
	random := rand.New(rand.NewPCG(3, 4))
	var acknowledged []string
	for round := range volume.Of(8, 20) {
		cmd := process(t, "writer", dir, strconv.Itoa(round))
		var complaints strings.Builder
		cmd.Stderr = &complaints
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for left := random.IntN(60); left >= 0 && lines.Scan(); left-- {
			acknowledged = append(acknowledged, lines.Text())
		}
		require.NoError(t, cmd.Process.Kill())
		for lines.Scan() {
			acknowledged = append(acknowledged, lines.Text())
		}
		require.Error(t, cmd.Wait(), "it was killed")
		require.Empty(t, complaints.String())

		acknowledged = requireHistory(t, dir, acknowledged)
	}
	require.Equal(t, "ok", integrity(t, dir))
}

// requireHistory checks that the history consists of the acknowledged words in order, and at most
// one more. It returns its words.
func requireHistory(t *testing.T, dir string, acknowledged []string) (words []string) {
	t.Helper()
	s := sqlite.New(sqlite.Options{Dir: dir})
	defer func() { require.NoError(t, s.Close()) }()
	for u, err := range s.History(t.Context(), "one") {
		require.NoError(t, err)
		_, rest, _ := strings.Cut(u.String(), `"text":"`)
		word, _, _ := strings.Cut(rest, `"`)
		words = append(words, word)
	}
	require.LessOrEqual(t, len(words), len(acknowledged)+1)
	require.Equal(t, acknowledged, words[:len(acknowledged)])
	return words
}

// windowRounds is the number of sessions of a window, which deletes every tenth.
var windowRounds = volume.Of(20, 50)

// window acts as an editor's window: it creates sessions, runs turns and lists.
func window(ctx context.Context, s *sqlite.Store, name string) error {
	keys, err := plainKeys("app")
	if err != nil {
		return err
	}
	for n := range windowRounds {
		id := fmt.Sprintf("%s.%d", name, n)
		lease, err := s.Create(ctx, sessionstore.Session{
			ID: sessionstore.ID(id), Agent: sessionstore.Agent{Kind: "explore"}, Keys: keys,
		})
		if err != nil {
			return fmt.Errorf("create: %w", err)
		}
		if _, err := s.BeginTurn(ctx, lease, sessionstore.Turn{Prompt: []sessionstore.Update{say(id)}}); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		if err := s.Append(ctx, lease, []sessionstore.Update{say(id)}); err != nil {
			return fmt.Errorf("append: %w", err)
		}
		page, err := s.List(ctx, sessionstore.Query{})
		if err != nil {
			return fmt.Errorf("list: %w", err)
		}
		if len(page.Sessions) == 0 {
			return errors.New("the new session is not listed")
		}
		if n%10 == 9 {
			if err := s.Delete(ctx, lease.ID); err != nil {
				return fmt.Errorf("delete: %w", err)
			}
		}
	}
	return nil
}

// Clause S2.
func TestEightProcesses(t *testing.T) {
	const processes = 8
	dir := t.TempDir()
	var running []*exec.Cmd
	complaints := make([]strings.Builder, processes)
	for i := range processes {
		cmd := process(t, "window", dir, strconv.Itoa(i))
		cmd.Stderr, cmd.Stdout = &complaints[i], io.Discard
		require.NoError(t, cmd.Start())
		running = append(running, cmd)
	}
	for i, cmd := range running {
		require.NoError(t, cmd.Wait(), complaints[i].String())
	}
	s := open(t, sqlite.Options{Dir: dir})
	found := 0
	for q := (sessionstore.Query{Limit: 30}); ; {
		page, err := s.List(t.Context(), q)
		require.NoError(t, err)
		for _, session := range page.Sessions {
			found++
			n := 0
			for _, err := range s.History(t.Context(), session.ID) {
				require.NoError(t, err)
				n++
			}
			require.Equal(t, 2, n)
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	require.Equal(t, processes*windowRounds*9/10, found)
}

// Clause S3.
func TestNewerProcessWins(t *testing.T) {
	dir := t.TempDir()
	older, newer := open(t, sqlite.Options{Dir: dir}), open(t, sqlite.Options{Dir: dir})
	old := create(t, older, "one")
	begin(t, older, old, say("first"))
	lease, err := newer.Activate(t.Context(), "one", sessionstore.Activation{Keys: rooted(t, "app", "lib")})
	require.NoError(t, err)
	var fenced *sessionstore.FencedError
	require.ErrorAs(t, older.Append(t.Context(), old, []sessionstore.Update{say("late")}), &fenced)
	require.Equal(t, lease.Generation, fenced.Current)
	require.NoError(t, newer.Append(t.Context(), lease, []sessionstore.Update{say("second")}))
	n := 0
	for _, err := range older.History(t.Context(), "one") {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 2, n)
	require.NoError(t, newer.Delete(t.Context(), "one"))
	require.ErrorAs(t, older.Append(t.Context(), old, nil), new(*sessionstore.NotFoundError))
}
