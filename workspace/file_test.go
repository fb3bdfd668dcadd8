package workspace_test

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHash(t *testing.T) {
	dir := realDir(t)
	path := filepath.Join(dir, "file")
	write(t, path, "text")
	w := open(t, dir)
	want := sha256.Sum256([]byte("text"))

	sum, size, err := w.Hash(path, 4)
	require.NoError(t, err)
	require.Equal(t, hex.EncodeToString(want[:]), sum)
	require.EqualValues(t, 4, size)

	sum, size, err = w.Hash(path, 3)
	require.NoError(t, err)
	require.Empty(t, sum)
	require.EqualValues(t, 4, size)

	_, _, err = w.Hash(dir, 4)
	require.Error(t, err)
}
