// Package proctest helps tests that start processes. The test binary plays the processes itself,
// each in a role, so that nothing has to be built or installed:
//
//	func TestMain(m *testing.M) { proctest.Main(m, play) }
//
//	// play plays a role and returns an exit status.
//	func play(role string) int { … }
//
//	cmd := exec.Command(proctest.Executable())
//	cmd.Env = append(os.Environ(), proctest.Env("echo")...)
//
// Tests can observe processes without waiting for a fixed time:
//
//   - [Holders] detects when processes that call [Hold] start and end, whichever process started
//     them and whether or not they have been waited for. They keep a connection open, which the
//     system closes.
//   - [Mark], on Linux, finds other processes, such as npm servers, and their descendants by a
//     variable in their environment.
//   - [Record] holds the lines that a process has read from its [Input].
//
// [AsOrdinaryUser] runs a test as a user other than root. The package must only be imported by
// tests.
package proctest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/volume"
)

// patience is how long tests wait for what must happen.
const patience = volume.Patience

const (
	watchVariable = "ACP_AGENT_TEST_WATCH"
	greeting      = "here\n"
)

// Hold connects this process to the test that watches it, if any. The connection lasts until the
// process ends.
func Hold() error {
	if os.Getenv(watchVariable) == "" {
		return nil
	}
	connection, err := greet()
	if err == nil {
		go io.Copy(io.Discard, connection) // keeps the connection from being garbage collected
	}
	return err
}

// HoldOn is [Hold], but blocks until the test ends. It returns an exit status for the process,
// which is not 0 if no test watches it.
func HoldOn() int {
	connection, err := greet()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_, _ = io.Copy(io.Discard, connection)
	return 0
}

func greet() (net.Conn, error) {
	connection, err := net.Dial("tcp", os.Getenv(watchVariable))
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(connection, greeting)
	return connection, err
}

// Holders watches processes for a test. Its methods fail the test on errors and are not safe for
// concurrent use.
type Holders struct {
	t        testing.TB
	listener *net.TCPListener
}

// Watch watches processes until the test ends.
func Watch(t testing.TB) *Holders {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return &Holders{t, listener}
}

// Env returns the environment variable, as "NAME=VALUE", that connects processes to this test.
func (h *Holders) Env() string { return watchVariable + "=" + h.listener.Addr().String() }

// Next waits for the next process to call Hold.
func (h *Holders) Next() Holder {
	h.t.Helper()
	connection := h.accept()
	require.NoError(h.t, connection.SetReadDeadline(time.Now().Add(patience)))
	_, err := io.ReadFull(connection, make([]byte, len(greeting)))
	require.NoError(h.t, err)
	return Holder{h.t, connection}
}

// None fails if a process has called Hold that Next has not returned.
func (h *Holders) None() {
	h.t.Helper()
	ours, err := net.Dial("tcp", h.listener.Addr().String())
	require.NoError(h.t, err)
	defer ours.Close()
	// Connections are accepted in order, so an earlier one would be accepted before ours.
	require.Equal(h.t, ours.LocalAddr().String(), h.accept().RemoteAddr().String(), "a process has called Hold")
}

func (h *Holders) accept() net.Conn {
	h.t.Helper()
	require.NoError(h.t, h.listener.SetDeadline(time.Now().Add(patience)))
	connection, err := h.listener.Accept()
	require.NoError(h.t, err, "no process has called Hold")
	h.t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// Holder is a process that has called Hold.
type Holder struct {
	t          testing.TB
	connection net.Conn
}

// Ended waits for the process to end.
func (h Holder) Ended() {
	h.t.Helper()
	require.NoError(h.t, h.connection.SetReadDeadline(time.Now().Add(patience)))
	_, err := h.connection.Read(make([]byte, 1))
	require.Error(h.t, err)
	require.NotErrorIs(h.t, err, os.ErrDeadlineExceeded, "the process is still running")
}

const recordVariable = "ACP_AGENT_TEST_RECORD"

// Record is a file in which processes record the lines they read.
type Record string

// NewRecord returns a record that is removed when the test ends. A process appends what it reads
// from its [Input].
func NewRecord(t testing.TB) Record {
	t.Helper()
	return Record(filepath.Join(t.TempDir(), "received"))
}

// Env returns the environment variable, as "NAME=VALUE", that names the record.
func (r Record) Env() string { return recordVariable + "=" + string(r) }

// Lines returns the lines so far, without line endings. It fails the test if no process has opened
// the record.
func (r Record) Lines(t testing.TB) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(string(r))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	return lines
}

// Input is the standard input of a played process. It records each line when it is read, not
// before.
type Input struct {
	// Again reports whether an earlier process has used the record.
	Again bool

	lines  *bufio.Reader
	record io.Writer
	rest   []byte
}

// OpenInput opens the standard input of a process that has a record. The result is not safe for
// concurrent use.
func OpenInput() (*Input, error) {
	record, err := os.OpenFile(os.Getenv(recordVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := record.Stat()
	if err != nil {
		return nil, err
	}
	return &Input{Again: info.Size() > 0, lines: bufio.NewReader(os.Stdin), record: record}, nil
}

// Note adds a line to the record that was not read from the input.
func (i *Input) Note(line string) error {
	_, err := io.WriteString(i.record, line+"\n")
	return err
}

// Line reads a line including its line ending. At the end of the input it returns io.EOF and drops
// an unfinished line.
func (i *Input) Line() ([]byte, error) {
	line, err := i.lines.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	_, err = i.record.Write(line)
	return line, err
}

// Read reads the rest of a line, or from the next one.
func (i *Input) Read(p []byte) (int, error) {
	if len(i.rest) == 0 {
		line, err := i.Line()
		if err != nil {
			return 0, err
		}
		i.rest = line
	}
	n := copy(p, i.rest)
	i.rest = i.rest[n:]
	return n, nil
}

// Role is the environment variable with the role of a process. [Env] sets it.
const Role = "ACP_AGENT_TEST_ROLE"

// Main implements TestMain. In a process with a role it plays the role; otherwise it runs the tests
// and fails if they leak goroutines.
func Main(m *testing.M, play func(role string) int) {
	Play(play)
	goleak.VerifyTestMain(m)
}

// Play plays the role of the process and exits with the status that play returns. Without a role it
// returns at once. It is for a TestMain that does more than [Main].
func Play(play func(role string) int) {
	if role := os.Getenv(Role); role != "" {
		os.Exit(play(role))
	}
}

// Executable returns the path of the test binary. It panics if that is unknown.
func Executable() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

// Env returns the environment variables of a process in a role, as "NAME=VALUE", including env.
func Env(role string, env ...string) []string {
	return append(env[:len(env):len(env)], Role+"="+role, "GORACE=atexit_sleep_ms=0")
}
