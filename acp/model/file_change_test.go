package model

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// A path is said once, and none can pass for the words around it.
func TestTitlesOfChanges(t *testing.T) {
	top := dirtest.Tree{"app/a.txt": "a", "my app/b.txt": "b"}.Plant(t)
	app, mine := top+"/app", top+"/my app"
	ws := roottest.Open(t, app, mine)
	for path, want := range map[string]string{
		"a.txt":                         "Write a.txt in folder APP",
		app + "/sub/new.txt":            "Write sub/new.txt in folder APP and its directory APP/sub",
		mine + "/b.txt":                 `Write b.txt in folder "MINE"`,
		app + "/h  in folder /safe.txt": `Write "h  in folder /safe.txt" in folder APP and its directory "APP/h  in folder "`,
		"x, y/new":                      `Write "x, y/new" in folder APP and its directory "APP/x, y"`,
		`"quoted"`:                      `Write "\"quoted\"" in folder APP`,
		"a\u202eb\u202f":                `Write "a\u202eb\u202f" in folder APP`,
	} {
		title := ""
		set := tools.New(ws, tools.Options{Permit: func(_ context.Context, c tools.Change) error {
			title = *describeChange(c).Title
			return errors.New("no")
		}})
		arguments, err := json.Marshal(map[string]string{"path": path, "content": "new"})
		require.NoError(t, err)
		_, _ = set.Call(t.Context(), "write_file", arguments)
		title = strings.NewReplacer(mine, "MINE", app, "APP").Replace(title)
		require.Equal(t, want, title, path)
	}
}
