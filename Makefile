# Run everything with make test. The comment above each target says what it does.

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
SOURCES      = find . -name '*.go' -not -path '*/node_modules/*' -not -path '*/testdata/*'
PLATFORMS   := linux/arm64 darwin/arm64 windows/amd64
FUZZTIME    ?= 30s
SOAKTIME    ?= 10m
# More agents, and llama.cpp: tested only on request.
MORE        := testdata/node-agents/more
LLAMA       := testdata/node-llama

# The race detector, but not in SQLite: that is C translated to Go, and twenty times slower with it.
# The driver is not left out: it has instances of generic types of package sync, and the linker may
# use these for the whole program.
RACE        := -race -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc/...=-race=false

# As internal/test/all compiles what it tests, so that nothing is compiled twice.
PLAIN       := CGO_ENABLED=0 GOFLAGS="$$GOFLAGS -trimpath"

.PHONY: build release test npm bench soak growth interop-remote remote lint fmt vet staticcheck govulncheck platforms cross fuzz kills interop-agents smoke-model clean

# The program, into bin/.
PROGRAM     ?= ./cmd/acp-agent
OUT         ?= bin/
build:
	$(PLAIN) go build -ldflags "-s -w" -o $(OUT) $(PROGRAM)

# What is published for a version, into dist/: archives, npm packages, checksums and more.
# RELEASE=-packages adds .deb and .rpm, for which Go downloads nfpm.
release:
	$(PLAIN) go run ./internal/release -out dist $(RELEASE)

# Every test, as the README says. -complete fails if npm or a C compiler is missing.
test:
	go run ./internal/test/all

# The packages of npm that tests use.
npm:
	go run ./internal/test/all -install

# Every benchmark, once each. Those in docs/measurements.md come from here.
bench: build
	go test -run '^$$' -bench . -benchmem -timeout 30m ./...

# The tests of clients over serve and connect, with opencode behind too. Left out is what remote clients
# may not do (name MCP servers, run commands of a model, 200 turns at once), what they do not share
# (sessions without an owner, memory, lines beyond the limit), and the program's own end.
LOCAL       := MCP|Server|Found|Consent|Allow|Sampling|Hostile|Question|Secrets|SigningIn|Advertised|StdoutCarries|Model|Transfer|Stored|LongLoad|DamagedStore|PruneUnprompted|Memory|LineLimit|PromptsAfterCancels|OrderlyEnd|Kills|BeforeEOF|Terminal$$|CommandInError
REMOTE      := ACP_AGENT_REMOTE=$(CURDIR)/$(OUT)acp-agent ACP_AGENT_BINARY=$(CURDIR)/$(OUT)remote
interop-remote: remote npm
	$(REMOTE) go test -count 1 -vet=off ./internal/test/interop -skip '$(LOCAL)'
	$(REMOTE) go test -count 1 -vet=off ./internal/test/interop/agents \
		-run 'TestSessionsOfARealAgent/opencode' -survey

# The program, and one that puts serve and connect in front of it.
remote: build
	go build -o $(OUT) ./internal/test/interop/remote

# Random requests to the program for SOAKTIME: prints what it uses and how long it takes, which must
# not grow.
soak:
	go test -run '^$$' -bench Soak -benchtime 1x -timeout 0 ./internal/test/bench -soak $(SOAKTIME)

# Every operation on more and more sessions, folders, files and skills: records the measurements in
# docs/growth, and draws the plots of docs/measurements.md. GROWTH=-large adds a store of 1 GB.
growth:
	go test -run '^$$' -bench Growth -benchtime 1x -timeout 0 ./internal/test/bench -plots ../../../docs/growth $(GROWTH)

lint: fmt vet staticcheck

fmt:
	@unformatted=$$(gofmt -l $$($(SOURCES))); \
	if [ -n "$$unformatted" ]; then echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; fi

vet:
	$(PLAIN) go vet ./...

staticcheck:
	$(PLAIN) go run $(STATICCHECK) ./...

# Known vulnerabilities in what the program calls. It asks vuln.go.dev, so .ci/run leaves it out.
govulncheck:
	$(PLAIN) go run $(GOVULNCHECK) ./...

# For the platforms that CI does not run on (linux/amd64 is), the types of every package and its tests
# are checked, which finds what does not compile.
platforms:
	$(PLAIN) go run ./internal/test/platforms $(PLATFORMS)

# The program, compiled for these platforms. Each time SQLite is compiled too, which takes a minute.
cross:
	@set -e; for platform in $(PLATFORMS); do \
		echo "build $$platform"; \
		GOOS=$${platform%/*} GOARCH=$${platform#*/} $(PLAIN) go build -o /dev/null $(PROGRAM); \
	done

# Every fuzz target, FUZZTIME each.
fuzz:
	@set -e; for file in $$(grep -l '^func Fuzz' $$($(SOURCES) -name '*_test.go')); do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' $$file); do \
			echo "fuzz $$file $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$(dirname $$file); \
		done; \
	done

# The tests with the volume of a night: 500 kills of the program and failures of the power, sessions
# against a model in 500 random runs, the store in 100, and files against a million operations while
# names are swapped; with the race detector also those tests of large packages that make test runs
# without it. Then the scripts with a program that has the race detector.
KILLS       := ACP_AGENT_VOLUME=full go test -count=1 -timeout 60m
kills: remote npm
	$(KILLS) $(RACE) ./acp/... ./internal/llm ./internal/mcp/... ./internal/process ./internal/sandbox \
		./internal/worktree ./sessionstore/... ./workspace
	$(KILLS) $(RACE) -run 'TestKills' ./internal/test/interop
	$(REMOTE) $(KILLS) -run 'TestKills(OnOneDatabase)?$$' ./internal/test/interop
	go build $(RACE) -o bin/race/ ./cmd/acp-agent
	ACP_AGENT_BINARY=$(CURDIR)/bin/race/acp-agent go test -count=1 -run TestScripts ./cmd/acp-agent

# Every test with real agents, of which make test leaves some out: a whole session with every agent
# that runs without an account, the tables of docs/agents.md, and what opencode does as others do.
interop-agents: npm
	go run ./internal/test/all -install $(MORE)
	go test -count=1 -timeout 120m -v -parallel 3 ./internal/test/interop/agents -survey

# The program with a model of random weights that llama.cpp runs, on Linux on x86-64.
smoke-model:
	go run ./internal/test/all -install $(LLAMA)
	go test -count=1 -v -run TestRealEngine ./internal/test/interop

clean:
	rm -rf bin testdata/node*/node_modules $(MORE)/node_modules
