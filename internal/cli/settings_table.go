package cli

import (
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/acp-agent/acp-agent/workspace"
)

// setting is a flag of the program, and the other places where it can be set.
type setting struct {
	flag     string
	variable string               // the environment variable, or ""
	key      string               // the key in the configuration file, or ""
	value    string               // of the key, "" without one
	to       any                  // what it sets: see define
	complete cobra.CompletionFunc // what a shell offers as its value, nil for files
}

// table returns all settings. The flags and the completion are made from it, and so is a table in
// docs/reference.md.
func (set *settings) table() []setting { return append(set.combined(), set.loaded()...) }

// combined returns the settings that load does not set: they are only flags, or depend on more than
// one place (see [settings.choice] and [settings.folders]).
func (set *settings) combined() []setting {
	return []setting{
		{"agent", "", "agent", "", &set.agent, set.completeAgents},
		{"model", "", "model", "", &set.model, set.completeModels},
		{"sandbox", "", "", "", &set.sandbox, oneOf("off", "write", "strict")},
		{"dir", dirsVariable, "", "", &set.dirs, directories},
		{"read-dir", "", "", "", &set.readDirs, directories},
		{"allow", "", "", "", &set.allow, oneOf("read")},
		{"permissions", "", "", "", &set.rules, nil},
	}
}

// loaded returns the settings that [settings.load] sets.
func (set *settings) loaded() []setting {
	c := set.config
	return []setting{
		{"keep-dirs", "ACP_AGENT_KEEP_DIRS", "whenOmitted", string(c.Omitted), &set.keepDirs, nil},
		{"state-dir", "ACP_AGENT_STATE_DIR", "stateDir", c.StateDir, &set.stateDir, directories},
		{"store", storeVariable, "store", c.Store, &set.store, nil},
		{"log-level", "ACP_AGENT_LOG_LEVEL", "logLevel", c.LogLevel, &set.logLevel,
			oneOf("debug", "info", "warn", "error")},
		{"log-file", "ACP_AGENT_LOG_FILE", "logFile", c.LogFile, &set.logFile, nil},
		{"trace", "ACP_AGENT_TRACE", "trace", c.Trace, &set.trace, nil},
		{"max-line", "ACP_AGENT_MAX_LINE", "maxLine", written(c.MaxLine),
			intValue{&set.maxLine, 1}, cobra.NoFileCompletions},
		{"mounts", "ACP_AGENT_MOUNTS", "mounts", c.Mounts, &set.mounts,
			oneOf("none", "existing", "any")},
		{"replay-rate", "ACP_AGENT_REPLAY_RATE", "replayRate", written(c.ReplayRate),
			intValue{&set.replayRate, -1}, cobra.NoFileCompletions},
	}
}

// written returns a number as a flag takes it, "" for none.
func written(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

// newSettings returns the settings with their defaults, of a program with these streams.
func newSettings(s streams) *settings {
	set := &settings{
		streams:  s,
		logLevel: levelValue{level: slog.LevelWarn}, maxLine: 64 << 20,
		mounts: workspace.ExistingMounts, needs: map[*cobra.Command]need{},
		flags: pflag.NewFlagSet("settings", pflag.ContinueOnError), stalled: new(workspace.Stalled),
	}
	for _, s := range set.table() {
		define(set.flags, s.flag, s.to)
	}
	return set
}

// flags are the flags of a command by their names, behind which a letter may follow, with what they
// set (see define), nil for a setting of the table.
type flags map[string]any

// define adds a flag that sets what to points to, which has the default.
func define(f *pflag.FlagSet, name string, to any) {
	name, letter, _ := strings.Cut(name, ",")
	switch to := to.(type) {
	case *string:
		f.VarP((*pathValue)(to), name, letter, "")
	case *bool:
		f.BoolVarP(to, name, letter, *to, "")
	case *[]string:
		f.VarP((*listValue)(to), name, letter, "")
	case *workspace.Mounts:
		f.TextVarP(to, name, letter, *to, "")
	case func(string) error:
		f.FuncP(name, letter, "", to)
	default:
		f.VarP(to.(pflag.Value), name, letter, "")
	}
}

// verbatim sets to to the text of a flag in which "~" means nothing.
func verbatim(to *string) func(string) error {
	return func(text string) error {
		*to = text
		return nil
	}
}

// need says what a command needs before it runs.
type need int

const (
	needsConfig  need = iota // a valid configuration, as do those that need more
	needsNothing             // not even that: it works with an invalid one
	needsStore               // the session store: a database, or a state directory
	needsState               // a state directory
	needsAll                 // a state directory, and all settings
)

// settingsFor has the settings of what a command needs.
var settingsFor = map[need][]string{needsStore: {"state-dir", "store"}, needsState: {"state-dir"}}

// newCommand returns a command with its arguments, what it needs, its flags and what it does.
func (set *settings) newCommand(
	name string, args cobra.PositionalArgs, needs need, own flags,
	run func(cmd *cobra.Command, args []string) error,
) *cobra.Command {
	return set.accept(&cobra.Command{Use: name, Args: args, RunE: run}, needs, own)
}

// accept registers what cmd needs, adds its own flags and the settings of what it needs, and
// returns it.
func (set *settings) accept(cmd *cobra.Command, needs need, own flags) *cobra.Command {
	set.needs[cmd] = needs
	accepted := slices.Clip(settingsFor[needs])
	for name, to := range own {
		if to == nil {
			accepted = append(accepted, name)
			continue
		}
		define(cmd.Flags(), name, to)
	}
	if needs == needsAll {
		cmd.Flags().AddFlagSet(set.flags)
	}
	for _, name := range accepted {
		flag := *set.flags.Lookup(name) // which cmd may describe in another way
		cmd.Flags().AddFlag(&flag)
	}
	return cmd
}

// check returns why a command that needs this cannot run, or nil.
func (set *settings) check(needs need) error {
	switch {
	case needs == needsNothing:
		return nil
	case set.invalid != nil:
		return set.invalid
	case needs == needsConfig, needs == needsStore && set.store != "":
		return nil
	}
	_, err := set.stateDirectory()
	return err
}
