package jsonrpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// errBroken ends a stream that breaks.
var errBroken = errors.New("broken")

// streams generates inputs with lines of various lengths.
func streams(t *rapid.T) (text string, max int) {
	lengths := rapid.OneOf(rapid.IntRange(0, 6), rapid.SampledFrom([]int{64<<10 - 2, 64<<10 - 1, 64 << 10, 64<<10 + 1, 128 << 10, 200_000}))
	var b strings.Builder
	for range rapid.IntRange(0, 5).Draw(t, "lines") {
		b.WriteString(strings.Repeat("x", lengths.Draw(t, "length")))
		b.WriteString(rapid.SampledFrom([]string{"\n", "\r\n", "\r", ""}).Draw(t, "end"))
	}
	return b.String(), rapid.OneOf(lengths, rapid.Just(math.MaxInt)).Draw(t, "max")
}

// reading returns a reader of text that returns parts of arbitrary lengths.
func reading(t *rapid.T, text string) io.Reader {
	in := io.Reader(strings.NewReader(text))
	if rapid.Bool().Draw(t, "halves") {
		in = iotest.HalfReader(in)
	}
	if rapid.Bool().Draw(t, "error with the data") {
		in = iotest.DataErrReader(in)
	}
	return in
}

// Clause W3.
func TestReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, max := streams(t)
		lines := jsonrpc.NewReader(io.MultiReader(reading(t, text), iotest.ErrReader(errBroken)), max)
		for want := range strings.Lines(text) {
			got, err := lines.Append([]byte("before "))
			got, ours := bytes.CutPrefix(got, []byte("before "))
			require.True(t, ours)
			if len(strings.TrimSuffix(strings.TrimSuffix(want, "\n"), "\r")) <= max {
				require.NoError(t, err)
				require.Equal(t, want, string(got))
				continue
			}
			var long *jsonrpc.TooLongError
			require.ErrorAs(t, err, &long)
			require.Equal(t, max, long.Limit)
			require.Greater(t, len(got), max)
			require.LessOrEqual(t, len(got)-max, 64<<10+2)
			require.True(t, strings.HasPrefix(want, string(got)))
		}
		for range 2 {
			rest, err := lines.Append(nil)
			require.ErrorIs(t, err, errBroken)
			require.Empty(t, rest)
		}
	})
}

// Clause W3.
// Some programs begin a stream, or each line, with a byte order mark.
func TestReaderByteOrderMark(t *testing.T) {
	for in, want := range map[string][]string{
		"\uFEFF{}\n\uFEFF[]\n": {"{}\n", "[]\n"}, "{}\n\uFEFF\n": {"{}\n", "\n"}, "\uFEFF\n{}": {"\n", "{}"},
		"\uFEFF": {""}, "\uFEFF\uFEFF{}\n": {"\uFEFF{}\n"}, "{\uFEFF}\n": {"{\uFEFF}\n"},
	} {
		r := jsonrpc.NewReader(strings.NewReader(in), 100)
		for _, line := range want {
			got, _ := r.Append(nil)
			require.Equal(t, line, string(got), "%q", in)
		}
	}
}

// Clause W1.
func TestWriter(t *testing.T) {
	var out bytes.Buffer
	w := jsonrpc.NewWriter(&out, nil)
	var want []string
	var writing sync.WaitGroup
	for n := range 50 {
		text := strings.Repeat(fmt.Sprint(n%10), 1000+n)
		want = append(want, text)
		writing.Go(func() {
			if err := w.Write(t.Context(), []byte(text)); err != nil {
				t.Error(err)
			}
		})
	}
	writing.Wait()
	require.NoError(t, w.Err())
	w.End(io.EOF)
	w.Wait()
	got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	slices.Sort(got)
	slices.Sort(want)
	require.Equal(t, want, got)
}

func TestWriter_slowPeer(t *testing.T) {
	in, out := io.Pipe() // nobody reads
	ended := make(chan struct{})
	w := jsonrpc.NewWriter(out, func() {
		close(ended)
		_ = out.Close()
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	failed := make(chan error, 3)
	for range 2 { // one in the middle of its write, one before
		go func() { failed <- w.Write(ctx, []byte("unread")) }()
	}
	givenUp, over := errors.New("given up"), errors.New("over")
	cancel(givenUp)
	require.Equal(t, givenUp, <-failed)
	require.Equal(t, givenUp, <-failed)

	go func() { failed <- w.Write(t.Context(), []byte("unread")) }()
	w.End(over)
	require.Equal(t, over, <-failed)
	<-w.Ended()
	w.End(errors.New("another reason"))
	require.Equal(t, over, w.Err())
	require.Equal(t, over, w.Write(t.Context(), nil))
	w.Wait()
	<-ended
	_, err := in.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

func TestWriter_cancelledWriteIsWhole(t *testing.T) {
	in, out := io.Pipe()
	w := jsonrpc.NewWriter(out, func() { _ = out.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() { failed <- w.Write(ctx, []byte("first")) }()
	lines := jsonrpc.NewReader(in, 100)
	part := make([]byte, 2)
	_, err := io.ReadFull(in, part)
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	go func() { failed <- w.Write(t.Context(), []byte("second")) }()
	got, err := lines.Append(part)
	require.NoError(t, err)
	require.Equal(t, "first\n", string(got))
	got, err = lines.Append(nil)
	require.NoError(t, err)
	require.Equal(t, "second\n", string(got))
	require.NoError(t, <-failed)
	w.End(io.EOF)
	w.Wait()
}

func TestWriter_writeError(t *testing.T) {
	in, out := io.Pipe()
	gone := errors.New("gone")
	require.NoError(t, in.CloseWithError(gone))
	then := make(chan struct{})
	w := jsonrpc.NewWriter(out, func() { close(then) })
	require.Equal(t, gone, w.Write(t.Context(), []byte("one")))
	<-then
	require.Equal(t, gone, w.Err())
	w.Wait()
}
