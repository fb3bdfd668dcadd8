package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hostileCalls are small calls that could hold a core, or allocate much, and their tools.
func hostileCalls() map[string]struct{ tool, arguments string } {
	some := strings.Repeat
	encoded := func(a args) string { return string(encode(a)) }
	deep := some("[", 9000) + `"` + some("x", 50_000) + `"` + some("]", 9000)
	members := args{"path": "a", "offset": 1}
	var globs []string
	for i := range 20_000 {
		members[fmt.Sprint("x", i)] = i
	}
	for i := range 100 {
		globs = append(globs, some("**/*a*b/", 8)+some("{a*,*b}", 8)+some("*a", 100)+fmt.Sprint(i))
	}
	calls := map[string]struct{ tool, arguments string }{
		"digits in any case": {"search",
			encoded(args{"pattern": some("1", 9990), "ignore_case": true})},
		"classes":          {"search", encoded(args{"pattern": some(`\pL`, 3000), "ignore_case": true})},
		"repeated classes": {"search", encoded(args{"pattern": some(`(?:\pL{1000})`, 9)})},
		"groups":           {"search", encoded(args{"pattern": some(`(x?)`, 1600) + "y"})},
		"choices":          {"search", encoded(args{"pattern": some(`x|`, 4900) + "x"})},
		"a deep member": {"edit_file",
			`{"path":"a","edits":[{"old_text":"q","new_text":"y","z":` + deep + `}]}`},
		"a deep argument": {"edit_file", `{"path":"a","old_text":"q","new_text":"y","z":` + deep + `}`},
		"a deep path":     {"edit_file", `{"path":` + deep + `}`},
		"many members":    {"read_file", encoded(members)},
		"globs":           {"find_files", encoded(args{"exclude": globs})},
		"too many globs":  {"find_files", encoded(args{"exclude": append(globs, globs...)})},
		"many paths":      {"read_files", encoded(args{"paths": slices.Repeat(globs, 50)})},
		"many similar lines": {"edit_file", encoded(args{"path": "lines",
			"old_text": some(" x\n", 4990) + "y\n", "new_text": ""})},
		"much to indent": {"edit_file", encoded(args{"path": "lines", "old_text": "  x\n",
			"new_text": some(" x\n", 10_000) + "\tx\n"})},
		"wide indentation": {"edit_file", encoded(args{"path": "wide", "old_text": " x\n",
			"new_text": some(some(" ", 200)+"x\n", 1000)})},
		"growing text": {"edit_file", `{"path":"a","edits":[` +
			some(`{"old_text":"x","new_text":"xxxx","replace_all":true},`, 40) +
			`{"old_text":"q","new_text":""}],"dry_run":true}`},
	}
	return calls
}

// hostileTree is the folder that hostile calls are about.
var hostileTree = fileTree{
	"a": "x\n", "lines": strings.Repeat("x\n", 10_000), "wide": strings.Repeat(" ", 100_000) + "x\n",
	filepath.Join(strings.Split(strings.Repeat("ab ", 50)+strings.Repeat("a", 200), " ")...): "",
}

// callWithin calls a tool, and fails if it allocates much more than its arguments are long.
func (h *host) callWithin(t *testing.T, tool string, arguments json.RawMessage) {
	t.Helper()
	const most = 100 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	result, err := h.set.Call(ctx, tool, arguments)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(most+100*len(arguments)))
	require.Less(t, len(result.Text), 200<<10)
	if err != nil && ctx.Err() == nil {
		require.Less(t, len(err.Error()), 50<<10)
	}
}

// A small call neither holds a core nor allocates much: without the limits, some of these run for
// minutes or until the memory is used up.
func TestHostileCallsAreBounded(t *testing.T) {
	h := serve(t, openRoots(t, plant(t, hostileTree)), Options{})
	for name, call := range hostileCalls() {
		t.Run(name, func(t *testing.T) {
			h.callWithin(t, call.tool, json.RawMessage(call.arguments))
		})
	}
}

// FuzzCalls calls any tool with any arguments.
func FuzzCalls(f *testing.F) {
	for _, call := range hostileCalls() {
		f.Add(call.tool, call.arguments)
	}
	f.Fuzz(func(t *testing.T, tool, arguments string) {
		allow := func(context.Context, Change) error { return nil }
		set := New(openRoots(t, plant(t, hostileTree)), Options{Permit: allow})
		h := &host{tb: t, set: set} // compiling the schemas takes long
		h.callWithin(t, tool, json.RawMessage(arguments))
	})
}
