package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// settings are the flags that can also be given by the environment or the configuration file: the
// flag state-dir is the variable ACP_AGENT_STATE_DIR and the key stateDir. A flag
// counts before the environment, the environment before the file. A variable that is empty is not given.
var settings = [...]string{"state-dir", "log-level", "log-file", "trace", "max-line", "max-roots", "mounts", "replay-rate"}

// pathSettings are those that name a file or a directory.
var pathSettings = [...]string{"state-dir", "log-file", "trace"}

// variable is a setting's environment variable.
func variable(flag string) string {
	return "ACP_AGENT_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// key is a setting's name in the configuration file.
func key(flag string) string {
	words := strings.Split(flag, "-")
	for i, word := range words[1:] {
		words[i+1] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}

// applySettings gives the flags that were not given their values from elsewhere.
func applySettings(cmd *cobra.Command, path string) (settingsFile, error) {
	flags := cmd.Flags()
	file, err := readSettings(path)
	if err != nil {
		return file, err
	}
	for _, name := range settings {
		flag := flags.Lookup(name)
		if flag == nil || flag.Changed {
			continue
		}
		if err := file.apply(flag); err != nil {
			return file, err
		}
		if value := os.Getenv(variable(name)); value != "" {
			if err := flag.Value.Set(value); err != nil {
				return file, usagef("%s=%q: %v", variable(name), value, err)
			}
		}
	}
	return file, nil
}

// settingsFile is a configuration file that was read.
type settingsFile struct {
	path    string
	values  map[string]setting // by key
	agents  []agentSetting
	servers []serverSetting
}

// setting is a value in a configuration file.
type setting struct {
	text   string
	number bool // it was not quoted
	line   int
}

// apply sets a flag to the file's value, if it has one.
func (f settingsFile) apply(flag *pflag.Flag) error {
	value, given := f.values[key(flag.Name)]
	if !given {
		return nil
	}
	fail := func(problem any) error { return usagef("%s:%d: %s: %v", f.path, value.line, key(flag.Name), problem) }
	if value.number && flag.Value.Type() != "int" {
		return fail("give a string")
	}
	if slices.Contains(pathSettings[:], flag.Name) {
		path, err := place(f.path, value.text)
		if err != nil {
			return fail(err)
		}
		value.text = path
	}
	if err := flag.Value.Set(value.text); err != nil {
		return fail(err)
	}
	return nil
}

// place is a path that the configuration file says: "~/" is the home directory, and a relative one starts where the file is,
// since an editor starts us anywhere, also in folders that are not to be trusted.
func place(file, path string) (string, error) {
	if path == "" || filepath.IsAbs(path) {
		return path, nil
	}
	if rest, inHome := strings.CutPrefix(filepath.ToSlash(path)+"/", "~/"); inHome {
		home, err := os.UserHomeDir()
		return filepath.Join(home, rest), err
	}
	return filepath.Abs(filepath.Join(filepath.Dir(file), path))
}

// readSettings reads the configuration file: the given one, or the default one if it exists.
func readSettings(path string) (settingsFile, error) {
	named := path != ""
	if !named {
		path = os.Getenv("ACP_AGENT_CONFIG")
		named = path != ""
	}
	if !named {
		path = defaultConfig()
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return settingsFile{}, nil
	}
	if err != nil {
		return settingsFile{}, usagef("configuration: %v", err)
	}
	return parseSettings(path, text)
}

// defaultConfig is where the configuration file is looked for.
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

// defaultConfigText is the default as the help shows it, the same on every account.
func defaultConfigText() string {
	switch runtime.GOOS {
	case "windows":
		return `%AppData%\acp-agent\config.json`
	case "darwin":
		return "$XDG_CONFIG_HOME/acp-agent/config.json or ~/Library/Application Support/acp-agent/config.json"
	default:
		return "$XDG_CONFIG_HOME/acp-agent/config.json or ~/.config/acp-agent/config.json"
	}
}

// parseSettings reads one JSON object of known keys.
func parseSettings(path string, text []byte) (settingsFile, error) {
	f := settingsFile{path: path, values: make(map[string]setting)}
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	line := func() int { return 1 + bytes.Count(text[:decoder.InputOffset()], []byte("\n")) }
	fail := func(format string, args ...any) (settingsFile, error) {
		return settingsFile{}, usagef("%s:%d: %s", path, line(), fmt.Sprintf(format, args...))
	}
	switch token, err := decoder.Token(); {
	case err != nil:
		return fail("the configuration is one JSON object: %v", syntax(err))
	case token != json.Delim('{'):
		return fail("the configuration is one JSON object")
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return fail("%v", syntax(err))
		}
		at := line()
		word, _ := name.(string)
		if !isKey(word) {
			return fail("unknown key %q%s", word, meant(word, keys()))
		}
		if _, twice := f.values[word]; twice {
			return fail("%q is given twice", word)
		}
		if word == agentsKey || word == serversKey {
			f.values[word] = setting{line: at}
			var raw json.RawMessage
			if err := decoder.Decode(&raw); err != nil {
				return fail("%v", syntax(err))
			}
			before := line() - bytes.Count(raw, []byte("\n"))
			if word == agentsKey {
				f.agents, err = parseAgents(path, before, raw)
			} else {
				f.servers, err = parseServers(path, before, raw)
			}
			if err != nil {
				return settingsFile{}, err
			}
			continue
		}
		value, err := decoder.Token()
		if err != nil {
			return fail("%v", syntax(err))
		}
		switch value := value.(type) {
		case string:
			f.values[word] = setting{text: value, line: at}
		case json.Number:
			f.values[word] = setting{text: value.String(), number: true, line: at}
		default:
			return fail("%q needs a string or a number", word)
		}
	}
	if _, err := decoder.Token(); err != nil {
		return fail("%v", syntax(err))
	}
	if _, err := decoder.Token(); err != io.EOF {
		return fail("text after the configuration")
	}
	return f, nil
}

func isKey(word string) bool { return slices.Contains(keys(), word) }

// keys are the known keys.
func keys() []string {
	known := []string{agentsKey, serversKey}
	for _, name := range settings {
		known = append(known, key(name))
	}
	return known
}

// syntax is an error of the decoder in words for a person.
func syntax(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the text ends too early")
	}
	return err
}
