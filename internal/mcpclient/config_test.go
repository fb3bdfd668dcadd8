package mcpclient_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/mcpclient"
)

func TestW12_AConfigurationPrintsWithoutItsSecrets(t *testing.T) {
	c := mcpclient.Config{
		Name: "s", Transport: mcpclient.HTTP, URL: "https://user:hunter2@example.com/?key=hunter2", Args: []string{"hunter2"},
		Env: []mcpclient.Pair{{Name: "A", Value: "hunter2"}}, Headers: []mcpclient.Pair{{Name: "B", Value: "hunter2"}},
	}
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info("text", "config", c)
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("json", "configs", []mcpclient.Config{c})
	encoded, err := json.Marshal(map[string]any{"all": []mcpclient.Config{c}, "pointer": &c})
	require.NoError(t, err)
	for _, printed := range []string{
		logged.String(), string(encoded), fmt.Sprint(c), fmt.Sprintf("%v %+v %#v %s %q", c, c, c, c, c), fmt.Sprintf("%+v %#v", []mcpclient.Config{c}, &c),
	} {
		require.NotContains(t, printed, "hunter2")
		require.Contains(t, printed, "s")
	}
}
