package model

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/consent"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
)

func TestCommandPrefix(t *testing.T) {
	needShell(t)
	for line, want := range map[string]string{
		"go test": "go test", "go  test ./...": "go test", "make check": "make check",
		"go test -run=TestA,B ./acp/x_test": "go test", "git diff HEAD": "git diff",
		"npm test": "npm test", "go test -count=1 -cover -failfast -v ./...": "go test",
		"git log --oneline -n 5": "git log", "cargo test --all-features": "cargo test",
	} {
		require.Equal(t, want, strings.Join(commandPrefix(line), " "), line)
	}
	for _, line := range []string{
		"go", "", "GO=1 go test", "go test; rm -rf x", "go test $(x)", "go test `x`", "go test && x",
		"go test | x", "go test > x", "go test\nrm x", "go test 'x'", `go test \; x`, "go test *", "go test ~",
		"go test $HOME", "go test {a,b}", "go test #x", "go test &", "go\ttest", " go test", "./go test",
		"go ./test", "go -C x test", "go run ./x", "go test -exec ./x", "go test -toolexec=./x", "sh test",
		"git -c a=b diff", "git config a b", "npm exec x", "npm run build", "python test", "env go test",
		"git grep -O./x a", "git diff --output=/home/u/x", "git diff --output x", "go vet -vettool=./x",
		"git fetch --upload-pack=./x .", "git difftool -x ./x", "go test -C /else", "go test -C=/else",
		"go build -o ../x", "go test -cpuprofile x", "make check -f x", "git pull x",
		"go tést", "go test \u00a0x", "go test !x", "go test x%y%",
	} {
		require.Nil(t, commandPrefix(line), "%q", line)
	}
}

// A rule holds for a root, in all sessions, until it is revoked.
//
// Clause B2.
func TestCommandRules(t *testing.T) {
	needShell(t)
	root, other := dirtest.New(t, "Makefile", "check:\n\t@echo checked $(X)\n", "sub/Makefile", "check:\n"),
		dirtest.New(t, "Makefile", "check:\n")
	state := filepath.Join(t.TempDir(), "consents")
	e := open(t, setup{roots: []string{root, other}, options: Options{ConsentDir: state}})
	e.answer(allowAlways)
	asked := e.prompt("Run.", run("make check")).asked
	require.Len(t, asked, 1)
	require.Equal(t, "Always allow `make check …` in this folder", asked[0].Options[1].Name)
	require.Empty(t, e.prompt("Run.", run("make check X=1")).asked)
	require.Empty(t, e.prompt("Run.", run("make  check", "cwd", "sub")).asked)
	e.restart()
	require.Empty(t, e.prompt("Run.", run("make check")).asked)

	e.answer(rejectOnce)
	for _, line := range []string{"make check; echo x", "make check $(echo x)", "make", "make clean"} {
		require.Len(t, e.prompt("Run.", run(line)).asked, 1, line)
	}
	require.Len(t, e.prompt("Run.", run("make check", "cwd", other)).asked, 1)

	store := consent.NewStore(state)
	all, err := store.List()
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, []string{"make", "check"}, all[0].Prefix)
	require.NoError(t, store.Forget(all[0].ID))
	require.Len(t, e.prompt("Run.", run("make check")).asked, 1)
}
