# The whole of it: make test. What each target does is said above it.

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
SOURCES      = find . -name '*.go' -not -path '*/node_modules/*' -not -path '*/testdata/*'
PLATFORMS   := linux/amd64 linux/arm64 darwin/arm64 windows/amd64
FUZZTIME    ?= 30s
# What the tests run on: the official TypeScript client and acpx, real agents behind the program, MCP servers, MCP clients, and a model server.
NODE        := testdata/node testdata/node-acpx testdata/node-agents testdata/node-mcp testdata/node-mcp-clients testdata/node-models
PACKAGES    := $(NODE:%=%/node_modules/.installed)
# More agents, and llama.cpp, which are only tried when asked for.
MORE        := testdata/node-agents/more
LLAMA       := testdata/node-llama

# The race detector, but not in SQLite: that is C made into Go, and twenty times slower under it.
RACE        := -race -gcflags=modernc.org/...=-race=false

.PHONY: build test bench lint fmt vet staticcheck cross fuzz kills interop-agents smoke-model clean

# The program, into bin/. Nothing that it asks over HTTP needs HTTP/2: without it the program is 0.5 MiB smaller. It is another 0.4 MiB smaller
# without inlining in code of others that is not called often.
PROGRAM     ?= ./cmd/acp-agent
OUT         ?= bin/
SMALL       := crypto github.com/coder github.com/google github.com/modelcontextprotocol github.com/segmentio github.com/spf13 go.yaml.in
build:
	CGO_ENABLED=0 go build -trimpath -tags nethttpomithttp2 -ldflags "-s -w" $(SMALL:%=-gcflags=%/...=-l) -o $(OUT) $(PROGRAM)

# Every test, under the race detector, which need not wait a second for goroutines at the end of each package: they leave none. The tests build
# the program themselves, and make vet is not repeated.
test: $(PACKAGES)
	GORACE=atexit_sleep_ms=0 go test $(RACE) -vet=off -timeout 10m ./...

# Every benchmark, once each; the figures in README.md come from here.
bench: build
	go test -run '^$$' -bench . -benchmem -timeout 30m ./...

lint: fmt vet staticcheck

fmt:
	@unformatted=$$(gofmt -l $$($(SOURCES))); \
	if [ -n "$$unformatted" ]; then echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; fi

vet:
	go vet ./...

staticcheck:
	go run $(STATICCHECK) ./...

# Every package, on every platform that we build for; where tests differ, their types too.
cross:
	@set -e; for platform in $(PLATFORMS); do \
		echo "build $$platform"; \
		CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/} go build ./...; \
	done
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 go vet ./...
	CGO_ENABLED=0 GOOS=windows GOARCH=amd64 go vet ./...

# Every fuzz target, FUZZTIME each.
fuzz:
	@set -e; for file in $$(grep -l '^func Fuzz' $$($(SOURCES) -name '*_test.go')); do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' $$file); do \
			echo "fuzz $$file $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$(dirname $$file); \
		done; \
	done

# The store against 500 kills of the program, where a run of the tests makes 60.
kills: $(PACKAGES)
	ACP_AGENT_KILLS=500 go test $(RACE) -count=1 -timeout 10m -run TestKills ./internal/test/interop

# A session's whole life with every agent that runs without an account, the tables of docs/agents.md, and every tool of the MCP server.
interop-agents: $(PACKAGES) $(MORE)/node_modules/.installed
	go test -count=1 -timeout 40m -v -parallel 3 -run "Test(Agents|Servers|Kinds)Table|UseEveryTool|WithFolderArguments" ./internal/test/interop/agents -survey

# The program with a model that llama.cpp runs, of random weights, on Linux on x86-64.
smoke-model: $(LLAMA)/node_modules/.installed
	go test -count=1 -v -run TestRealEngine ./internal/test/interop

clean:
	rm -rf bin $(NODE:%=%/node_modules) $(MORE)/node_modules $(LLAMA)/node_modules

# Node itself is one of acpx's packages, so that npm's complaint about the one that runs it is not shown.
%/node_modules/.installed: %/package-lock.json %/package.json
	cd $* && npm ci --ignore-scripts --loglevel=error
	touch $@
