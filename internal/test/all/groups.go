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
	"internal/test/interop", "internal/test/interop/agents", "internal/release", "sessionstore/sqlite",
	"internal/inspect", "cmd/acp-agent", "acp", "acp/model", "internal/mcp/server",
	"sessionstore/postgres",
}

// racePackages are the packages in which goroutines meet. Their tests run again with the race
// detector.
var racePackages = []string{
	"./sessionstore/sqlite", "./acp/model", "./acp/...", "./workspace", "./internal/mcp/...",
	"./sessionstore/...", "./internal/llm", "./discovery", "./internal/budget", "./internal/consent",
	"./internal/hostproxy", "./internal/jsonrpc", "./internal/loglimit", "./internal/pause", "./internal/process",
	"./internal/remote", "./internal/sandbox", "./internal/setup",
	"./internal/terminal", "./internal/websocket", "./internal/worktree",
}

// alone returns tests of racePackages that run without the race detector only: in one goroutine, or
// in the same ones as others on more data, or in processes of their own.
func alone() []string {
	return slices.Concat(
		[]string{ // acp
			"TestAllowReads", "TestBackendReplay", "TestClosedQueuesHoldNoMemory",
			"TestContainmentCorpusThroughClient", "TestEffectiveFolders", "TestExpandVariables",
			"TestImportByCwd", "TestLongArrays", "TestServeFailsWithoutOptions",
			"TestTurnThatSaysTooMuch",
		}, []string{ // acp/internal/servers
			"TestElicitationIsDeclaredAsOffered", "TestElicitationOfServerEverything",
			"TestErrorLength", "TestManySmallBlocks", "TestResultLimits", "TestSigningIn",
			"TestSigningInAsAClient", "TestTypeScriptServers",
		}, []string{ // acp/model
			"TestAllowedCommandCoversItsFiles", "TestCallThatDoesNotArrive", "TestChildLeavesNothing",
			"TestChildOutput", "TestCommandPermission", "TestEditsInHiddenRootsAreAskedFor",
			"TestFailedRequests", "TestFallback", "TestFilesThatRunByThemselvesAreAskedFor",
			"TestHalfACallIsNotRun", "TestHiddenFilesAreAskedFor", "TestHostileCalls",
			"TestManySkills", "TestManySteps", "TestMedia", "TestPlantedRepositoryIsAskedFor",
			"TestPromptParts", "TestProviderRules", "TestProviderTools", "TestReading",
			"TestRejectedForTheConfiguration", "TestRejectedParts", "TestRestored",
			"TestResultsTooLargeForTheServer", "TestRulesOfGit", "TestRunCommand",
			"TestSmallContext", "TestTypeScriptServerSamples",
		}, []string{ // acp/proxy
			"TestCommandExpansion", "TestContextRemovedFromUpdates", "TestCopyWithoutRemovedRoots",
			"TestInitializeErrors", "TestListOfManySessions", "TestLongResponseFailsThePrompt",
			"TestLossyReplay",
		}, []string{ // discovery
			"TestAdditionalRootsEqualCwd", "TestExpand", "TestNothingOutsideTheRoots",
			"TestWorkspaceFileWithManyFolders", "TestYAMLBombs",
		}, []string{ // internal/llm
			"TestCutConnections", "TestCutStreams", "TestEncodedMessages", "TestEndlessAnswers",
			"TestErrors",
		}, []string{ // internal/loglimit
			"TestLargeRecords",
		}, []string{ // internal/remote
			"TestBrowserConnects", "TestPageOnAPhone",
		}, []string{ // internal/mcp
			"TestConformanceLegacy", "TestConformanceModern", "TestFirstCallOfServerFilesystem",
			"TestHTTPSlowReader", "TestHundredThousandRoots", "TestNpxAndShellWrappers",
			"TestPlaywright", "TestRootsOfServerFilesystem", "TestSIGKILL", "TestServerEverything",
			"TestTypeScriptModernServer",
		}, []string{ // internal/process and internal/sandbox
			"TestChildDoesNotReachItsParent", "TestDenied", "TestGroupIsKilledWithOurProcess",
			"TestPlantedLinks",
		}, []string{ // sessionstore; TestContractInMemory runs
			"TestContract", "TestContractWithRollbackJournalAndStoppedClock", "TestDeleteErases",
			"TestDeleteErasesIndex", "TestDeleteInSmallPieces", "TestDeleteWritesFewPages",
			"TestEightProcesses", "TestEraseAfterKill", "TestFewRowsAreRead",
			"TestFullDiskAtAnyWrite", "TestHistoryReadsOnePageAhead", "TestKill", "TestKilledRepair",
			"TestOverwriteStale", "TestPagesOfLargeStore", "TestPowerLoss",
			"TestPruneErasesMovedRows", "TestPruneInBatches", "TestReadOnlyDirectory", "TestRepair",
			"TestRepairAnyDamagedPage", "TestSearchLongHistory", "TestShared", "TestSmallDisk",
			"TestStoppedReaderDoesNotGrowLog", "TestUnusableFile",
		}, []string{ // workspace
			"FuzzPaths", "TestChangesMatchTheSystem", "TestContainmentCorpus",
			"TestKilledWhileWriting", "TestReadTextEnd", "TestResolutionMatchesOracle",
		})
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
