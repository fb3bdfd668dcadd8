package tools

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

func TestReadFiles(t *testing.T) {
	top, h := twoRoots(t)
	app, lib := filepath.Join(top, "app"), filepath.Join(top, "lib")
	said := h.said("read_files", args{"paths": []string{"in", filepath.Join(lib, "in"),
		"none", filepath.Join(top, "out/secret")}})
	require.Regexp(t, fmt.Sprintf(`^%[1]s/in \(folder %[1]s\), lines 1 to 1 of 1, version \w+
fine

%[2]s/in \(folder %[2]s\), lines 1 to 1 of 1, version \w+
fine

none could not be read: .*no such file.*
\n%[3]s/out/secret could not be read: .*is outside.*
$`, app, lib, top), said)

	err := h.refused("read_files", args{"paths": []string{"none", filepath.Join(top, "out/secret")}})
	var outside *workspace.OutsideError
	require.ErrorAs(t, err, &outside)
	require.ErrorContains(t, err, "no such file")
}

func TestReadFilesIsBounded(t *testing.T) {
	app := plant(t, fileTree{"a": "12345\n", "b": "12345\n", "c": "12\n",
		"long": strings.Repeat("12345\n", 10), "empty": ""})
	place := len(filepath.Join(app, "a")) + len(app) // what locating a file takes
	read := func(l limits, paths ...string) (said string, files int) {
		h := serve(t, openRoots(t, app), Options{limits: l})
		said = h.said("read_files", args{"paths": paths})
		return said, strings.Count(said, " (folder ")
	}
	room := limits{bytes: 3*place + 15}
	said, files := read(room, "a", "b", "c", "a")
	require.Equal(t, 3, files)
	require.Contains(t, said,
		fmt.Sprintf("[truncated: the limit of %d bytes was reached. Read the others in another call: a]", room.bytes))
	said, files = read(limits{bytes: place + 15}, "a", "long", "c")
	require.Equal(t, 1, files)
	require.Contains(t, said, ": long, c]", "they are read whole or not at all")
	said, _ = read(limits{bytes: 15}, "long")
	require.Contains(t, said, "Continue with offset 3.", "one that never fits is cut")
	_, files = read(limits{}, slices.Repeat([]string{"empty"}, 10_000)...)
	require.Less(t, files, 2000, "naming a file takes room too")
	said, _ = read(limits{time: time.Nanosecond}, "a", "b")
	require.Equal(t, "[truncated: the limit of 0 ms was reached. Read the others in another call: "+
		"a, b]\n", said)
}
