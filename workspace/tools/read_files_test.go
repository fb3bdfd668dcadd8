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
	read := func(l limits, paths ...string) readFiles {
		h := serve(t, openRoots(t, app), Options{limits: l})
		return do[readFiles](h, "read_files", args{"paths": paths})
	}
	room := limits{bytes: 3*place + 15}
	got := read(room, "a", "b", "c", "a")
	require.Len(t, got.Files, 3)
	require.Equal(t, []string{"a"}, got.Unread)
	require.Contains(t, got.String(),
		fmt.Sprintf("[truncated: the limit of %d bytes was reached. Read the others in another call: a]", room.bytes))
	got = read(limits{bytes: place + 15}, "a", "long", "c")
	require.Len(t, got.Files, 1)
	require.Equal(t, []string{"long", "c"}, got.Unread, "they are read whole or not at all")
	got = read(limits{bytes: 15}, "long")
	require.Contains(t, got.Files[0].Cut.How, "offset 3", "one that never fits is cut")
	got = read(limits{}, slices.Repeat([]string{"empty"}, 10_000)...)
	require.Less(t, len(got.Files), 2000, "naming a file takes room too")
	got = read(limits{time: time.Nanosecond}, "a", "b")
	require.Equal(t, []string{"a", "b"}, got.Unread)
	require.Contains(t, got.String(), "the limit of 0 ms was reached")
}
