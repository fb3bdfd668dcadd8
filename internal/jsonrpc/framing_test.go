package jsonrpc_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// errBroken is the end of a stream that breaks.
var errBroken = errors.New("broken")

// streams are inputs that lines of other lengths than a buffer's are cut from.
func streams(t *rapid.T) (text string, max int) {
	lengths := rapid.OneOf(rapid.IntRange(0, 6), rapid.SampledFrom([]int{64<<10 - 2, 64<<10 - 1, 64 << 10, 64<<10 + 1, 128 << 10, 200_000}))
	var b strings.Builder
	for range rapid.IntRange(0, 5).Draw(t, "lines") {
		b.WriteString(strings.Repeat("x", lengths.Draw(t, "length")))
		b.WriteString(rapid.SampledFrom([]string{"\n", "\r\n", "\r", ""}).Draw(t, "end"))
	}
	return b.String(), lengths.Draw(t, "max")
}

// reading is a stream as a reader may get it.
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

func TestW3_EachLineComesWholeOrIsRefused(t *testing.T) {
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
			require.LessOrEqual(t, len(got), max+64<<10+2)
			require.True(t, strings.HasPrefix(want, string(got)))
		}
		for range 2 {
			rest, err := lines.Append(nil)
			require.ErrorIs(t, err, errBroken)
			require.Empty(t, rest)
		}
	})
}

func TestW3_ALongLineCanBePassedOnInParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, max := streams(t)
		lines := jsonrpc.NewReader(reading(t, text), max)
		var passed []byte
		for {
			var err error
			var long *jsonrpc.TooLongError
			if passed, err = lines.Append(passed); errors.As(err, &long) {
				err = nil
				for part := []byte("a first one"); len(part) > 0 && err == nil; {
					part, err = lines.Part()
					passed = append(passed, part...)
				}
			}
			if err != nil {
				require.ErrorIs(t, err, io.EOF)
				break
			}
		}
		require.Equal(t, text, string(passed))
	})
}

func TestTheWidestLimitHoldsEveryLine(t *testing.T) {
	line, err := jsonrpc.NewReader(strings.NewReader("line\n"), math.MaxInt).Append(nil)
	require.NoError(t, err)
	require.Equal(t, "line\n", string(line))
}

func TestThereAreNoPartsOfAnOrdinaryLine(t *testing.T) {
	lines := jsonrpc.NewReader(strings.NewReader("one\ntwo"), 3)
	_, err := lines.Append(nil)
	require.NoError(t, err)
	part, err := lines.Part()
	require.NoError(t, err)
	require.Empty(t, part)
	line, err := lines.Append(nil)
	require.NoError(t, err)
	require.Equal(t, "two", string(line))
}
