package interop

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

// killsAfterChanges is how often the program is killed after it has changed a file.
const killsAfterChanges = 12

// awaitContent waits until a file has this content, and then up to 60 ms.
func awaitContent(t *testing.T, path, content string, random *rand.Rand) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Microsecond) {
		if text, err := os.ReadFile(path); err == nil && string(text) == content {
			break
		}
		require.True(t, time.Now().Before(end), "%s was not written", path)
	}
	time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond / time.Duration(1+random.IntN(20)))
}

// The program is killed at random moments after a model has changed a file. When the session is
// loaded again, the history shows the change, and the model knows it.
//
// Clause S11.
func TestKillsAfterChangesOfAModel(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	stage := onModelStage(t)
	e := stage.edit(t)
	setup := client.Setup{Roots: rootsOf(t, dir)}
	session := stage.open(e, setup)
	random := rand.New(rand.NewPCG(7, 8))
	for kill := range killsAfterChanges {
		path, content := filepath.Join(dir, fmt.Sprintf("f%d.txt", kill)), fmt.Sprintf("content %d\n", kill)
		done := make(chan error, 1)
		go func() {
			_, err := e.Prompt(within(t), session.id, sdk.TextBlock(modelserver.Prompt("Write.", modelserver.Write(path, content), modelserver.Wait())))
			done <- err
		}()
		awaitContent(t, path, content, random)
		shown := strings.Count(e.said(0), `"status":"completed"`)
		e.kill()
		<-done

		e = stage.edit(t)
		_, err := e.LoadSession(within(t), session.id, setup)
		require.NoError(t, err)
		replayed := e.said(0)
		require.NotEmpty(t, updates(updatesAbout(replayed, path), `"diff"`), "the history of kill %d lacks the change", kill)
		require.GreaterOrEqual(t, strings.Count(replayed, `"status":"completed"`), shown, "what was shown as done is on record")
		session.editor = e
		_, turn, _ := session.prompt("And now?", modelserver.Say("Nothing."))
		known := false
		for _, item := range turn[0].Items {
			known = known || item.Kind == modelserver.Call && strings.Contains(item.Text, filepath.Base(path))
		}
		require.True(t, known, "after kill %d the model does not know the change", kill)
	}
}

// updatesAbout returns the lines that are about a path.
func updatesAbout(said, path string) string { return strings.Join(updates(said, path), "") }
