package version

import (
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOf(t *testing.T) {
	commit := time.Date(2026, 11, 22, 21, 5, 58, 0, time.UTC)
	settings := []debug.BuildSetting{
		{Key: "vcs.revision", Value: "9871c43"},
		{Key: "vcs.time", Value: "2026-11-22T21:05:58Z"},
		{Key: "vcs.modified", Value: "false"},
	}
	const (
		untagged = "0.0.0-20261122210558-9871c4375694"
		later    = "1.2.4-0.20261122210558-9871c4375694"
	)
	malformed := []debug.BuildSetting{{Key: "vcs.time", Value: "now"}}
	for name, c := range map[string]struct {
		main     string
		settings []debug.BuildSetting
		want     Version
	}{
		"a release":           {"v1.2.3", settings, Version{"1.2.3", "9871c43", commit, false}},
		"go install":          {"v1.2.3", nil, Version{Number: "1.2.3"}},
		"after a release":     {"v" + later, nil, Version{Number: later}},
		"no release yet":      {"v" + untagged, settings, Version{untagged, "9871c43", commit, false}},
		"a changed checkout":  {"v1.2.3+dirty", nil, Version{Number: "1.2.3", Changed: true}},
		"changed, no release": {"v" + untagged + "+dirty", nil, Version{Number: untagged, Changed: true}},
		"without a checkout":  {"(devel)", nil, Version{Number: development}},
		"without information": {"", nil, Version{Number: development}},
		"a malformed date":    {"v1.0.0", malformed, Version{Number: "1.0.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			info := &debug.BuildInfo{Main: debug.Module{Version: c.main}, Settings: c.settings}
			require.Equal(t, c.want, Of(info))
		})
	}
	require.Equal(t, Version{Number: development}, Of(nil))
}
