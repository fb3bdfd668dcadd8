package web_test

import (
	"bytes"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	document "github.com/acp-agent/acp-agent/internal/history/conversation"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
	"github.com/acp-agent/acp-agent/internal/web"
	"github.com/acp-agent/acp-agent/sessionstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve serves the page.
func serve(t testing.TB, o web.Options) *web.Server {
	t.Helper()
	if o.Details == nil {
		o.Details = func(sessionstore.Session) web.Details { return web.Details{} }
	}
	server := httptest.NewUnstartedServer(nil)
	page := web.New(server.Listener.Addr().String(), o)
	server.Config.Handler = page
	server.Start()
	t.Cleanup(server.Close)
	return page
}

// TestPeopleReadSessionsInABrowser walks through all views with a keyboard, in a real browser. The
// walk is testdata/node-browser/inspect.mjs. With ACP_AGENT_SCREENSHOTS=DIR it also writes pictures
// of the views; those in docs/images are search, conversation, traces and trace, light-1400.
func TestPeopleReadSessionsInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	npmtest.File(t, "testdata/node-browser", "@sparticuz/chromium/package.json")
	script := filepath.Join(filepath.Dir(npmtest.File(t, "testdata/node-browser", "")), "inspect.mjs")
	dir, pictures := t.TempDir(), os.Getenv("ACP_AGENT_SCREENSHOTS")
	if pictures != "" {
		require.NoError(t, os.MkdirAll(pictures, 0o700))
		dir = filepath.Join(os.TempDir(), "home", "ana")
		require.NoError(t, os.MkdirAll(dir, 0o700))
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
	}
	store := memstore.New(t)
	lease := sessions(t, store, dir, 20_000)
	trace := writeTrace(t, dir)
	windowsTrace(t, dir, trace)
	longTrace(t, dir, 20_000)
	shop := filepath.Join(dir, "src", "shop")
	snapshots := begun(t, "sess_shop", shop)
	require.NoError(t, os.WriteFile(filepath.Join(shop, "backoff.go"), []byte("package payment\n\nconst attempts = 4\n"), 0o600))
	page := serve(t, web.Options{Store: store, Traces: []string{dir}, Snapshots: snapshots,
		Details: func(one sessionstore.Session) web.Details {
			return web.Details{
				Given:    "by the protocol: the agent takes additionalDirectories",
				From:     []string{"", "", "workspaces[0] in /home/ana/.config/acp-agent/config.json"},
				Continue: "acp-agent run --agent opencode --resume " + string(one.ID) + ` "Where were we?"`,
			}
		}})

	exported := filepath.Join(dir, "exported.html")
	require.NoError(t, os.WriteFile(exported, export(t, store), 0o600))
	walk := exec.CommandContext(t.Context(), npmtest.Node(t), script, page.URL(), exported, pictures)
	walk.Env = append(os.Environ(), "HOME="+dir)
	in, err := walk.StdinPipe()
	require.NoError(t, err)
	var out strings.Builder
	happen := map[string]func(){ // while the walk looks at it
		"now: turn\n": func() {
			turn(t, store, lease, "And if the service is down for an hour?", said("agent_message_chunk", "Then the order is kept."))
		},
		"now: answers\n": func() { continueTrace(t, trace) },
	}
	walk.Stdout = writer(func(line []byte) (int, error) {
		for cue, happens := range happen {
			if strings.Contains(string(line), cue) {
				happens()
				_, _ = in.Write([]byte("\n"))
			}
		}
		return out.Write(line)
	})
	walk.Stderr = walk.Stdout
	require.NoError(t, walk.Run(), "%s", &out)
}

// export returns a session as it is exported.
func export(t *testing.T, store sessionstore.Store) []byte {
	t.Helper()
	entries, err := document.Read(store.History(t.Context(), "sess_shop"))
	require.NoError(t, err)
	var page bytes.Buffer
	require.NoError(t, document.WriteHTML(&page, document.Document{Title: "Orders fail when the payment service answers 503",
		Session: "sess_shop", Agent: "opencode", Folders: []string{"/home/ana/src/shop", "/home/ana/src/shared"}, Entries: entries}))
	return page.Bytes()
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
