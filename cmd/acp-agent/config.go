package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/model"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/internal/namedfile"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/secret"
	"github.com/acp-agent/acp-agent/workspace"
)

// config is the content of the configuration file. The zero value stands for a missing file.
type config struct {
	StateDir   string                  `json:"stateDir"`
	LogLevel   string                  `json:"logLevel"`
	LogFile    string                  `json:"logFile"`
	Trace      string                  `json:"trace"`
	MaxLine    *int                    `json:"maxLine"`
	MaxRoots   *int                    `json:"maxRoots"`
	Mounts     string                  `json:"mounts"`
	ReplayRate *int                    `json:"replayRate"`
	Allow      []string                `json:"allow"` // see allowValue
	Store      string                  `json:"store"`
	Workspaces []workspaceConfig       `json:"workspaces"`
	Omitted    whenOmitted             `json:"whenOmitted"`
	Agent      string                  `json:"agent"`      // see settings.answering
	Model      string                  `json:"model"`      // likewise
	Agents     map[string]agentConfig  `json:"agents"`     // by name
	MCPServers map[string]serverConfig `json:"mcpServers"` // by name, or "*" for all others
	Models     map[string]modelConfig  `json:"models"`     // by ID

	path string
}

// whenOmitted says which folders a session gets if it is loaded by a request without
// additionalDirectories.
type whenOmitted string

const (
	useConfigured whenOmitted = "configured" // those of --dir and workspaces
	useStored     whenOmitted = "stored"     // those that it had
)

// agentConfig changes a known agent or describes another one. Absent members change nothing.
type agentConfig struct {
	Command    string            `json:"command"`
	Args       *[]string         `json:"args"`
	Env        map[string]string `json:"env"`
	Roots      *proxy.RootsMode  `json:"roots"`
	RootsFlag  *string           `json:"rootsFlag"`
	RootsTools *proxy.ToolsMode  `json:"rootsTools"`
	RootsRelay *onOff            `json:"rootsRelay"`
	Login      string            `json:"login"`
	Identity   string            `json:"identity"`
	// RemoteUsers names members of [acp.Grants].
	RemoteUsers []string `json:"remoteUsers"`

	sandboxConfig
}

// sandboxConfig restricts what acp-agent starts.
type sandboxConfig struct {
	Sandbox         *sandbox.Mode `json:"sandbox"`
	SandboxWrite    []string      `json:"sandboxWrite"`
	SandboxRead     []string      `json:"sandboxRead"`
	SandboxPorts    []uint16      `json:"sandboxPorts"`
	SandboxFallback sandboxWarn   `json:"sandboxFallback"`
}

// serverConfig says what an MCP server may do.
type serverConfig struct {
	Roots         *onOff       `json:"roots"`
	OnShrink      keepOnShrink `json:"onShrink"`
	Templates     onOff        `json:"templates"`
	ReadOnlyTools trusted      `json:"readOnlyTools"`
	Era           legacy       `json:"era"`
	ClientID      string       `json:"clientId"`
	// ClientSecretEnv names the environment variable with the client's secret.
	ClientSecretEnv string `json:"clientSecretEnv"`

	sandboxConfig
}

// The values in the configuration for members of [acp.MCPPolicy].
type (
	onOff        bool
	keepOnShrink bool
	trusted      bool
	legacy       bool
	sandboxWarn  bool // a member of [sandbox.Settings]
)

// modelConfig describes a language model.
type modelConfig struct {
	API        model.API `json:"api"`
	BaseURL    string    `json:"baseURL"`
	Name       *string   `json:"name"` // nil for the ID
	KeyEnv     string    `json:"keyEnv"`
	KeyCommand []string  `json:"keyCommand"`
	// Headers have values in which $NAME stands for an environment variable.
	Headers       map[string]string `json:"headers"`
	ContextTokens *int              `json:"contextTokens"`
	MaxTokens     *int              `json:"maxTokens"`
	TextOnly      bool              `json:"textOnly"`
	PDF           *bool             `json:"pdf"`
	Fallback      string            `json:"fallback"` // the ID of another model
	Prices        *pricesConfig     `json:"prices"`

	sandboxConfig
}

// pricesConfig has the prices of a million tokens.
type pricesConfig struct {
	Input    float64  `json:"input"`
	Cached   *float64 `json:"cached"` // nil for that of input
	Output   float64  `json:"output"`
	Currency *string  `json:"currency"` // nil for USD
}

// prices returns the prices with their defaults, or nil.
func (p *pricesConfig) prices() *model.Prices {
	if p == nil {
		return nil
	}
	prices := &model.Prices{Input: p.Input, Cached: p.Input, Output: p.Output, Currency: "USD"}
	override(&prices.Cached, p.Cached)
	override(&prices.Currency, p.Currency)
	return prices
}

// check checks what decoding does not.
func (p *pricesConfig) check() error {
	prices := p.prices()
	switch {
	case prices == nil:
		return nil
	case min(prices.Input, prices.Cached, prices.Output) < 0:
		return errors.New("prices must not be negative")
	case !currency().MatchString(prices.Currency):
		return errors.New("the currency of prices must be a code such as USD or EUR")
	}
	return nil
}

// currency matches codes of ISO 4217.
var currency = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Z]{3}$`) })

// setting is the value of a setting in the configuration file, "" if it is absent.
type setting struct{ flag, key, value string }

// settings returns all settings that have a flag.
func (c config) settings() []setting {
	number := func(n *int) string {
		if n == nil {
			return ""
		}
		return strconv.Itoa(*n)
	}
	return []setting{
		{"state-dir", "stateDir", c.StateDir},
		{"store", "store", c.Store},
		{"log-level", "logLevel", c.LogLevel},
		{"log-file", "logFile", c.LogFile},
		{"trace", "trace", c.Trace},
		{"max-line", "maxLine", number(c.MaxLine)},
		{"max-roots", "maxRoots", number(c.MaxRoots)},
		{"mounts", "mounts", c.Mounts},
		{"replay-rate", "replayRate", number(c.ReplayRate)},
		{"allow", "allow", strings.Join(c.Allow, ",")},
		{"keep-dirs", "whenOmitted", c.keepDirs()},
	}
}

// keepDirs returns the value of --keep-dirs.
func (c config) keepDirs() string {
	switch c.Omitted {
	case useStored:
		return "true"
	case useConfigured:
		return "false"
	}
	return ""
}

// readConfig reads the configuration file: the given one, that of ACP_AGENT_CONFIG, or the default
// one if it exists.
func readConfig(path string) (config, error) {
	path = cmp.Or(path, os.Getenv("ACP_AGENT_CONFIG"))
	required := path != ""
	if !required {
		path = defaultConfig()
	}
	text, err := namedfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) && !required {
		return config{}, nil
	}
	if err != nil {
		return config{}, usagef("configuration: %v", namedfile.Explain(err))
	}
	return parseConfig(path, text)
}

func defaultConfig() string {
	if dir := os.Getenv("XDG_CONFIG_HOME"); runtime.GOOS != "windows" && filepath.IsAbs(dir) {
		return filepath.Join(dir, "acp-agent", "config.json")
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "acp-agent", "config.json")
}

// defaultConfigText describes the default without naming a user's home directory.
func defaultConfigText() string {
	switch runtime.GOOS {
	case "windows":
		return `%AppData%\acp-agent\config.json`
	case "darwin":
		return "$XDG_CONFIG_HOME/acp-agent/config.json or ~/Library/Application " +
			"Support/acp-agent/config.json"
	default:
		return "$XDG_CONFIG_HOME/acp-agent/config.json or ~/.config/acp-agent/config.json"
	}
}

// parseConfig decodes a configuration file, which may have comments and trailing commas. It rejects
// unknown keys, so that a typo is not silently ignored. It changes text.
func parseConfig(path string, text []byte) (config, error) {
	c := config{path: path}
	text = bytes.TrimPrefix(text, []byte("\uFEFF")) // some editors add a byte order mark
	// The library needs a kilobyte of stack for each level of nested brackets.
	const maxBrackets = 50_000
	if bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) > maxBrackets {
		return config{}, usagef("%s: has more than %d brackets", path, maxBrackets)
	}
	// Standardize replaces comments with spaces, so positions stay the same.
	text, err := hujson.Standardize(text)
	if err != nil {
		return config{}, usagef("%s", describeSyntaxError(path, err))
	}
	if err := json.Unmarshal(text, &c, configOptions()); err != nil {
		return config{}, usagef("%s", describeConfigError(path, text, err))
	}
	for _, p := range []*string{&c.StateDir, &c.LogFile, &c.Trace} {
		var err error
		if *p, err = resolvePath(path, *p); err != nil {
			return config{}, usagef("%s: %v", path, err)
		}
	}
	if c.Agent != "" && c.Model != "" {
		return config{}, usagef("%s: has both agent and model: give one of them", path)
	}
	for i := range c.Workspaces {
		if err := c.resolveWorkspace(i); err != nil {
			return config{}, usagef("%s: workspaces[%d]: %v", path, i, err)
		}
	}
	for name, a := range c.Agents {
		err := a.check(name)
		if err == nil && isPath(a.Command) {
			a.Command, err = resolvePath(path, a.Command)
			c.Agents[name] = a
		}
		if err := cmp.Or(err, a.resolvePaths(path)); err != nil {
			return config{}, usagef("%s: agents.%s: %v", path, name, err)
		}
	}
	for name, s := range c.MCPServers {
		if err := cmp.Or(s.check(name), s.resolvePaths(path)); err != nil {
			return config{}, usagef("%s: mcpServers.%s: %v", path, name, err)
		}
	}
	for id, m := range c.Models {
		err := m.check(id)
		_, known := c.Models[m.Fallback]
		if err == nil && m.Fallback != "" && (!known || m.Fallback == id) {
			err = fmt.Errorf("fallback: %q is not another model of this file", m.Fallback)
		}
		if err == nil && m.KeyCommand != nil && isPath(m.KeyCommand[0]) {
			m.KeyCommand[0], err = resolvePath(path, m.KeyCommand[0])
		}
		if err := cmp.Or(err, m.resolvePaths(path)); err != nil {
			return config{}, usagef("%s: models.%s: %v", path, id, err)
		}
	}
	return c, nil
}

// configOptions returns the options for decoding a configuration file.
func configOptions() json.Options {
	return json.JoinOptions(
		json.RejectUnknownMembers(true),
		json.WithUnmarshalers(json.JoinUnmarshalers(
			parsed(proxy.ParseRootsMode),
			parsed(proxy.ParseToolsMode),
			parsed(sandbox.ParseMode),
			parsed(choice(map[string]sandboxWarn{"fail": false, "warn": true})),
			parsed(choice(map[string]whenOmitted{
				"configured": useConfigured, "stored": useStored,
			})),
			parsed(choice(map[string]onOff{"off": false, "on": true})),
			parsed(choice(map[string]keepOnShrink{"restart": false, "notify": true})),
			parsed(choice(map[string]legacy{"auto": false, "legacy": true})),
			parsed(choice(map[string]model.API{
				"openai": model.OpenAI, "responses": model.Responses, "anthropic": model.Anthropic,
			})),
			parsed(choice(map[string]trusted{"ask": false, "allow": true})),
		)))
}

// parsed returns an unmarshaler for strings that parse accepts.
func parsed[T any](parse func(string) (T, error)) *json.Unmarshalers {
	return json.UnmarshalFunc(func(raw []byte, value *T) error {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return errors.New("must be a string")
		}
		var err error
		*value, err = parse(text)
		return err
	})
}

// choice returns a function that accepts one of a few words.
func choice[T any](choices map[string]T) func(string) (T, error) {
	return func(word string) (T, error) {
		value, known := choices[word]
		if !known {
			return value, fmt.Errorf("%q must be one of: %s", word,
				strings.Join(slices.Sorted(maps.Keys(choices)), ", "))
		}
		return value, nil
	}
}

// describeSyntaxError explains an error of the parser: the line, and what is wrong there.
func describeSyntaxError(path string, err error) string {
	var line, column int
	problem := strings.TrimPrefix(err.Error(), "hujson: ")
	if _, err := fmt.Sscanf(problem, "line %d, column %d: ", &line, &column); err == nil {
		_, problem, _ = strings.Cut(problem, ": ")
		path = fmt.Sprintf("%s:%d", path, line)
	}
	if strings.HasSuffix(problem, "EOF") {
		problem = "the file ends too early; a closing } or ] is missing"
	}
	return fmt.Sprintf("%s: not a JSON object: %s", path, problem)
}

// describeConfigError explains an error of the decoder: it names the file, the key or the line, and
// the allowed values.
func describeConfigError(path string, text []byte, err error) string {
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return fmt.Sprintf("%s: %s is given twice", path, key(syntax.JSONPointer))
		}
		line := 1 + bytes.Count(text[:min(int(syntax.ByteOffset), len(text))], []byte("\n"))
		return fmt.Sprintf("%s:%d: not a JSON object: %v", path, line, syntax.Err)
	}
	invalid, ok := errors.AsType[*json.SemanticError](err)
	switch {
	case !ok:
		return fmt.Sprintf("%s: %v", path, err)
	case errors.Is(err, json.ErrUnknownName):
		hint := ""
		if invalid.GoType == reflect.TypeFor[modelConfig]() &&
			secret.IsCredential(invalid.JSONPointer.LastToken()) {
			hint = " (the key itself does not belong in this file: set keyEnv to the name of an " +
				"environment variable, or keyCommand to a command that prints it)"
		}
		return fmt.Sprintf("%s: unknown key %s; known keys: %s%s", path, key(invalid.JSONPointer),
			strings.Join(keysOf(invalid.GoType), ", "), hint)
	case invalid.JSONPointer == "":
		return fmt.Sprintf("%s: the configuration must be a JSON object", path)
	case invalid.Err != nil && invalid.JSONKind != '0':
		return fmt.Sprintf("%s: %s: %v", path, key(invalid.JSONPointer), invalid.Err)
	default:
		return fmt.Sprintf("%s: %s: must be %s", path, key(invalid.JSONPointer),
			jsonType(invalid.GoType))
	}
}

// key returns the position of a value in the configuration: agents.gemini.command.
func key(p jsontext.Pointer) string {
	return strings.Join(slices.Collect(p.Tokens()), ".")
}

// keysOf returns the keys of a struct.
func keysOf(t reflect.Type) []string {
	var keys []string
	for _, field := range reflect.VisibleFields(t) {
		if tag := field.Tag.Get("json"); tag != "" {
			keys = append(keys, tag)
		}
	}
	return keys
}

// jsonType describes the JSON values that can be decoded into t.
func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return jsonType(t.Elem())
	case reflect.Uint16:
		return "a TCP port"
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		switch t.Elem().Kind() {
		case reflect.Struct:
			return "a list of objects"
		case reflect.Uint16:
			return "a list of TCP ports"
		}
		return "a list of strings"
	case reflect.Map, reflect.Struct:
		return "an object"
	default:
		return "a string"
	}
}

// check checks what decoding does not.
func (a agentConfig) check(name string) error {
	for _, name := range []string{name, cmp.Or(a.Identity, name)} {
		if name == "" || strings.ContainsAny(name, " \t\n/") || strings.HasPrefix(name, "-") {
			return fmt.Errorf("%q is not a valid name: use letters, digits and dashes", name)
		}
	}
	if _, known := proxy.FindProfile(proxy.KnownProfiles(), name); !known && a.Command == "" {
		return errors.New("needs a command, because it is not one of the known agents")
	}
	for variable := range a.Env {
		if variable == "" || strings.Contains(variable, "=") {
			return fmt.Errorf("env: %q is not a valid variable name", variable)
		}
	}
	_, err := a.grants()
	return err
}

// grants returns what the users of a server may use of the agent besides their own sessions.
func (a agentConfig) grants() (g acp.Grants, err error) {
	for _, name := range a.RemoteUsers {
		switch name {
		case "sessions":
			g.Sessions = true
		case "account":
			g.Account = true
		case "extensions":
			g.Extensions = true
		default:
			return acp.Grants{}, fmt.Errorf(
				`remoteUsers: unknown value %q; use "sessions", "account" or "extensions"`, name)
		}
	}
	return g, nil
}

// check checks what decoding does not. Its errors do not quote values, because a user may have put
// a secret key there by mistake.
func (m modelConfig) check(id string) error {
	hasKey := m.KeyEnv != "" || m.KeyCommand != nil
	switch {
	case id == "" || strings.ContainsFunc(id,
		func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) ||
		strings.HasPrefix(id, "-"):
		return fmt.Errorf(
			"%q is not a valid name for a model: it must not be empty, have spaces or begin with "+
				"a dash", id)
	case m.Name != nil && *m.Name == "":
		return fmt.Errorf(
			"name is empty: give the server's name for the model, or leave it out if that is %q",
			id)
	case bool(m.SandboxFallback):
		return errors.New("sandboxFallback is for agents and MCP servers: the commands of a model fail " +
			"where there is no sandbox")
	case m.KeyEnv != "" && m.KeyCommand != nil:
		return errors.New("has both keyEnv and keyCommand: give one of them")
	case m.KeyEnv != "" && !process.IsVariable(m.KeyEnv):
		return errors.New(
			"keyEnv must be the name of an environment variable that has the key, such as " +
				"OPENAI_API_KEY, not the key itself")
	case m.KeyCommand != nil && (len(m.KeyCommand) == 0 || m.KeyCommand[0] == ""):
		return errors.New(
			`keyCommand needs a program and its arguments, such as ["pass", "show", "openai"]`)
	case m.ContextTokens != nil && *m.ContextTokens < 1, m.MaxTokens != nil && *m.MaxTokens < 1:
		return errors.New("contextTokens and maxTokens must be at least 1")
	case m.ContextTokens != nil && m.MaxTokens != nil && *m.MaxTokens >= *m.ContextTokens:
		return errors.New(
			"maxTokens, the length of an answer, must be less than contextTokens, which it is " +
				"part of")
	}
	if err := cmp.Or(m.checkHeaders(), m.Prices.check()); err != nil {
		return err
	}
	switch {
	case m.BaseURL != "":
		return m.checkURL(hasKey || len(m.headerVariables()) > 0)
	case !hasKey:
		return errors.New("set baseURL (for example http://127.0.0.1:11434/v1 for Ollama), " +
			"or keyEnv or keyCommand to use the provider's own API")
	}
	return nil
}

// checkURL checks the address of a server. hasKey says whether it gets a key.
func (m modelConfig) checkURL(hasKey bool) error {
	u, err := url.Parse(m.BaseURL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return errors.New(
			"baseURL must be an address like http://127.0.0.1:11434/v1 or " +
				"https://api.example.com/v1")
	case u.User != nil:
		return errors.New(
			"baseURL must not have a user or password: name an environment variable with the key " +
				"as keyEnv")
	case u.Fragment != "":
		return errors.New("baseURL must end with a path or a query, without #")
	case slices.ContainsFunc(slices.Collect(maps.Keys(u.Query())), secret.IsCredential):
		return errors.New("baseURL must not have a key in its query: set keyEnv, or a header")
	case u.Scheme == "http" && hasKey && !secret.IsLoopback(u.Hostname()):
		return fmt.Errorf(
			"the key would be sent to %s unencrypted: use https, or reach the server through a "+
				"tunnel to 127.0.0.1", u.Host)
	case endpointPath().MatchString(u.Path):
		return fmt.Errorf("baseURL must not end with %s, which is added for each request",
			endpointPath().FindString(u.Path))
	case m.API == model.Anthropic && strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/v1"):
		return errors.New("baseURL must not end with /v1, which is added for the api anthropic")
	}
	return nil
}

// endpointPath matches the paths that a client adds to the address of a server.
var endpointPath = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`/(chat/completions|responses|messages)/?$`)
})

// resolveWorkspace makes the cwd of an entry absolute and checks it.
func (c config) resolveWorkspace(i int) error {
	w := &c.Workspaces[i]
	path, err := resolvePath(c.path, w.Cwd)
	if err != nil {
		return err
	}
	dir, err := workspace.ParseDir(path)
	if err != nil {
		return fmt.Errorf("cwd %q %s", w.Cwd, err.(workspace.RootErrors)[0].Problem())
	}
	for j, other := range c.Workspaces[:i] {
		if other.Cwd == dir.String() {
			return fmt.Errorf(
				"workspaces[%d] has the same cwd: put the directories of both into one", j)
		}
	}
	w.Cwd = dir.String()
	return nil
}

// isPath reports whether a program is named by its path. Otherwise it is looked up in PATH.
func isPath(program string) bool { return strings.Contains(filepath.ToSlash(program), "/") }

// resolvePath makes a path in the configuration file absolute: "~/" is the home directory, and
// other relative paths start in the file's directory, because editors start acp-agent in any
// directory, even an untrusted one.
func resolvePath(file, path string) (string, error) {
	if path == "" || filepath.IsAbs(path) {
		return path, nil
	}
	if rest, inHome := strings.CutPrefix(filepath.ToSlash(path)+"/", "~/"); inHome {
		home, err := os.UserHomeDir()
		return filepath.Join(home, rest), err
	}
	return filepath.Abs(filepath.Join(filepath.Dir(file), path))
}

// profiles returns the known agents as configured, sorted by name.
func (c config) profiles() []proxy.Profile {
	list := proxy.KnownProfiles()
	for name, a := range c.Agents {
		i := slices.IndexFunc(list, func(p proxy.Profile) bool { return p.Name == name })
		if i < 0 {
			list, i = append(list, proxy.Profile{Name: name, Title: name}), len(list)
		}
		a.apply(&list[i])
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list
}

// apply changes a profile as configured.
func (a agentConfig) apply(p *proxy.Profile) {
	p.Command = cmp.Or(a.Command, p.Command)
	override(&p.Args, a.Args)
	override(&p.Roots, a.Roots)
	override(&p.Tools, a.RootsTools)
	p.Login = cmp.Or(a.Login, p.Login)
	p.Identity = cmp.Or(a.Identity, p.Identity)
	if a.RootsFlag != nil {
		p.Flag, p.FlagSplits = *a.RootsFlag, ""
	}
	override(&p.Relay, (*bool)(a.RootsRelay))
	p.Sandbox = a.settings()
	p.Env = slices.Clone(p.Env)
	for _, name := range slices.Sorted(maps.Keys(a.Env)) {
		p.Env = append(p.Env, name+"="+a.Env[name])
	}
}

func override[T any](value, configured *T) {
	if configured != nil {
		*value = *configured
	}
}

// modelIDs returns the IDs of the configured models, sorted.
func (c config) modelIDs() []string { return slices.Sorted(maps.Keys(c.Models)) }

// keyVariables returns the names of the environment variables with the models' keys and the secrets
// of clients. No process
// that acp-agent starts gets them, except an agent, which may need the same variables.
func (c config) keyVariables() []string {
	var names []string
	for _, m := range c.Models {
		if m.KeyEnv != "" {
			names = append(names, m.KeyEnv)
		}
		names = append(names, m.headerVariables()...)
	}
	for _, s := range c.MCPServers {
		if s.ClientSecretEnv != "" {
			names = append(names, s.ClientSecretEnv)
		}
	}
	return names
}

// modelsFrom returns all configured models, beginning with the one with this ID.
func (c config) modelsFrom(id string) ([]model.Model, error) {
	if len(c.Models) == 0 {
		return nil, fmt.Errorf(
			"there is no model %q, because none is configured: acp-agent models explains how to "+
				"add one", id)
	}
	if _, known := c.Models[id]; !known {
		return nil, fmt.Errorf(
			"unknown model %q; configured models: %s (acp-agent models --help explains how to add "+
				"one)", id, strings.Join(c.modelIDs(), ", "))
	}
	ids := append([]string{id}, slices.DeleteFunc(c.modelIDs(),
		func(other string) bool { return other == id })...)
	models := make([]model.Model, len(ids))
	for i, id := range ids {
		models[i] = c.model(id)
	}
	return models, nil
}

// model returns the configured model with this ID.
func (c config) model(id string) model.Model {
	m := c.Models[id]
	configured := model.Model{ID: id, API: m.API, BaseURL: m.BaseURL,
		Name: id, Key: m.key(filepath.Dir(c.path), c.keyVariables()), TextOnly: m.TextOnly,
		PDF: m.PDF, Headers: m.headers(), Fallback: m.Fallback, Prices: m.Prices.prices()}
	override(&configured.Name, m.Name)
	override(&configured.ContextTokens, m.ContextTokens)
	override(&configured.MaxTokens, m.MaxTokens)
	return configured
}

// settings returns what is configured.
func (c sandboxConfig) settings() sandbox.Settings {
	s := sandbox.Settings{Write: c.SandboxWrite, Read: c.SandboxRead, Ports: c.SandboxPorts,
		Optional: bool(c.SandboxFallback)}
	override(&s.Mode, c.Sandbox)
	return s
}

// resolvePaths makes the paths absolute, except for those that begin with a variable of the started
// program.
func (c sandboxConfig) resolvePaths(file string) (err error) {
	for _, list := range [][]string{c.SandboxWrite, c.SandboxRead} {
		for i := range list {
			if err == nil && !strings.HasPrefix(list[i], "$") {
				list[i], err = resolvePath(file, list[i])
			}
		}
	}
	return err
}

// clientDocument is where the document about acp-agent is published, docs/mcp-client.json. Its
// address is acp-agent's id at authorization servers that register no clients.
const clientDocument = "https://acp-agent.github.io/acp-agent/mcp-client.json"

// check checks what decoding does not.
func (s serverConfig) check(name string) error {
	switch {
	case name == "*" && s.ClientID != "":
		return errors.New("clientId is for one server: give it under the server's name")
	case s.ClientSecretEnv != "" && s.ClientID == "":
		return errors.New("clientSecretEnv needs a clientId")
	case s.ClientSecretEnv != "" && !process.IsVariable(s.ClientSecretEnv):
		return errors.New("clientSecretEnv must be the name of an environment variable that has the " +
			"secret, not the secret itself")
	}
	return nil
}

// mcpPolicy returns the policy for the MCP server called name.
func (c config) mcpPolicy(name string) acp.MCPPolicy {
	s, configured := c.MCPServers[name]
	if !configured {
		s = c.MCPServers["*"]
	}
	return acp.MCPPolicy{
		Roots: (*bool)(s.Roots), KeepOnShrink: bool(s.OnShrink), Templates: bool(s.Templates),
		Trusted: bool(s.ReadOnlyTools), Legacy: bool(s.Era), Sandbox: s.settings(),
		ClientID: s.ClientID, ClientSecret: os.Getenv(s.ClientSecretEnv),
		ClientDocument: clientDocument,
	}
}
