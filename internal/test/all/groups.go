package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

const module = "github.com/acp-agent/acp-agent"

// covered says what is not tested without a program.
var covered = map[string]string{
	"npm": "editors, agents, MCP servers and clients of others, PostgreSQL, a browser, and the " +
		"packages of npm",
	"node":   "scripts of others: MCP servers and clients, agents, a browser",
	"gcc":    "data races: the race detector needs a C compiler",
	"grep":   "commands of acp-agent in shell scripts",
	"head":   "commands of acp-agent in shell scripts",
	"sed":    "commands of acp-agent in shell scripts",
	"sh":     "scripts: agents, MCP servers and commands in a shell",
	"setsid": "processes that leave the group of their parent",
	"script": "pseudo-terminals in the sandbox",
}

// describe says what is left out because a program is missing, on which some tests depend.
func describe(program string, tests int) string {
	what := covered[program]
	if what == "" {
		what = fmt.Sprintf("tests that use %s", program)
	}
	if program == "gcc" {
		return program + " is missing: " + what
	}
	return fmt.Sprintf("%s is missing, tests skipped: %d: %s", program, tests, what)
}

// longest are the packages whose tests take longest. They run first, so that a core is not left
// alone with one of them at the end.
var longest = []string{
	"internal/test/interop", "internal/test/interop/agents", "sessionstore/sqlite", "internal/release",
	"internal/inspect", "internal/mcp/client", "acp", "acp/model", "internal/remote",
	"acp/internal/servers", "internal/mcp/server", "cmd/acp-agent", "acp/proxy", "sessionstore/postgres",
}

// Packages in which goroutines meet are tested again with the race detector: small ones with all
// tests but those that are alone, and large ones, which would take minutes, with those whose names
// say that things happen at the same time.
var (
	smallRaced = []string{
		"./internal/websocket", "./internal/jsonrpc", "./internal/mcp/relay", "./discovery",
		"./sessionstore/postgres", "./internal/llm", "./internal/remote", "./internal/loglimit",
		"./sessionstore", "./sessionstore/internal/fair", "./acp/client", "./acp/internal/listing",
		"./acp/internal/tasks", "./acp/internal/turns", "./internal/agents", "./internal/budget",
		"./internal/hostproxy", "./internal/mcp/roots", "./internal/setup", "./internal/terminal",
	}
	largeRaced = []string{
		"./acp", "./acp/model", "./acp/proxy", "./workspace", "./sessionstore/sqlite",
		"./acp/internal/servers", "./internal/mcp/client", "./internal/mcp/server",
		"./internal/process", "./internal/sandbox", "./internal/worktree",
	}
)

// atOnce are parts of such names, and whole names of tests that do not say it.
var atOnce = []string{
	"AreLimited", "AtOnce", "Background", "Block", "Cancel", "Clos", "Concurrent", "Crash", "DoesNotRead",
	"During", "EndsWith", "Erasing", "Flood", "Gone", "Hang", "Hung", "Idle", "Join", "Late", "Lock",
	"Lost", "Many", "Order", "Parallel", "Pending", "Pipelined", "Principal", "Random", "Reconnect",
	"Same", "Shared", "ShareProcess", "Shutdown", "Slow", "Stop", "Takeover", "TakeTurns", "Together",
	"Unread", "Wait", "While", "Window",
	"TestChildConnectsOnlyToItsPorts$", "TestModel$", "TestOneWriteReplacesAVersion$",
	"TestReadersSeeWholeFiles$", "TestRunChild$", "TestServerTools$", "TestUndo$",
}

// alone are tests of packages in which goroutines meet that run without the race detector only: in
// one goroutine, or in the same ones as others on more data, or in processes of their own.
var alone = []string{
	// acp and acp/internal/servers
	"TestClosedQueuesHoldNoMemory", "TestJoinAfterEachUpdate", "TestJoinThatDoesNotRead",
	"TestManySmallBlocks", "TestSlowWindow", "TestStoppedClient",
	// acp/model
	"TestCallThatDoesNotArrive", "TestFilesThatRunByThemselvesAreAskedFor", "TestManySkills",
	"TestManySteps", "TestOrderOfMessages", "TestPlantedRepositoryIsAskedFor",
	// acp/proxy
	"TestListOfManySessions",
	// discovery
	"TestAdditionalRootsEqualCwd", "TestExpand", "TestNothingOutsideTheRoots",
	"TestOrderOfRootsDecides", "TestSources", "TestUnreadableFiles",
	"TestWorkspaceFileWithManyFolders", "TestYAMLBombs",
	// internal/jsonrpc
	"TestAnsweredRequestsAreNotKept", "TestLongLineIsNotBuffered",
	"TestRunningRequestsDoNotKeepTheirLines",
	// internal/llm, internal/loglimit and internal/remote
	"TestCutConnections", "TestCutStreams", "TestEncodedMessages", "TestEndlessAnswers", "TestErrors",
	"TestLargeRecords", "TestRefusalsOfStrangers", "TestBrowserConnects", "TestPageOnAPhone",
	// internal/mcp
	"TestHTTPSlowReader", "TestServerFilesystem",
	// sessionstore
	"TestContract", "TestFewRowsAreRead", "TestNothingIsLeftOfRandomSessions", "TestShared",
	"TestErasingLargeSessionLetsOthersWrite", "TestContractWithRollbackJournalAndStoppedClock",
	"TestStoppedReaderDoesNotGrowLog",
	// internal/websocket
	"TestRoomIsGivenBack", "TestUnfinishedMessages", "TestUnreadMessages",
	// internal/worktree and workspace
	"TestKilledWhileMaking", "TestKilledWhileRemoving", "TestKilledWhileWriting",
	"TestUnreadableRoots", "TestWalkReportsUnreadable", "TestWhatOtherProgramsWriteIsNotLost",
}

// A pkg is a package with tests.
type pkg struct {
	path     string
	needsNPM bool // its tests use packages of npm
}

type packages []pkg

// list returns all packages with tests, the longest first.
func list(ctx context.Context) (all packages, err error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-test", "-f",
		`{{.ImportPath}} {{join .Deps " "}}`, "./...")
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("%s: %w\n%s", cmd, err, exit.Stderr)
	} else if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if path, ok := strings.CutSuffix(fields[0], ".test"); ok {
			needsNPM := slices.Contains(fields, module+"/internal/test/npmtest")
			all = append(all, pkg{path, needsNPM})
		}
	}
	rank := func(p pkg) int {
		i := slices.Index(longest, strings.TrimPrefix(p.path, module+"/"))
		if i < 0 {
			return len(longest)
		}
		return i
	}
	slices.SortStableFunc(all, func(a, b pkg) int { return rank(a) - rank(b) })
	return all, nil
}

func (all packages) where(is func(pkg) bool) (some packages) {
	for _, p := range all {
		if is(p) {
			some = append(some, p)
		}
	}
	return some
}

func (all packages) paths() (paths []string) {
	for _, p := range all {
		paths = append(paths, p.path)
	}
	return paths
}
