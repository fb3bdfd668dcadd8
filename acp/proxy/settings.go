package proxy

import (
	"context"
	"slices"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// settingChange is a request that chose the mode, the model or an option of a child session. It is
// repeated when the child is restarted, so that the session stays in the mode that the user sees.
type settingChange struct {
	method, option string
	params         backend.Raw // without sessionId
}

// keepSetting keeps a successful request if it changes a setting, in place of an earlier one.
func (cs *childSession) keepSetting(method string, params backend.Raw) {
	switch method {
	case protocol.SessionSetMode, protocol.SessionSetConfigOption, protocol.SessionSetModel:
	default:
		return
	}
	c := settingChange{method, strictjson.FindText(params, "configId"), params}
	cs.locked(func() {
		cs.settings = append(slices.DeleteFunc(cs.settings, func(before settingChange) bool {
			return before.method == c.method && before.option == c.option
		}), c)
	})
}

// repeatSettings gives cs the settings of an earlier session of the child.
func (cs *childSession) repeatSettings(ctx context.Context, earlier *childSession) {
	var changes []settingChange
	earlier.locked(func() { changes = slices.Clone(earlier.settings) })
	for _, c := range changes {
		// Unlike in forward, ctx belongs to another request of the client.
		if _, err := cs.child.request(ctx, c.method, withSessionID(c.params, cs.id))(); err != nil {
			cs.child.log.Warn("the restarted agent rejected a setting", "method", c.method,
				"error", err)
			continue
		}
		cs.keepSetting(c.method, c.params)
	}
}
