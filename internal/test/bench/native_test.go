package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const (
	native         = "native" // the argument with which the test binary has sessions of its own
	nativeSessions = 20_000
	nativePage     = 500
)

// serveNative is an agent that lists sessions that it has itself, and does nothing else.
func serveNative(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Cursor string }
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return err
		}
		result := map[string]any{"protocolVersion": 1, "agentCapabilities": map[string]any{
			"loadSession": true, "sessionCapabilities": map[string]any{"list": map[string]any{}}}}
		if m.Method == "session/list" {
			result = nativeList(m.Params.Cursor)
		}
		if len(m.ID) == 0 {
			continue
		}
		line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s\n", line); err != nil {
			return err
		}
	}
	return lines.Err()
}

// nativeList returns a page, the oldest sessions first.
func nativeList(cursor string) map[string]any {
	first := 0
	_, _ = fmt.Sscan(cursor, &first) // "" is the first page
	var sessions []any
	for i := first; i < first+nativePage; i++ {
		sessions = append(sessions, map[string]any{"sessionId": fmt.Sprint("s", i),
			"cwd": fmt.Sprint("/src/", i%50), "title": fmt.Sprint("title ", i),
			"updatedAt": time.UnixMilli(1_700_000_000_000).Add(time.Duration(i) * time.Minute)})
	}
	result := map[string]any{"sessions": sessions}
	if next := first + nativePage; next < nativeSessions {
		result["nextCursor"] = fmt.Sprint(next)
	}
	return result
}

// BenchmarkNativeList measures the first page of the first session/list of a process, if the agent
// behind it has 20,000 sessions that an earlier process has imported.
func BenchmarkNativeList(b *testing.B) {
	command := []string{build(b, "cmd/acp-agent"), "--", os.Args[0], native}
	state := filepath.Join(b.TempDir(), "state")
	var page struct {
		Sessions   []struct{ Title string }
		NextCursor string
	}
	list := func(a *agent, params map[string]any) {
		page.NextCursor = ""
		a.call("session/list", params, &page)
	}
	a := runIn(b, state, append([]string(nil), command...))
	for list(a, map[string]any{}); page.NextCursor != ""; { // which waits for the import
		list(a, map[string]any{"cursor": page.NextCursor})
	}
	a.leave()
	measure(b, func() time.Duration {
		a := runIn(b, state, append([]string(nil), command...))
		defer a.leave()
		took := timed(func() { list(a, map[string]any{}) })
		if page.Sessions[0].Title != fmt.Sprint("title ", nativeSessions-1) {
			b.Fatalf("the newest session is %q", page.Sessions[0].Title)
		}
		return took
	})
}
