package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/acp-agent/acp-agent/internal/config"
	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/workspace"
)

// settings are the values of what [settings.table] lists, and what follows from them. A flag takes
// precedence over the environment, and the environment over the file. An empty variable counts as
// unset.
type settings struct {
	streams
	storeSettings

	logLevel   levelValue
	logFile    string
	trace      string
	maxLine    int
	mounts     workspace.Mounts
	replayRate int
	allow      []string // rules
	rules      string   // --permissions
	agent      string
	model      string
	sandbox    string
	dirs       []string
	readDirs   []string
	keepDirs   bool

	// flags has the flags of the table. Commands share those that they accept.
	flags       *pflag.FlagSet
	needs       map[*cobra.Command]need // which accept registers
	configPath  string                  // --config
	logJSON     bool                    // --log-json of serve
	json        bool                    // --json
	invalid     error                   // why the settings cannot be used, or nil
	stalled     *workspace.Stalled
	config      config.Config
	permissions *permission.Permissions // of --permissions and --allow, nil for none
}

// print prints v with --json, and calls people without.
func (set *settings) print(v any, people func() error) error {
	if set.json {
		return writeJSON(set.out, v)
	}
	return people()
}

// tolerate adds the flags of the other settings to cmd without showing them.
func tolerate(set *settings, cmd *cobra.Command) {
	set.flags.VisitAll(func(f *pflag.Flag) {
		if cmd.Flags().Lookup(f.Name) == nil {
			hidden := *f
			hidden.Hidden = true
			cmd.Flags().AddFlag(&hidden)
		}
	})
}

// mark marks the settings whose flags the command line of cmd has, of which some are copies.
func (set *settings) mark(cmd *cobra.Command) {
	cmd.Flags().Visit(func(given *pflag.Flag) {
		if f := set.flags.Lookup(given.Name); f != nil && f.Value == given.Value {
			f.Changed = true
		}
	})
}

// load reads the configuration file, and sets what was not given on the command line from the
// environment or the file.
func (set *settings) load() (err error) {
	set.config, err = config.Read(cmp.Or(set.configPath, os.Getenv("ACP_AGENT_CONFIG")))
	if err != nil {
		return usage.Errorf("%v", err)
	}
	for _, s := range set.loaded() {
		flag := set.flags.Lookup(s.flag)
		if flag.Changed {
			continue
		}
		if s.value != "" {
			if err := flag.Value.Set(s.value); err != nil {
				return usage.Errorf("%s: %s: %v", set.config.Path, s.key, err)
			}
		}
		if value := os.Getenv(s.variable); value != "" {
			err := flag.Value.Set(value)
			if flag.Value.Type() == "bool" && err != nil {
				err = errors.New("must be true or false")
			}
			if err != nil {
				return usage.Errorf("%s=%q: %v", s.variable, value, err)
			}
		}
	}
	if !set.isQuiet() {
		set.log = slog.New(slog.NewTextHandler(set.err, nil))
	}
	return cmp.Or(set.checkSandbox(), set.loadPermissions())
}

// checkSandbox returns an error for a wrong --sandbox.
func (set *settings) checkSandbox() error {
	if _, err := sandbox.ParseMode(cmp.Or(set.sandbox, sandbox.Off.String())); err != nil {
		return usage.Errorf("--sandbox: %v", err)
	}
	return nil
}

// loadPermissions reads the rules of --permissions and --allow.
func (set *settings) loadPermissions() error {
	given := permission.Permissions{Allow: set.allow}
	if _, err := given.Rules(); err != nil {
		return usage.Errorf("--allow: %v", err)
	}
	if set.rules != "" {
		only, err := config.ReadPermissions(set.rules)
		if err != nil {
			return usage.Errorf("--permissions: %v", err)
		}
		given, given.Only = given.With(only), true
	}
	if set.rules != "" || set.allow != nil {
		set.permissions = &given
	}
	return nil
}

// permissionsFor returns the user's rules for sessions with the working directory cwd, nil if there
// are none.
func (set *settings) permissionsFor(cwd workspace.Dir) *permission.Permissions {
	configured := set.config.PermissionsFor(cwd)
	switch {
	case set.permissions == nil:
		return configured
	case configured == nil || set.permissions.Only:
		return set.permissions
	}
	both := configured.With(*set.permissions)
	return &both
}

// given returns the flags of these settings that the command line has and that are wanted, with
// their values.
func (set *settings) given(wanted func(name string) bool) (flags []string) {
	set.flags.VisitAll(func(f *pflag.Flag) {
		if !f.Changed || !wanted(f.Name) {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(*listValue); ok {
			values = *list
		}
		for _, value := range values {
			flags = append(flags, "--"+f.Name+"="+value)
		}
	})
	return flags
}

// workspace returns the options for opening root folders. They deny access to acp-agent's own
// files, because whoever can write these decides which agent runs, and which MCP servers start
// without a question.
func (set *settings) workspace() (workspace.Options, error) {
	o := workspace.Options{Mounts: set.mounts, Stalled: set.stalled}
	for _, path := range set.ownPaths() {
		path, err := filepath.Abs(path)
		if err != nil {
			return o, err
		}
		dir, err := workspace.ParseDir(path)
		if err != nil {
			return o, usage.Errorf("%q: %v", path, err)
		}
		o.Policy.Deny = append(o.Policy.Deny, dir)
	}
	return o, nil
}

func (set *settings) open(
	ctx context.Context, roots workspace.Roots,
) (*workspace.Workspace, error) {
	options, err := set.workspace()
	if err != nil {
		return nil, err
	}
	return workspace.Open(ctx, roots, options)
}

// ownPaths returns the state directories and configuration files: those in use and the default
// ones.
func (set *settings) ownPaths() []string {
	paths := []string{set.stateDir, set.config.Path, config.DefaultPath()}
	if dir, err := defaultStateDir(); err == nil {
		paths = append(paths, dir)
	}
	slices.Sort(paths)
	return slices.DeleteFunc(slices.Compact(paths), func(path string) bool { return path == "" })
}

// openLog returns the logger, after warning about files that others can change, and a function that
// closes its file.
func (set *settings) openLog() (*slog.Logger, func(), error) {
	out, closeFile := set.err, func() {}
	if set.logFile != "" {
		file, err := openAppend("log-file", set.logFile, set.err)
		if err != nil {
			return nil, nil, err
		}
		out, closeFile = file, file.close
	}
	options := &slog.HandlerOptions{Level: set.logLevel.level}
	logger := slog.New(slog.NewTextHandler(out, options))
	switch {
	case set.logJSON:
		logger = slog.New(slog.NewJSONHandler(out, options))
	case set.isQuiet():
		logger = slog.New(slog.DiscardHandler)
	}
	set.warnAboutFiles(logger)
	return logger, closeFile, nil
}

// isQuiet reports whether nothing is logged: a person at a terminal did not ask for a log.
func (set *settings) isQuiet() bool {
	return set.logFile == "" && !set.logLevel.chosen && terminal.Is(set.err)
}

// intValue is a pflag.Value for an integer with a lower bound.
type intValue struct {
	value *int
	min   int
}

func (v intValue) String() string { return strconv.Itoa(*v.value) }

func (intValue) Type() string { return "int" }

func (v intValue) Set(text string) error {
	value, err := strconv.Atoi(text)
	if err != nil || value < v.min {
		return fmt.Errorf("must be a whole number of at least %d", v.min)
	}
	*v.value = value
	return nil
}

// levelValue is a pflag.Value for a log level.
type levelValue struct {
	level  slog.Level
	chosen bool // it was given
}

func (v *levelValue) String() string { return strings.ToLower(v.level.String()) }

func (*levelValue) Type() string { return "level" }

func (v *levelValue) Set(text string) error {
	for _, known := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn,
		slog.LevelError} {
		if strings.EqualFold(text, known.String()) {
			v.level, v.chosen = known, true
			return nil
		}
	}
	return errors.New("must be debug, info, warn or error")
}

// pathValue is a pflag.Value for a path or a word. In it, "~" is the user's home directory.
type pathValue string

func (v *pathValue) String() string { return string(*v) }

func (*pathValue) Type() string { return "string" }

func (v *pathValue) Set(text string) error {
	path, err := namedfile.ExpandHome(text)
	*v = pathValue(path)
	return err
}

// listValue is a pflag.Value for a flag that can be repeated. Unlike pflag's own, it does not
// allocate while it is being defined.
type listValue []string

func (v *listValue) String() string { return strings.Join(*v, " ") }

func (*listValue) Type() string { return "list" }

func (v *listValue) Set(text string) error {
	text, err := namedfile.ExpandHome(text)
	*v = append(*v, text)
	return err
}
