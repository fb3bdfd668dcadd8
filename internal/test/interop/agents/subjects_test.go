package agents

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/needs"
)

// packages are the directories in which npm installs the agents of the tests and those of the
// table.
const (
	packages     = "../../../../testdata/node-agents/node_modules"
	morePackages = "../../../../testdata/node-agents/more/node_modules"
)

// subject is an agent to put behind the program.
type subject struct {
	name string // what people call it
	// modules is the directory of its packages; versioned is the package that carries its version.
	modules, versioned string
	// command is what people type, program the file in modules that it runs.
	command []string
	program string
	// env are its environment variables, files the contents of its home by path. Both may use
	// @MODEL@ for the model's address, @HOME@ for the home, @TMP@ for the temporary directory and
	// @MODULES@ for modules.
	env   []string
	files map[string]string
	// elsewhere are the hosts it tries to reach in vain.
	elsewhere []string
	// own are methods of its own whose names do not begin with "_", as the protocol requires.
	own []string
	// other is what starts the same agent with other flags or by a launcher.
	other []string
	// method is the authentication method, "" for none.
	method string
	// borrows says that it runs its commands in the editor's terminals if there are any; by says by
	// which MCP server of its own, "" for none.
	borrows bool
	by      string
}

var opencode = subject{
	name: "opencode", modules: packages, versioned: "opencode-linux-x64",
	command: []string{"opencode", "acp"}, program: "opencode-linux-x64/bin/opencode",
	other:     []string{"env", "A=b", "opencode", "acp", "--print-logs"},
	elsewhere: []string{"CONNECT registry.npmjs.org:443"}, // the types of its plugins
	env: []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
		"OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
		"OPENCODE_MODELS_PATH=@HOME@/models.json"}, // it takes seconds to read the thousands that it knows
	files: map[string]string{"models.json": "{}", ".config/opencode/opencode.json": `{
		"autoupdate": false,
		"share": "disabled",
		"model": "scripted/scripted",
		"small_model": "scripted/scripted",
		"permission": {"edit": "ask"},
		"provider": {"scripted": {
			"npm": "@ai-sdk/openai-compatible",
			"options": {"baseURL": "@MODEL@/v1", "apiKey": "none"},
			"models": {"scripted": {"tool_call": true, "limit": {"context": 100000, "output": 8000}}}
		}}
	}`},
}

var claude = subject{
	name: "Claude Code", modules: packages, versioned: "@agentclientprotocol/claude-agent-acp",
	command: []string{"claude-agent-acp"}, program: "@agentclientprotocol/claude-agent-acp/dist/index.js",
	other: []string{"claude-agent-acp", "--verbose"},
	env: []string{"ANTHROPIC_BASE_URL=@MODEL@", "ANTHROPIC_API_KEY=none", "CLAUDE_CONFIG_DIR=@HOME@/.claude", "CLAUDE_CODE_TMPDIR=@TMP@",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1",
		"IS_SANDBOX=1",             // otherwise it refuses to run as root
		"ENABLE_TOOL_SEARCH=false", // otherwise its model has to search for the tools of MCP servers
		// Its processes are short: they take a third less time if they optimize less.
		"BUN_JSC_useDFGJIT=0", "BUN_JSC_useConcurrentGC=0", "BUN_JSC_numberOfGCMarkers=1",
	},
	// Otherwise another model answers its permission requests.
	files: map[string]string{".claude/settings.json": `{"permissions":{"defaultMode":"default"}}`},
}

// rarely skips a test that behaves the same with another agent, which all tests run with.
// Starting opencode takes seconds, and the agents of the table are not installed.
func rarely(t *testing.T, s subject) {
	t.Helper()
	if s.name != claude.name && !*survey {
		t.Skip("make interop-agents runs this")
	}
}

// These take too much time and space to run with every change.
var (
	codex = subject{
		name: "Codex", modules: morePackages, versioned: "@agentclientprotocol/codex-acp",
		command: []string{"codex-acp"}, program: "@agentclientprotocol/codex-acp/dist/index.js",
		other:     []string{"env", "A=b", "codex-acp"},
		elsewhere: []string{"CONNECT github.com:443", "CONNECT api.github.com:443", "CONNECT chatgpt.com:443"}, // its plugins
		env:       []string{"CODEX_HOME=@HOME@/.codex", "SCRIPTED_KEY=none"},
		files: map[string]string{".codex/config.toml": `
model = "scripted"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.scripted]
name = "Scripted"
base_url = "@MODEL@/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
`},
	}
	gemini = subject{
		name: "Gemini CLI", modules: morePackages, versioned: "@google/gemini-cli",
		command: []string{"gemini", "--acp"}, program: "@google/gemini-cli/bundle/gemini.js",
		other: []string{"gemini", "--debug", "--acp"},
		env: []string{"GOOGLE_GEMINI_BASE_URL=@MODEL@", "GEMINI_API_KEY=none", "GEMINI_MODEL=scripted",
			"GEMINI_CLI_TRUST_WORKSPACE=true"}, // otherwise it starts no MCP servers
		method: "gemini-api-key",
		files: map[string]string{".gemini/settings.json": `{
			"general": {"enableAutoUpdate": false},
			"privacy": {"usageStatisticsEnabled": false},
			"telemetry": {"enabled": false},
			"security": {"auth": {"selectedType": "gemini-api-key"}}
		}`},
	}
	oldClaude = subject{
		name: "Claude Code, older adapter", modules: morePackages,
		versioned: "@zed-industries/claude-code-acp", borrows: true, by: "acp",
		command:   []string{"claude-code-acp"},
		program:   "@zed-industries/claude-code-acp/dist/index.js",
		other:     []string{"claude-code-acp", "--verbose"},
		elsewhere: []string{"CONNECT api.anthropic.com:443"},
		env:       claude.env,
	}
	pi = subject{
		name: "pi", modules: morePackages, versioned: "pi-acp",
		command: []string{"pi-acp"}, program: "pi-acp/dist/index.js",
		other: []string{"env", "A=b", "pi-acp"},
		env:   []string{"PI_ACP_PI_COMMAND=@MODULES@/.bin/pi", "PI_OFFLINE=1"},
		files: map[string]string{
			".pi/agent/models.json": `{"providers": {"scripted": {
				"baseUrl": "@MODEL@/v1", "api": "openai-completions", "apiKey": "none",
				"models": [{"id": "scripted", "contextWindow": 100000, "maxTokens": 8000}]
			}}}`,
			".pi/agent/settings.json": `{"defaultProvider": "scripted", "defaultModel": "scripted"}`,
		},
	}
	qwen = subject{
		name: "Qwen Code", modules: morePackages, versioned: "@qwen-code/qwen-code",
		command: []string{"qwen", "--acp", "--auth-type", "openai"}, program: "@qwen-code/qwen-code/cli-entry.js",
		other: []string{"env", "A=b", "qwen", "--acp", "--auth-type=openai", "--debug"},
		env:   []string{"OPENAI_BASE_URL=@MODEL@/v1", "OPENAI_API_KEY=none", "OPENAI_MODEL=scripted"},
		own: []string{"craft/drainMidTurnQueue", "qwen/notify/session/prompt-suggestion",
			"qwen/notify/session/mode-update", "qwen/notify/session/model-update"},
		files: map[string]string{".qwen/settings.json": `{
			"general": {"enableAutoUpdate": false},
			"privacy": {"usageStatisticsEnabled": false},
			"telemetry": {"enabled": false},
			"tools": {"toolSearch": {"enabled": false}}
		}`},
	}
)

// install installs the subject's command in a directory of programs.
func (s subject) install(t *testing.T, bin string) {
	t.Helper()
	program, node := s.file(t, s.modules, s.program), s.file(t, packages, ".bin/node")
	require.NoError(t, os.MkdirAll(bin, 0o755))
	require.NoError(t, os.Symlink(program, filepath.Join(bin, s.command[0])))
	require.NoError(t, os.Symlink(node, filepath.Join(bin, "node")))
}

// file returns the path of an installed file. Without it the test is skipped, except in CI.
func (s subject) file(t *testing.T, modules, name string) string {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("testdata/node-agents only has programs for Linux on x86-64")
	}
	path, err := filepath.Abs(filepath.Join(modules, name))
	require.NoError(t, err)
	if _, err := os.Stat(path); err != nil {
		needs.Missing(t, "npm", fmt.Sprintf("%s is not installed: make npm or make "+
			"interop-agents does it", s.name))
	}
	return path
}

// version returns the installed version.
func (s subject) version(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(s.file(t, s.modules, s.versioned+"/package.json"))
	require.NoError(t, err)
	var described struct{ Version string }
	require.NoError(t, json.Unmarshal(text, &described))
	return described.Version
}

// settle prepares a home for the subject and returns its environment variables.
func (s subject) settle(t *testing.T, home, model string) []string {
	t.Helper()
	modules, err := filepath.Abs(s.modules)
	require.NoError(t, err)
	tmp := dirtest.Short(t) // what it leaves there, such as sockets, goes with the test
	fill := strings.NewReplacer("@MODEL@", model, "@HOME@", home, "@TMP@", tmp, "@MODULES@", modules).Replace
	for name, text := range s.files {
		path := filepath.Join(home, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(fill(text)), 0o644))
	}
	bin := filepath.Join(home, "bin")
	s.install(t, bin)
	env := []string{"HOME=" + home, "XDG_CONFIG_HOME=" + home + "/.config", "XDG_DATA_HOME=" + home + "/.local/share",
		"XDG_STATE_HOME=" + home + "/.local/state", "XDG_CACHE_HOME=" + home + "/.cache", "TMPDIR=" + tmp,
		"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"),
		// Nothing leaves the machine: the model server refuses and records the attempt.
		"HTTP_PROXY=" + model, "http_proxy=" + model, "HTTPS_PROXY=" + model, "https_proxy=" + model,
		"NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost"}
	for _, variable := range s.env {
		env = append(env, fill(variable))
	}
	return env
}

// These are native programs. Each runs without an account on the model named by its variables.
var (
	cline = subject{
		name: "Cline", modules: morePackages, versioned: "@cline/cli-linux-x64",
		command: []string{"cline", "--acp"}, program: "@cline/cli-linux-x64/bin/cline",
		other:     []string{"cline", "--acp", "--verbose"},
		elsewhere: []string{"CONNECT data.cline.bot:443"},
		env: []string{"CLINE_PROVIDER=openai-compatible", "CLINE_MODEL=scripted", "CLINE_API_KEY=none",
			"CLINE_SESSION_BACKEND_MODE=local"}, // otherwise it leaves a process behind that all its sessions share
		files: map[string]string{
			".cline/data/settings/global-settings.json": `{"telemetryOptOut": true, "autoUpdateEnabled": false}`,
			".cline/data/settings/providers.json": `{
				"version": 1,
				"lastUsedProvider": "openai-compatible",
				"modes": {},
				"providers": {"openai-compatible": {
					"settings": {"provider": "openai-compatible", "apiKey": "none", "model": "scripted", "baseUrl": "@MODEL@/v1"},
					"updatedAt": "2026-01-01T00:00:00.000Z",
					"tokenSource": "manual"
				}}
			}`,
		},
	}
	copilot = subject{
		name: "GitHub Copilot CLI", modules: morePackages, versioned: "@github/copilot-linux-x64",
		command: []string{"copilot", "--acp"}, program: "@github/copilot-linux-x64/copilot",
		other: []string{"copilot", "--acp", "--no-color"},
		env:   []string{"COPILOT_PROVIDER_BASE_URL=@MODEL@/v1", "COPILOT_MODEL=scripted", "COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false"},
	}
	kilo = subject{
		name: "Kilo", modules: morePackages, versioned: "@kilocode/cli-linux-x64",
		command: []string{"kilo", "acp"}, program: "@kilocode/cli-linux-x64/bin/kilo",
		other: []string{"env", "A=b", "kilo", "acp", "--print-logs"},
		elsewhere: []string{"CONNECT registry.npmjs.org:443", "CONNECT api.kilo.ai:443",
			"CONNECT us.i.posthog.com:443", "CONNECT models.dev:443"},
		env: []string{"KILO_DISABLE_AUTOUPDATE=1", "KILO_DISABLE_MODELS_FETCH=1",
			"KILO_DISABLE_LSP_DOWNLOAD=1", "KILO_DISABLE_DEFAULT_PLUGINS=1", "KILO_TELEMETRY_LEVEL=off"},
		files: map[string]string{".config/kilo/kilo.json": opencode.files[".config/opencode/opencode.json"]},
	}
	zedCodex = subject{
		name: "Codex, Zed's adapter", modules: morePackages, versioned: "@zed-industries/codex-acp-linux-x64",
		command: []string{"codex-acp"}, program: "@zed-industries/codex-acp-linux-x64/bin/codex-acp",
		other:     []string{"codex-acp", "-c", "hide_agent_reasoning=true"},
		elsewhere: codex.elsewhere, env: codex.env,
		// Without bubblewrap it runs no commands in its sandbox.
		files: map[string]string{".codex/config.toml": "sandbox_mode = \"danger-full-access\"\n" +
			"approval_policy = \"untrusted\"\n" + codex.files[".codex/config.toml"]},
	}
	goose = subject{
		name: "goose", modules: morePackages, versioned: "@aaif/goose-binary-linux-x64", borrows: true,
		command: []string{"goose", "acp"}, program: "@aaif/goose-binary-linux-x64/bin/goose",
		other: []string{"goose", "acp", "--with-builtin", "developer"},
		env: []string{"GOOSE_PROVIDER=openai", "GOOSE_MODEL=scripted", "OPENAI_HOST=@MODEL@", "OPENAI_API_KEY=none",
			"GOOSE_DISABLE_KEYRING=1", "GOOSE_TELEMETRY_OFF=1"},
	}
)
