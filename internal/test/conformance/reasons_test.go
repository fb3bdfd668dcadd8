package conformance

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// reasons match the reasons in errors' data, which programs of others read.
var reasons = []*regexp.Regexp{
	regexp.MustCompile(`reasonData\{Reason: "(\w+)"`),
	regexp.MustCompile(`"reason": ?"(\w+)"`),
	regexp.MustCompile(`storeUnavailable = "(\w+)"`),
	regexp.MustCompile(`Slot: \{"[^"]*", "(\w+)"`),
	regexp.MustCompile(`\bReason = "(\w+)"`),
}

func TestReasonsOfErrorsAreDocumented(t *testing.T) {
	document, err := os.ReadFile(filepath.Join(repository, "docs", "protocol.md"))
	require.NoError(t, err)
	found := map[string]bool{}
	for _, s := range sources(t) {
		dir := s.dir()
		if s.test || !strings.HasPrefix(dir+"/", "acp/") && dir != "internal/serve" &&
			dir != "internal/wire/strictjson" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(repository, s.path))
		require.NoError(t, err)
		for _, pattern := range reasons {
			for _, match := range pattern.FindAllSubmatch(text, -1) {
				found[string(match[1])] = true
				require.Contains(t, string(document), "`"+string(match[1])+"`", s.path)
			}
		}
	}
	for _, one := range []string{"fenced", "store_unavailable", "too_many_turns", "too_many_processes", "nul"} {
		require.True(t, found[one], "%s: the patterns find too little", one)
	}
}
