package cli

import (
	"log/slog"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/acp-agent/acp-agent/workspace"
)

// setting is a flag of the program, and the other places where it can be set.
type setting struct {
	flag     string
	variable string // the environment variable, or ""
	key      string // the key in the configuration file, or ""
	to       any    // what it sets: see define
	help     string
	complete cobra.CompletionFunc // what a shell offers as its value, nil for files
}

// table returns all settings. The flags, [settings.load] and the completion are made from it, and
// so is a table in docs/reference.md.
func (set *settings) table() []setting {
	usual, _ := defaultStateDir() // none if it cannot be determined
	return []setting{
		{
			flag: "agent", key: "agent", to: &set.agent, complete: set.completeAgents,
			help: "run the known agent `NAME` behind acp-agent; see acp-agent agents",
		},
		{
			flag: "model", key: "model", to: &set.model, complete: set.completeModels,
			help: "answer with the configured model `NAME`; see acp-agent models",
		},
		{
			flag: "sandbox", to: &set.sandbox, complete: oneOf("off", "write", "strict"),
			help: "restrict which files the agent, and what it starts, can use: `MODE` is off, " +
				"write or strict; see acp-agent agents --help",
		},
		{
			flag: "dir", variable: dirsVariable, to: (*listValue)(&set.dirs), complete: directories,
			help: "add the folder `DIR` to sessions whose editor names none; relative to the " +
				"session's working directory; can be repeated",
		},
		{
			flag: "read-dir", to: (*listValue)(&set.readDirs), complete: directories,
			help: "add the folder `DIR` like --dir, but read-only, even if an editor names it",
		},
		{
			flag: "keep-dirs", variable: "ACP_AGENT_KEEP_DIRS", key: "whenOmitted", to: &set.keepDirs,
			help: "when an editor loads or copies a session without naming folders, keep those " +
				"that it had",
		},
		{
			flag: "state-dir", variable: "ACP_AGENT_STATE_DIR", key: "stateDir", to: &set.stateDir,
			complete: directories,
			help:     "keep sessions in `DIR` (default " + fromHome(usual) + ")",
		},
		{
			flag: "store", variable: storeVariable, key: "store", to: &set.store,
			help: "keep sessions in the PostgreSQL database at `URL`, such as " +
				"postgres://USER@HOST/DATABASE; set ACP_AGENT_STORE instead if it has a password " +
				"(default a file in the directory of --state-dir)",
		},
		{
			flag: "log-level", variable: "ACP_AGENT_LOG_LEVEL", key: "logLevel",
			to: levelValue{&set.logLevel}, complete: oneOf("debug", "info", "warn", "error"),
			help: "log messages of `LEVEL` and above: debug, info, warn or error",
		},
		{
			flag: "log-file", variable: "ACP_AGENT_LOG_FILE", key: "logFile", to: &set.logFile,
			help: "append the log to `FILE` instead of writing it to standard error",
		},
		{
			flag: "trace", variable: "ACP_AGENT_TRACE", key: "trace", to: &set.trace,
			help: "append every message to `FILE`, with its time and direction; env, headers and " +
				"secrets in URLs are masked",
		},
		{
			flag: "max-line", variable: "ACP_AGENT_MAX_LINE", key: "maxLine",
			to: intValue{&set.maxLine, 1}, complete: cobra.NoFileCompletions,
			help: "reject messages longer than `BYTES`",
		},
		{
			flag: "mounts", variable: "ACP_AGENT_MOUNTS", key: "mounts", to: &set.mounts,
			complete: oneOf("none", "existing", "any"),
			help: "`POLICY` says which file systems mounted below a folder belong to it: none, " +
				"existing (those mounted when the session opened) or any",
		},
		{
			flag: "replay-rate", variable: "ACP_AGENT_REPLAY_RATE", key: "replayRate",
			to: intValue{&set.replayRate, -1}, complete: cobra.NoFileCompletions,
			help: "replay at most `N` updates per second when a session is loaded (-1 for no " +
				"limit; default 6000, or no limit for editors that are known to keep up)",
		},
		{
			flag: "allow", to: (*listValue)(&set.allow), complete: oneOf("read"),
			help: "let the agent do what `RULE` says without asking you, such as read, \"edit " +
				"docs/**\" or \"run go test ...\"; can be repeated; see acp-agent permissions",
		},
		{
			flag: "permissions", to: &set.rules,
			help: "use only the rules about permissions in `FILE`",
		},
	}
}

// define adds the flag to f.
func (s setting) define(f *pflag.FlagSet) {
	switch to := s.to.(type) {
	case *string:
		f.StringVar(to, s.flag, *to, s.help)
	case *bool:
		f.BoolVar(to, s.flag, *to, s.help)
	case *workspace.Mounts:
		f.TextVar(to, s.flag, *to, s.help)
	case pflag.Value:
		f.Var(to, s.flag, s.help)
	}
}

// newSettings returns the settings with their defaults, of a program with these streams.
func newSettings(s streams) *settings {
	set := &settings{
		streams:  s,
		logLevel: slog.LevelWarn, maxLine: 64 << 20, mounts: workspace.ExistingMounts,
		flags: pflag.NewFlagSet("settings", pflag.ContinueOnError), stalled: new(workspace.Stalled),
	}
	for _, s := range set.table() {
		s.define(set.flags)
	}
	set.shared = pflag.NewFlagSet("shared", pflag.ContinueOnError)
	set.shared.BoolVar(&set.json, "json", false, "print JSON")
	set.shared.StringVar(&set.user, "user", "",
		"the sessions of `NAME`, a user of acp-agent serve, instead of your own")
	return set
}
