// Package proctest is for tests that start processes. The test binary plays them itself, each in a role, so that
// there is nothing to build and nothing to install:
//
//	func TestMain(m *testing.M) { proctest.Main(m, play) }
//
//	// play does what a process does, and returns its exit status.
//	func play(role string) int { … }
//
//	cmd := exec.Command(proctest.Executable())
//	cmd.Env = append(os.Environ(), proctest.Env("echo")...)
//
// Three things show a test what became of a process, without a wait for "long enough":
//
//   - [Holders]: a process that calls [Hold] has a connection, which the system closes when it ends, whoever started it
//     and whether or not somebody has collected it;
//   - [Mark], on Linux: a variable in the environment finds processes that play nothing, such as servers from npm, and all
//     that they have started;
//   - [Record]: the lines that a process was sent, if it reads its [Input].
//
// [AsOrdinaryUser] runs a test again without the powers of root. Only tests import it.
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
)

// patience bounds waits for what must happen.
const patience = 30 * time.Second

const (
	watchVariable = "ACP_AGENT_TEST_WATCH"
	greeting      = "here\n"
)

// Hold shows the test that watches this process, if one does, that it lives: until the process ends there is a
// connection between them.
func Hold() error {
	if os.Getenv(watchVariable) == "" {
		return nil
	}
	connection, err := greet()
	if err == nil {
		go io.Copy(io.Discard, connection) // what nobody refers to is closed
	}
	return err
}

// HoldOn is [Hold], and stays until the test is over or the process is killed. It returns the exit status of a process
// that does nothing else, which fails if nobody watches.
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

// Holders are processes that a test watches. Its methods fail the test, and are for one goroutine at a time.
type Holders struct {
	t        testing.TB
	listener *net.TCPListener
}

// Watch begins to watch processes, until the test is over.
func Watch(t testing.TB) *Holders {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return &Holders{t, listener}
}

// Env is the variable, as "NAME=VALUE", by which a process that holds finds the test.
func (h *Holders) Env() string { return watchVariable + "=" + h.listener.Addr().String() }

// Next waits for the next process that holds.
func (h *Holders) Next() Holder {
	h.t.Helper()
	connection := h.accept()
	require.NoError(h.t, connection.SetReadDeadline(time.Now().Add(patience)))
	_, err := io.ReadFull(connection, make([]byte, len(greeting)))
	require.NoError(h.t, err)
	return Holder{h.t, connection}
}

// None fails if a process has begun to hold that Next has not returned.
func (h *Holders) None() {
	h.t.Helper()
	ours, err := net.Dial("tcp", h.listener.Addr().String())
	require.NoError(h.t, err)
	defer ours.Close()
	// Connections are accepted in their order, so that whoever came before us would be the next.
	require.Equal(h.t, ours.LocalAddr().String(), h.accept().RemoteAddr().String(), "somebody came")
}

func (h *Holders) accept() net.Conn {
	h.t.Helper()
	require.NoError(h.t, h.listener.SetDeadline(time.Now().Add(patience)))
	connection, err := h.listener.Accept()
	require.NoError(h.t, err, "nobody came")
	h.t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// Holder is a process that has begun to hold.
type Holder struct {
	t          testing.TB
	connection net.Conn
}

// Ended waits for the end of the process.
func (h Holder) Ended() {
	h.t.Helper()
	require.NoError(h.t, h.connection.SetReadDeadline(time.Now().Add(patience)))
	_, err := h.connection.Read(make([]byte, 1))
	require.Error(h.t, err)
	require.NotErrorIs(h.t, err, os.ErrDeadlineExceeded, "the process lives on")
}

const recordVariable = "ACP_AGENT_TEST_RECORD"

// Record is the file in which processes keep the lines that they are sent.
type Record string

// NewRecord returns a record that goes with the test. A process appends to it what it reads of its [Input].
func NewRecord(t testing.TB) Record {
	t.Helper()
	return Record(filepath.Join(t.TempDir(), "received"))
}

// Env is the variable, as "NAME=VALUE", by which a process finds the record.
func (r Record) Env() string { return recordVariable + "=" + string(r) }

// Lines are the lines so far, without their ends. It fails the test if no process has begun the record.
func (r Record) Lines(t testing.TB) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(string(r))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	return lines
}

// Input is a played process's standard input, line by line. It is no line ahead of its reader: what is in the
// record has been taken.
type Input struct {
	// Again: the record had been begun before, by an earlier process.
	Again bool

	lines  *bufio.Reader
	record io.Writer
	rest   []byte
}

// OpenInput opens the standard input of a process that has a record. It is for one goroutine.
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

// Note puts a line into the record that was not read.
func (i *Input) Note(line string) error {
	_, err := io.WriteString(i.record, line+"\n")
	return err
}

// Line reads a line, with its end. At the end of the input it is io.EOF, and what came after the last line is no line.
func (i *Input) Line() ([]byte, error) {
	line, err := i.lines.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	_, err = i.record.Write(line)
	return line, err
}

// Read reads what is left of a line, or from the next.
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

// Role is the environment variable that names the role of a process. [Env] sets it.
const Role = "ACP_AGENT_TEST_ROLE"

// Main is a package's TestMain: it plays the role that the process was started in, and in none it runs the tests
// and fails if they leave a goroutine behind.
func Main(m *testing.M, play func(role string) int) {
	Play(play)
	goleak.VerifyTestMain(m)
}

// Play plays the role that the process was started in and exits with the status that play returns. In no
// role it returns at once: it is for a TestMain that has more to do than [Main].
func Play(play func(role string) int) {
	if role := os.Getenv(Role); role != "" {
		os.Exit(play(role))
	}
}

// Executable is the path of the test binary. It panics if the system does not tell.
func Executable() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

// Env are the variables, as "NAME=VALUE", of a process in a role: env, and what this package adds.
func Env(role string, env ...string) []string {
	return append(env[:len(env):len(env)], Role+"="+role, "GORACE=atexit_sleep_ms=0")
}
