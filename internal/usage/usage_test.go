package usage

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// A folder that may not be opened has the same advice, whoever has tried to open it.
func TestNoPermission(t *testing.T) {
	const want = `--dir "/a" cannot be opened: you have no permission: chmod u+rx gives it to the owner`
	require.EqualError(t, WithFlagNames(workspace.RootErrors{{
		Root: 1, Path: "/a", Reason: workspace.ReasonUnreadable, Detail: "permission denied",
	}}, "cwd", "dir"), want)
	require.EqualError(t, WithFlagNames(strictjson.Refuse(strictjson.Violation{
		Field: "additionalDirectories", Value: json.RawMessage(`"/a"`),
		Reason: strictjson.Unreadable, Expected: "permission denied",
	}), "cwd", "dir"), want)
}
