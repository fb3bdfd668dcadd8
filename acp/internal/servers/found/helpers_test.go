package found_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
)

// client answers permission requests.
type client struct {
	answer string // an option's id, or "" for allow-once
	asked  []json.RawMessage
}

func (c *client) Call(_ context.Context, _ string, params backend.Raw) backend.Work {
	return func() (backend.Raw, error) {
		c.asked = append(c.asked, params)
		return backend.Raw(fmt.Sprintf(`{"outcome":{"outcome":"selected","optionId":%q}}`,
			cmp.Or(c.answer, "allow-once"))), nil
	}
}

func (*client) Notify(context.Context, string, backend.Raw) error { return nil }

// folder creates a directory with files, given as name and content in turn, and returns its path.
var folder = dirtest.New
