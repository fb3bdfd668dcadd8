package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"

	"github.com/acp-agent/acp-agent/acp/model"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
)

// Read reads the configuration file at path. If path is "", it reads the default file, if there is
// one.
func Read(path string) (Config, error) {
	required := path != ""
	if !required {
		path = DefaultPath()
	}
	text, err := namedfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) && !required {
		return Config{}, nil
	}
	if err != nil {
		return Config{}, fmt.Errorf("configuration: %v", namedfile.Explain(err))
	}
	return Parse(path, text)
}

func DefaultPath() string {
	if dir := os.Getenv("XDG_CONFIG_HOME"); runtime.GOOS != "windows" && filepath.IsAbs(dir) {
		return filepath.Join(dir, "acp-agent", "config.json")
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "acp-agent", "config.json")
}

// Parse decodes a configuration file, which may have comments and trailing commas. It rejects
// unknown keys, so that a typo is not silently ignored. It changes content.
func Parse(path string, content []byte) (Config, error) {
	c := Config{Path: path}
	if text.IsUTF16(content) {
		return Config{}, fmt.Errorf("%s: the file is UTF-16 text: save it as UTF-8", path)
	}
	content = bytes.TrimPrefix(content, []byte(byteOrderMark)) // some editors add it
	// The library needs a kilobyte of stack for each level of nested brackets.
	const maxBrackets = 50_000
	if bytes.Count(content, []byte("["))+bytes.Count(content, []byte("{")) > maxBrackets {
		return Config{}, fmt.Errorf("%s: has more than %d brackets", path, maxBrackets)
	}
	if len(bytes.TrimSpace(content)) == 0 {
		return Config{}, fmt.Errorf("%s: it is empty: {} is a configuration without settings, and "+
			"acp-agent setup writes one", path)
	}
	// Standardize replaces comments with spaces, so positions stay the same.
	content, err := hujson.Standardize(content)
	if err != nil {
		return Config{}, errors.New(describeSyntaxError(path, err))
	}
	if err := json.Unmarshal(content, &c, configOptions()); err != nil {
		return Config{}, errors.New(describeConfigError(path, content, err))
	}
	if err := c.complete(); err != nil {
		return Config{}, fmt.Errorf("%s: %v", path, err)
	}
	return c, nil
}

// complete resolves the paths in the file, and checks what the library cannot check.
func (c *Config) complete() (err error) {
	for _, p := range []*string{&c.StateDir, &c.LogFile, &c.Trace} {
		if *p, err = ResolvePath(c.Path, *p); err != nil {
			return err
		}
	}
	if err := checkCommand("notify", c.Notify, `["./notify.sh"]`); err != nil {
		return err
	}
	if err := resolveCommand(c.Path, c.Notify); err != nil {
		return err
	}
	if c.Agent != "" && c.Model != "" {
		return errors.New("has both agent and model: give one of them")
	}
	if err := checkRules(c.Permissions); err != nil {
		return err
	}
	return c.checkSections()
}

// checkSections checks the entries of the sections, and resolves their paths.
func (c Config) checkSections() error {
	for i := range c.Workspaces {
		if err := c.resolveWorkspace(i); err != nil {
			return fmt.Errorf("workspaces[%d]: %v", i, err)
		}
	}
	for name, a := range c.Agents {
		err := a.check(name)
		if err == nil && IsPath(a.Command) {
			a.Command, err = ResolvePath(c.Path, a.Command)
			c.Agents[name] = a
		}
		if err := cmp.Or(err, a.resolvePaths(c.Path, a.State...)); err != nil {
			return fmt.Errorf("agents.%s: %v", name, err)
		}
	}
	for name, s := range c.MCPServers {
		if err := cmp.Or(s.check(name), s.resolvePaths(c.Path)); err != nil {
			return fmt.Errorf("mcpServers.%s: %v", name, err)
		}
	}
	for id, m := range c.Models {
		err := m.Check(id)
		_, known := c.Models[m.Fallback]
		if err == nil && m.Fallback != "" && (!known || m.Fallback == id) {
			err = fmt.Errorf("fallback: %q is not another model of this file", m.Fallback)
		}
		if err == nil {
			err = cmp.Or(resolveCommand(c.Path, m.KeyCommand), m.resolvePaths(c.Path))
		}
		if err != nil {
			return fmt.Errorf("models.%s: %v", id, err)
		}
	}
	return nil
}

// configOptions returns the options for decoding a configuration file.
func configOptions() json.Options {
	return json.JoinOptions(
		json.RejectUnknownMembers(true),
		json.WithUnmarshalers(json.JoinUnmarshalers(
			json.UnmarshalFromFunc(decodeDirectory),
			parsed(profiles.ParseRootsMode),
			parsed(profiles.ParseToolsMode),
			parsed(sandbox.ParseMode),
			parsed(hosts.ParseHost),
			parsed(parseCallTimeout),
			parsed(choice(map[string]sandboxWarn{"fail": false, "warn": true})),
			parsed(choice(map[string]whenOmitted{"configured": "false", "stored": "true"})),
			parsed(choice(map[string]onOff{"off": false, "on": true})),
			parsed(choice(map[string]keepOnShrink{"restart": false, "notify": true})),
			parsed(choice(map[string]model.API{
				"openai": model.OpenAI, "responses": model.Responses, "anthropic": model.Anthropic,
			})),
		)))
}

// decodeDirectory decodes a directory that is only its path. Others are decoded as objects.
func decodeDirectory(in *jsontext.Decoder, d *Directory) error {
	if in.PeekKind() != '"' {
		return errors.ErrUnsupported
	}
	return json.UnmarshalDecode(in, &d.Path)
}

// parsed returns an unmarshaler for strings that parse accepts.
func parsed[T any](parse func(string) (T, error)) *json.Unmarshalers {
	return json.UnmarshalFunc(func(raw []byte, value *T) error {
		var text string
		failed := json.Unmarshal(raw, &text)
		if failed != nil {
			text = string(raw) // for the error that says what is allowed
		}
		var err error
		*value, err = parse(text)
		if err == nil && failed != nil {
			err = errors.New("must be a string")
		}
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
	return fmt.Sprintf("%s: not a JSON object: %s (the configuration is JSON, which may have "+
		"comments; acp-agent setup writes one)", path, problem)
}

// describeConfigError explains an error of the decoder: it names the file, the key or the line, and
// the allowed values.
func describeConfigError(path string, content []byte, err error) string {
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return fmt.Sprintf("%s: %s is given twice", path, key(syntax.JSONPointer))
		}
		line := 1 + bytes.Count(content[:min(int(syntax.ByteOffset), len(content))], []byte("\n"))
		return fmt.Sprintf("%s:%d: not a JSON object: %v", path, line, syntax.Err)
	}
	invalid, ok := errors.AsType[*json.SemanticError](err)
	switch {
	case !ok:
		return fmt.Sprintf("%s: %v", path, err)
	case errors.Is(err, json.ErrUnknownName):
		word := invalid.JSONPointer.LastToken()
		if invalid.GoType == reflect.TypeFor[Model]() && secret.IsCredential(word) &&
			!strings.HasSuffix(strings.ToLower(word), "env") {
			return fmt.Sprintf("%s: unknown key %s: the key itself does not belong in this file: "+
				"set keyEnv to the name of an environment variable, or keyCommand to a command "+
				"that prints it", path, key(invalid.JSONPointer))
		}
		keys := KeysOf(invalid.GoType)
		names := text.Same(keys)
		if names["directories"] != "" {
			names["dirs"], names["folders"] = "directories", "directories"
		}
		return fmt.Sprintf("%s: unknown key %s%s", path, key(invalid.JSONPointer),
			cmp.Or(text.Meant(word, names), belongs(invalid.GoType, word),
				"; known keys: "+strings.Join(keys, ", ")))
	case invalid.JSONPointer == "":
		return fmt.Sprintf("%s: the configuration must be a JSON object", path)
	case invalid.Err != nil && invalid.JSONKind != '0':
		return fmt.Sprintf("%s: %s: %v", path, key(invalid.JSONPointer), invalid.Err)
	default:
		return fmt.Sprintf("%s: %s: must be %s", path, key(invalid.JSONPointer),
			jsonType(invalid.GoType))
	}
}

// belongs says where a key belongs that t does not have, or returns "".
func belongs(t reflect.Type, word string) string {
	var sections []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		section := field.Type.Kind() == reflect.Map || field.Tag.Get("json") == "workspaces"
		if section && t != field.Type.Elem() && slices.Contains(KeysOf(field.Type.Elem()), word) {
			sections = append(sections, field.Tag.Get("json"))
		}
	}
	switch {
	case t == reflect.TypeFor[Server]() && slices.Contains(sections, "agents"), word == "url":
		return "; this file says what a server may do: how it starts belongs in your editor, or " +
			"in .mcp.json of a folder"
	case sections == nil:
		return ""
	}
	return "; it belongs in an entry of " + strings.Join(sections, ", ")
}

// key returns the position of a value in the configuration: workspaces[0].cwd.
func key(p jsontext.Pointer) string {
	at := ""
	for token := range p.Tokens() {
		if _, err := strconv.Atoi(token); err == nil {
			at += "[" + token + "]"
		} else {
			at += "." + token
		}
	}
	return strings.TrimPrefix(at, ".")
}

// KeysOf returns the keys of a struct.
func KeysOf(t reflect.Type) []string {
	var keys []string
	for _, field := range reflect.VisibleFields(t) {
		if tag := field.Tag.Get("json"); tag != "" && tag != "-" {
			keys = append(keys, tag)
		}
	}
	return keys
}

// jsonTypes describe the JSON values that can be decoded into types.
var jsonTypes = map[reflect.Type]string{
	reflect.TypeFor[int]():          "a whole number",
	reflect.TypeFor[float64]():      "a number",
	reflect.TypeFor[bool]():         "true or false",
	reflect.TypeFor[uint16]():       "a TCP port",
	reflect.TypeFor[[]uint16]():     "a list of TCP ports",
	reflect.TypeFor[hosts.Host]():   "a string",
	reflect.TypeFor[[]hosts.Host](): "a list of hosts",
	reflect.TypeFor[[]Directory]():  `a list of folders, such as ["../shared"]`,
	reflect.TypeFor[[]Workspace]():  "a list of objects",
	reflect.TypeFor[[]string]():     `a list of strings, such as ["first", "second"]`,
}

// jsonType describes the JSON values that can be decoded into t.
func jsonType(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if described := jsonTypes[t]; described != "" {
		return described
	}
	if t.Kind() == reflect.Map || t.Kind() == reflect.Struct {
		return "an object"
	}
	return "a string"
}

// IsPath reports whether a program is named by its path. Otherwise it is looked up in PATH.
func IsPath(program string) bool { return strings.Contains(filepath.ToSlash(program), "/") }

// ResolvePath makes a path in the configuration file absolute: "~/" is the home directory, and
// other relative paths start in the file's directory, because editors start acp-agent in any
// directory, even an untrusted one.
func ResolvePath(file, path string) (string, error) {
	if path == "" || filepath.IsAbs(path) {
		return path, nil
	}
	expanded, err := namedfile.ExpandHome(path)
	if err != nil || expanded != path {
		return expanded, err
	}
	return filepath.Abs(filepath.Join(filepath.Dir(file), path))
}
