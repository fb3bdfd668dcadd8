package sse_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/wire/sse"
)

// maxEvent is the limit of the tests.
const maxEvent = 1 << 20

// readEvents returns the events of a stream as text, and the error at its end.
func readEvents(from io.Reader) (events []string, err error) {
	s := sse.NewReader(from, maxEvent)
	for {
		e, err := s.Next()
		if err != nil {
			return events, err
		}
		events = append(events, fmt.Sprintf("%s:%s", e.Name, e.Data))
	}
}

func TestReader(t *testing.T) {
	for name, test := range map[string]struct {
		stream string
		want   []string
	}{
		"line feeds":       {"data: a\n\ndata: b\n\n", []string{":a", ":b"}},
		"carriage returns": {"data: a\r\rdata: b\r\r", []string{":a", ":b"}},
		"both":             {"data: a\r\n\r\ndata: b\r\n\r\n", []string{":a", ":b"}},
		"mixed": {"data: a\r\n\ndata: b\n\r\ndata: c\r\n\r",
			[]string{":a", ":b", ":c"}},
		"byte order mark": {"\ufeffdata: a\n\n", []string{":a"}},
		"names": {"event: x\ndata: a\n\ndata: b\n\nevent: y\n\ndata: c\n\n",
			[]string{"x:a", ":b", ":c"}},
		"lines":              {"data: a\ndata:b\ndata\ndata:  c\n\n", []string{":a\nb\n\n c"}},
		"no data":            {"event: x\nid: 1\nretry: 5\n: comment\n\n", nil},
		"empty data":         {"data:\n\n", []string{":"}},
		"comments within":    {"data: a\n: waiting\nid: 7\nother\n\n", []string{":a"}},
		"no last empty line": {"data: a\n\ndata: b\n", []string{":a", ":b"}},
		"half a line":        {"data: a\n\ndata: b", []string{":a"}},
		"field of errors":    {"error: {}\n\n", []string{"error:{}"}},
		"nothing":            {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readEvents(iotest.OneByteReader(strings.NewReader(test.stream)))
			require.Equal(t, io.EOF, err)
			require.Equal(t, test.want, got)
		})
	}

	t.Run("returned as soon as they are complete", func(t *testing.T) {
		for _, end := range []string{"\n\n", "\r\r", "\r\n\r"} {
			from, to := io.Pipe()
			go func() { _, _ = io.WriteString(to, "data: a"+end) }()
			e, err := sse.NewReader(from, maxEvent).Next() // nothing more is ever written
			require.NoError(t, err)
			require.Equal(t, "a", string(e.Data))
		}
	})

	t.Run("longest", func(t *testing.T) {
		long := strings.Repeat("x", maxEvent-len("data: "))
		got, err := readEvents(strings.NewReader("data: " + long + "\n\n"))
		require.Equal(t, io.EOF, err)
		require.Equal(t, []string{":" + long}, got)
		_, err = readEvents(strings.NewReader("data: " + strings.Repeat(long, 3)))
		require.Equal(t, sse.ErrTooLong, err)
		_, err = readEvents(strings.NewReader(strings.Repeat("data: "+long[:maxEvent/4]+"\n", 5)))
		require.Equal(t, sse.ErrTooLong, err)
	})
}

// FuzzSSE compares the reader with a simple one that is given the whole stream.
func FuzzReader(f *testing.F) {
	f.Add([]byte("\ufeffevent: x\r\ndata: a\r\ndata: ü\r\rdata: b\n\n: comment\n\ndata: c\n"),
		byte(1))
	f.Add([]byte("data\n\n\rdata:\r\n\r\nevent: \xff\ndata:  \xc3"), byte(3))
	f.Fuzz(func(t *testing.T, stream []byte, size byte) {
		text := string(stream)
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
		lines := strings.Split(text, "\n")
		var want, data []string
		name := ""
		send := func() {
			if data != nil {
				want = append(want, name+":"+strings.Join(data, "\n"))
			}
			data, name = nil, ""
		}
		for i, line := range lines[:len(lines)-1] {
			if i == 0 {
				line = strings.TrimPrefix(line, "\ufeff")
			}
			field, value, _ := strings.Cut(line, ":")
			value = strings.TrimPrefix(value, " ")
			switch {
			case line == "":
				send()
			case field == "event":
				name = value
			case field == "error":
				name, data = "error", append(data, value)
			case field == "data":
				data = append(data, value)
			}
		}
		send()

		got, err := readEvents(&inPieces{bytes.NewReader(stream), int(size)%7 + 1})
		if err != io.EOF || !slices.Equal(got, want) {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	})
}

// inPieces returns no more than size bytes at once.
type inPieces struct {
	io.Reader
	size int
}

func (r *inPieces) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), r.size)]) }
