package proctest

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
