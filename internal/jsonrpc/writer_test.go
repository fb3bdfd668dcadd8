package jsonrpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

func ExampleWriter() {
	w := jsonrpc.NewWriter(os.Stdout, nil)
	err := w.Write(context.Background(), []byte("one"))
	w.End(io.EOF)
	w.Wait()
	fmt.Println(err, w.Write(context.Background(), []byte("two")))
	// Output:
	// one
	// <nil> EOF
}

func TestW1_LinesOfSeveralWritersAreWhole(t *testing.T) {
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

func TestAPeerThatDoesNotReadHoldsUpNobody(t *testing.T) {
	in, out := io.Pipe() // nobody reads
	ended := 0
	w := jsonrpc.NewWriter(out, func() {
		ended++
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
	require.Equal(t, 1, ended)
	_, err := in.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

func TestALineThatWasGivenUpIsWholeForWhoReadsOn(t *testing.T) {
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

func TestAWriteThatFailsEndsTheWriter(t *testing.T) {
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
