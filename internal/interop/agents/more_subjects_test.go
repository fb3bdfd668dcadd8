package agents

// These are programs of their own. Each runs without an account on the model that its variables name.
var (
	cline = subject{
		name: "Cline", modules: morePackages, versioned: "@cline/cli-linux-x64",
		command: []string{"cline", "--acp"}, program: "@cline/cli-linux-x64/bin/cline",
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
		env: []string{"COPILOT_PROVIDER_BASE_URL=@MODEL@/v1", "COPILOT_MODEL=scripted", "COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false"},
	}
	goose = subject{
		name: "goose", modules: morePackages, versioned: "@aaif/goose-binary-linux-x64",
		command: []string{"goose", "acp"}, program: "@aaif/goose-binary-linux-x64/bin/goose",
		env: []string{"GOOSE_PROVIDER=openai", "GOOSE_MODEL=scripted", "OPENAI_HOST=@MODEL@", "OPENAI_API_KEY=none",
			"GOOSE_DISABLE_KEYRING=1", "GOOSE_TELEMETRY_OFF=1"},
	}
)
