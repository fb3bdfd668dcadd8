package model

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// mode says what the model may do without asking.
type mode string

const (
	ask         mode = "ask"          // asks before each change and command
	acceptEdits mode = "accept_edits" // edits files without asking; see modelCall.permit for exceptions
	readOnly    mode = "read_only"    // has no tools that change anything
	planning    mode = "plan"         // like readOnly, and tells the model to plan
)

// settings are what the user can choose in a session. They are kept with it.
type settings struct {
	Mode   mode   `json:"mode"`
	Model  string `json:"model,omitempty"` // its ID
	Effort string `json:"effort"`          // see llm.Request

	// Roots describes the roots that the model was last told about.
	Roots string `json:"roots,omitempty"`
	// Costs are the costs of the session's requests, by currency. The map is never modified.
	Costs map[string]float64 `json:"costs,omitempty"`
	// Foreign is how many updates at the beginning of the history are from another agent, from
	// which the session was transferred.
	Foreign int `json:"foreign,omitempty"`
}

// choice is a value that the user can choose.
type choice = sdk.SessionConfigSelectOption

// modes are the choices of mode. As for all settings, the first is the default.
var modes = []choice{
	newChoice(string(ask), "Ask", "Asks before each change and each command"),
	newChoice(string(acceptEdits), "Accept edits",
		"Changes files without asking, except those that programs run automatically; "+
			"asks before commands, and before files are moved or deleted"),
	newChoice(string(readOnly), "Read only", "Reads and searches, and changes nothing"),
	newChoice(string(planning), "Plan", "Reads, searches and makes a plan, and changes nothing"),
}

// defaultEffort is the value for the model's default effort, because clients need a value.
const defaultEffort = "default"

var efforts = []choice{
	newChoice(defaultEffort, "Default", "The model decides"),
	newChoice("none", "None", "Does not think, if the model can be told so"),
	newChoice("minimal", "Minimal", "Answers soonest"),
	newChoice("low", "Low", "Answers sooner"),
	newChoice("medium", "Medium", ""),
	newChoice("high", "High", "Thinks longer before it answers"),
	newChoice("xhigh", "Extra high", "Thinks long; few models know this level"),
	newChoice("max", "Maximum", "Thinks as long as possible; few models know this level"),
}

func newChoice(value, name, description string) choice {
	c := choice{Value: sdk.SessionConfigValueId(value), Name: name}
	if description != "" && description != name {
		c.Description = &description
	}
	return c
}

// option is one of the settings.
type option struct {
	id      sdk.SessionConfigId // also its category
	name    string
	choices []choice
	value   *string // in settings
}

const modeOption sdk.SessionConfigId = "mode"

// options returns all settings, with their values in s.
func (b *modelBackend) options(s *settings) []option {
	var models []choice
	for _, e := range b.endpoints {
		models = append(models, newChoice(e.given.ID, e.given.ID, e.given.Name))
	}
	return []option{
		{modeOption, "Mode", modes, (*string)(&s.Mode)},
		{"model", "Model", models, &s.Model},
		{"thought_level", "Thought level", efforts, &s.Effort},
	}
}

// values returns the values of all choices.
func (o option) values() []string {
	var values []string
	for _, c := range o.choices {
		values = append(values, string(c.Value))
	}
	return values
}

// restoreSettings returns the settings in a saved state, with defaults for values that are missing
// or no longer possible.
func (b *modelBackend) restoreSettings(state []byte) (s settings) {
	_ = json.Unmarshal(state, &s)
	for _, o := range b.options(&s) {
		if values := o.values(); !slices.Contains(values, *o.value) {
			*o.value = values[0]
		}
	}
	return s
}

func (s *modelSession) snapshot() settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settings
}

// current returns the settings and the endpoint of the chosen model.
func (s *modelSession) current() (settings, *endpoint) {
	set := s.snapshot()
	if set.Effort == defaultEffort {
		set.Effort = ""
	}
	return set, s.backend.endpoint(set.Model)
}

// describeSettings returns the members modes and configOptions of a lifecycle response.
func (s *modelSession) describeSettings() backend.Raw {
	set := s.snapshot()
	available := make([]sdk.SessionMode, len(modes))
	for i, m := range modes {
		available[i] = sdk.SessionMode{
			Id: sdk.SessionModeId(m.Value), Name: m.Name, Description: m.Description,
		}
	}
	return backend.Encode(sdk.LoadSessionResponse{
		Modes: &sdk.SessionModeState{
			AvailableModes: available, CurrentModeId: sdk.SessionModeId(set.Mode),
		},
		ConfigOptions: s.configOptions(set),
	})
}

func (s *modelSession) configOptions(set settings) []sdk.SessionConfigOption {
	var list []sdk.SessionConfigOption
	for _, o := range s.backend.options(&set) {
		choices := sdk.SessionConfigSelectOptionsUngrouped(o.choices)
		list = append(list, sdk.SessionConfigOption{Select: &sdk.SessionConfigOptionSelect{
			Id: o.id, Name: o.name, Category: sdk.Ptr(sdk.SessionConfigOptionCategory(o.id)),
			Type: "select", CurrentValue: sdk.SessionConfigValueId(*o.value),
			Options: sdk.SessionConfigSelectOptions{Ungrouped: &choices},
		}})
	}
	return list
}

// Call serves session/set_mode and session/set_config_option. The setting changes at once, even if
// a turn is running.
func (s *modelSession) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	setsOption := method == protocol.SessionSetConfigOption
	if !setsOption && method != protocol.SessionSetMode {
		return nil
	}
	p, err := strictjson.ParseObject(params)
	id, value := string(modeOption), p.Field("modeId")
	if setsOption && err == nil {
		var v strictjson.Violations
		id, value = v.Text(p.Field("configId")), p.Field("value")
		err = v.Err()
	}
	if err == nil {
		err = s.choose(sdk.SessionConfigId(id), value)
	}
	return func() (backend.Raw, error) {
		switch {
		case err != nil:
			return nil, err
		case !setsOption:
			_, err := s.change(ctx, nil, s.optionsUpdate)
			return backend.Raw(`{}`), err
		}
		var tell []func(settings) backend.Update
		if sdk.SessionConfigId(id) == modeOption {
			tell = append(tell, modeUpdate)
		}
		set, err := s.change(ctx, nil, tell...)
		result := sdk.SetSessionConfigOptionResponse{ConfigOptions: s.configOptions(set)}
		return backend.Encode(result), err
	}
}

// setModeTo changes the mode for the user, and tells the client.
func (s *modelSession) setModeTo(ctx context.Context, m mode) error {
	_, err := s.change(ctx, func(set *settings) { set.Mode = m }, modeUpdate, s.optionsUpdate)
	return err
}

// choose sets an option to the choice that a client has sent.
func (s *modelSession) choose(id sdk.SessionConfigId, field strictjson.Field) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for _, o := range s.backend.options(&s.settings) {
		if o.id != id {
			ids = append(ids, string(o.id))
			continue
		}
		var v strictjson.Violations
		value := v.Text(field)
		if v.Err() == nil && !slices.Contains(o.values(), value) {
			v.Add(field.Refuse(strictjson.Unsupported).Expecting(use(o.values())))
		}
		if err := v.Err(); err != nil {
			return err
		}
		*o.value = value
		return nil
	}
	unknown := strictjson.NewViolation("configId", string(id), strictjson.Unsupported)
	return strictjson.Refuse(unknown.Expecting(use(ids)))
}

func use(values []string) string { return "use " + strings.Join(values, ", ") }

// change edits the settings, saves them, and sends the client the updates that tell returns. It
// returns the settings that were saved. edit is nil if they were edited before.
func (s *modelSession) change(
	ctx context.Context, edit func(*settings), tell ...func(settings) backend.Update,
) (settings, error) {
	s.saving.Lock() // so that the last settings are saved and sent last
	defer s.saving.Unlock()
	s.mu.Lock()
	if edit != nil {
		edit(&s.settings)
	}
	set := s.settings
	s.mu.Unlock()
	saved := set
	if set.Model == s.backend.endpoints[0].given.ID {
		saved.Model = "" // the session uses another first model if there is one later
	}
	if err := s.host.SaveState(ctx, backend.Encode(saved)); err != nil {
		return set, err
	}
	for _, update := range tell {
		if err := s.host.Update(ctx, update(set)); err != nil {
			return set, err
		}
	}
	return set, nil
}

func modeUpdate(set settings) backend.Update {
	current := &sdk.SessionCurrentModeUpdate{CurrentModeId: sdk.SessionModeId(set.Mode)}
	return backend.NewUpdate(sdk.SessionUpdate{CurrentModeUpdate: current})
}

func (s *modelSession) optionsUpdate(set settings) backend.Update {
	options := &sdk.SessionConfigOptionUpdate{ConfigOptions: s.configOptions(set)}
	return backend.NewUpdate(sdk.SessionUpdate{ConfigOptionUpdate: options})
}
