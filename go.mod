module github.com/acp-agent/acp-agent

go 1.26.5
