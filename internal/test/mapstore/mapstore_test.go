package mapstore_test

import (
	"errors"
	"os"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/mapstore"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/storetest"
)

func TestMain(m *testing.M) {
	volume.Checks(4, 100)
	os.Exit(m.Run())
}

// The core is a contract of its own: a store that has nothing else passes.
//
// Clause N3.
func TestContract(t *testing.T) {
	storetest.Test(t, func(t *testing.T) sessionstore.Store {
		s := &mapstore.Store{}
		t.Cleanup(func() { _ = s.Close() })
		return s
	})
}

func TestHasNoOptionalPart(t *testing.T) {
	_, err := sessionstore.As[sessionstore.Importer](&mapstore.Store{})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.EqualError(t, err, "this session store cannot do that: it is no sessionstore.Importer")
	require.Equal(t, reflect.TypeFor[sessionstore.Store]().NumMethod(),
		reflect.TypeFor[*mapstore.Store]().NumMethod(), "it has the core and nothing else")
	require.LessOrEqual(t, reflect.TypeFor[sessionstore.Store]().NumMethod(), 18)
}
