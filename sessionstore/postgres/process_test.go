package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/storetest"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/postgres"
)

// The test binary acts as other processes, which get an address and a name.
const (
	addressVariable = "SESSIONSTORE_TEST_ADDRESS"
	nameVariable    = "SESSIONSTORE_TEST_NAME"
)

// play makes random changes forever.
func play(string) int {
	s, err := postgres.New(postgres.Options{Address: os.Getenv(addressVariable)})
	if err == nil {
		err = errors.Join(storetest.Work(context.Background(), s, os.Getenv(nameVariable), math.MaxInt, os.Stdout), s.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Clauses S1, S2, S3, N3.
func TestShared(t *testing.T) {
	address := server.Address(t)
	var n atomic.Int64
	storetest.TestShared(t,
		func(t *testing.T) sessionstore.Shared { return open(t, address) },
		func(t *testing.T, lines int) ([]byte, error) {
			cmd := exec.CommandContext(t.Context(), proctest.Executable())
			cmd.Env = append(os.Environ(), proctest.Env("worker", addressVariable+"="+address,
				nameVariable+fmt.Sprint("=process ", n.Add(1)))...)
			return proctest.KillAfter(cmd, lines)
		})
	require.Zero(t, server.Deadlocks(t), "transactions lock in one order")
}
