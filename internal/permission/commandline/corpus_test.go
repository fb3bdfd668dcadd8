package commandline

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// attacks are lines that must not be understood. A line begins with ">" if it really reads or
// changes something outside with the programs of this machine: it is then run to prove that.
var attacks = map[string][]string{
	"second command": {
		">git status; cat {out}/secret.txt", ">git status && cat {out}/secret.txt", "git status || x",
		">git status | cat {out}/secret.txt", "git status |& x", ">git status & cat {out}/secret.txt",
		">git status\ncat {out}/secret.txt", "git status\rx", "git sta\\\ntus", "git status # x\nx",
		"cd sub && git status", "git status;", "(git status)", "{ git status; }", "! git status",
	},
	"substitution": {
		"git log --grep=`x`", "git log --grep=$(x)", `git log --grep="$(x)"`, "git log --grep=\"`x`\"",
		"$(x)", "`x`", "diff <(x) a.txt", "cat >(x)", "cat << x", ">git status $(sh run.sh)",
		`git log "--grep=$((1))"`, `git log '--grep=x'$(x)`,
	},
	"expansion": {
		"git status $IFS", "cat ${x@P}", "cat ${x:=y}", "cat $'x'", "cat {a,b}", "cat ~", "cat ~root",
		"cat a*", "cat a?", "cat [a]", "git diff HEAD^", "rg --glob=~/x foo", "rg foo a:~",
		`cat "$HOME"`, `cat \a`, `cat "\a"`, "cat a.txt !x", "cat 'a", `cat "a`, "cat é", "cat a\x00b",
		"cat '\x01'", "cat \u00a0a",
	},
	"redirection": {
		"cat a.txt > sub/x", ">cat a.txt > {out}/x", "cat a.txt >> sub/x", "cat a.txt >| sub/x",
		"cat a.txt &> sub/x", "cat a.txt 2> sub/x", ">cat < {out}/secret.txt", "cat <<< x",
	},
	"assignment": {
		">GIT_EXTERNAL_DIFF=./run.sh git show --ext-diff HEAD", "GIT_PAGER=x git log", "PATH=. go test",
		"LD_PRELOAD=./x ls", "GIT_DIR={other} git status", "export PATH=.", "A= git status",
	},
	"wrapper": {
		"env git status", "env -S git", "timeout 5 git status", "nice git status", "nohup ls", "time ls",
		"stdbuf -o0 ls", "xargs ls", "sudo ls", "busybox ls", "npx ls", "docker exec x ls", "bash -c ls",
		"sh -xc ls", "sh run.sh", "python -c x", "awk 1 a.txt", "perl -e x", "node x", "./run.sh",
		"command ls", "exec ls", "eval ls", "builtin ls", "nocorrect ls", "tar -tf x",
		"tar cf x --checkpoint-action=exec=sh a.txt", "npm exec x", "pnpm dlx x", "yarn dlx x",
		"npm install", "go run .", "go generate", "go install x", "go get x", "go tool x", "cargo run",
		"make", "git", "go", "npm run", "ls\t-l\x0b",
	},
	"option that runs or writes": {
		"git grep --open=cat 1234 a.txt", ">git grep -O./run.sh needle",
		">git grep --open=./run.sh needle", ">git grep --open-files-in-pager=./run.sh needle",
		">git -c core.fsmonitor=./run.sh status", "git --exec-path=. status", "git -p status",
		"git -C {other} status", "git --git-dir={other} status", "git --work-tree={other} status",
		">git diff --output={out}/x HEAD", "git diff --outpu={out}/x HEAD", "git diff --output x",
		"git log --ext-diff", "git log --textconv", "git diff --ext-diff", "git log --show-signature",
		"git log --format='%G?'", "git log --format='%-GS'", "git log --pretty='%(trailers)'",
		">find . -maxdepth 0 -exec ./run.sh '{}' +", "find . -execdir x", "find . -delete", "find . -ok x", "find . -okdir x",
		">find . -fprint {out}/x", "find . -fprintf x y", "find . -fls x", "find . -files0-from x",
		">rg --pre=./run.sh needle", ">rg --pre ./run.sh needle", "rg --hostname-bin=./run.sh needle",
		"rg -z needle", "rg --search-zip needle", "rg -f {out}/secret.txt",
		">sort -o {out}/x a.txt", ">sort --output={out}/x a.txt", ">sort --outp={out}/x a.txt",
		"sort --compress-program=./run.sh a.txt", "sort --compress-prog=./run.sh a.txt", "sort -T{out} a.txt",
		">sort -uo{out}/x a.txt", "sort --files0-from=x",
		">sed -n 'w {out}/x' a.txt", "sed -i 1d a.txt", ">sed -n '1e cat {out}/secret.txt' a.txt",
		"sed -n -e 1p a.txt", "sed -f x a.txt", "sed 1p -i a.txt", "sed -ni 1p a.txt", ">sed -n 'r{out}/secret.txt\n' a.txt",
		"go test -exec ./run.sh", "go test -exec=./run.sh", "go test -toolexec ./x", "go build -toolexec=./x",
		"go test -c -o ../x", "go build -o ../x", "go test -trace={out}/x", "go test -coverprofile=../x",
		"go test -ldflags=-extld=./x", "go test -C ..", "go vet -vettool=./x", "go test -overlay=x",
		"go test --exec=./x", "go test -modfile=../x", "go test -mod=mod", "go test -args -x",
		"go list -m example.com/x@latest", "go build example.com/x@v1.0.0", "go vet ./x@v1",
		"make -f ../x check", "make -C .. check", "make check SHELL=./run.sh", "make --eval=x check",
		"make check -I ..", "make check -f x", "make check --file=x", "make check --fil=x",
		"bazel test --run_under=./x //a", "bazel test @x//a", "bazel test //a/../b --x", "gradle test --init-script=/x",
		"gradle test -I/x", "gradle test -Dx=y", "mvn test -s/x", "mvn test exec:exec", "mvn exec:exec",
		"mvn test -Dx=y", "just test -d/x", "just --justfile=/x test", "task test -t/x", "yarn test --cwd=/x",
		"npm test --script-shell=./x", "npm test --prefix=/x", "npm test -- --x", "npm run test x",
		"mix test --require=/x", "cargo test --config=x", "cargo test --manifest-path=../x",
		"cargo test -Zx", "cargo fmt --all", "cargo test -- --logfile=/x", "cargo test --nocapture",
		"cargo test -- -q", "cargo test -- --skip=/x", "cargo clippy -- --emit=metadata", "cargo clippy -- -- -D x",
		"cargo build -- --nocapture", "ls -- -l", "cargo test --target-dir=/x",
		"dotnet test /p:X=y", "dotnet test @x.rsp", "pytest -p x", "pytest -c /x", "pytest --rootdir=/x",
		"pytest -o x=y", "pytest @x", "ruff check --config=/x", "ruff check --fix", "golangci-lint run -c /x",
		"diff -r a.txt a.txt", ">diff -r sub sub2", ">diff sub/1.txt a.txt",
		">diff sub sub2", "rake test[x]", "rake -f x test", "swift build --package-path ..",
		"ls -L", "tail -f a.txt", ">grep -R 1234 .", ">grep -f {out}/secret.txt -r . {out}",
		"grep --exclude-from={out}/secret.txt x a.txt", ">rg -L 1234", ">rg --follow 1234", ">find -L . -type f -fprint {out}/x",
		"git grep -f{out}/secret.txt", "git grep --no-index root {out}", "git grep --no-index 1234 -- ../out",
		">git diff --no-index {out}/secret.txt /dev/null", "git diff --no-ind {out}/secret.txt /dev/null",
		">git blame --contents={out}/secret.txt a.txt", ">git blame --cont={out}/secret.txt a.txt",
		">git blame --ignore-revs-file={out}/secret.txt a.txt", "git blame -S {out}/secret.txt a.txt",
		"git ls-files -o -X{out}/secret.txt", "git ls-files --exclude-from={out}/secret.txt",
		"git log --orderfile=x", "git diff -O{out}/secret.txt", "git log --all-match --patc",
	},
	"command that changes": {
		"git config core.pager x", "git commit -m x", "git push", "git fetch", "git pull", "git clone x",
		"git checkout x", "git clean -f", "git submodule foreach x", "git bisect run x", "git rebase -x x",
		"git difftool -x ./x", "git archive --output=x HEAD", "git apply x", "git branch x", "git tag x",
		"git branch -D x", "git remote add x y", "git stash", "git worktree add ../x", "git gc", "git add .",
	},
	"path outside": {
		">cat {out}/secret.txt", ">cat ../out/secret.txt", ">cat sub/../../out/secret.txt", ">cat link",
		">cat sub/1.txt", ">cat linkdir/secret.txt", ">cat ./link", ">cat {root}/link", ">cat //{out}/secret.txt",
		">cat {root}-evil/e.txt", ">cat '{out}/secret.txt'", ">cat \"{out}/secret.txt\"", "cat /proc/self/root/etc/passwd",
		">cat linkdir/../out/secret.txt", "cat /dev/fd/0", "cat -", "cat ''", "cat missing/../../out/secret.txt",
		">git diff {out}/secret.txt /dev/null", ">git diff /dev/null {out}/secret.txt", "git diff a.txt /dev/null",
		">rg 1234 {out}", ">rg 1234 -- {out}", ">grep 1234 link", ">grep -h 1234 a.txt ../out/secret.txt", ">rg 1234 link",
		">rg 1234 linkdir/", ">find .. -name secret.txt", "find ../out", ">sort link", ">head -n 1 link",
		">sed -n 1,2p link", "wc ../out/secret.txt", "ls ..", "ls linkdir/", "go test ../x", "go test {out}",
		"go list ../...", "ruff check /etc", "dotnet test /x.csproj", "pytest link::x", "pytest ../x::y",
		"git show HEAD:../x", "git log :/x", "git log ':(top)x'", "git ls-files ':!x'", "git log -- :^x",
		"git ls-files -- -x", ">diff a.txt link", ">diff ../out/secret.txt a.txt", "diff sub sub2", ">rg --files {out}",
		"find . -newer {out}/secret.txt", "cat a.txt,/etc/passwd", "cat x=/etc/passwd",
	},
}

// TestPolicyCorpus runs known ways around rules for commands against real programs.
//
// Clause R2.
func TestPolicyCorpus(t *testing.T) {
	for class, lines := range attacks {
		t.Run(class, func(t *testing.T) {
			common := newPlace(t)
			for _, line := range lines {
				line, works := strings.CutPrefix(line, ">")
				_, err := Understand(common.ws, common.root, common.line(line))
				require.Error(t, err, "%q", line)
				words := strings.Fields(line) // the first may set a variable
				if !works || !slices.ContainsFunc(words[:min(2, len(words))], has) {
					continue
				}
				p := newPlace(t)
				output, marked := p.run(p.root, p.line(line))
				assert.True(t, marked || strings.Contains(output, "1234") || strings.Contains(output, "secret.txt"),
					"%q does nothing outside here: %s", line, output)
			}
		})
	}
}

// harmless are lines that are understood, with the words of their rules.
var harmless = map[string]string{
	"git status": "git status", "git status -sb": "git status", "git  status --porcelain=v1 -- sub": "git status",
	"git log --oneline -5 sub": "git log", "git log -n 5 --grep='a b' main..HEAD": "git log",
	"git log --format='%h %s' -n5": "git log", "git log --format=%h\n": "git log", "pwd": "pwd",
	"git reflog -5": "git reflog", "git stash list": "git stash list", "tail -n +1 a.txt ": "tail",
	"rg --type go needle": "rg", "cargo clippy --all-targets -- -D warnings": "cargo clippy",
	"cargo test a -- --nocapture --test-threads=1": "cargo test", "cargo fmt -- --check": "cargo fmt",
	"go list -m example.com/x": "go list", "git show HEAD~0:sub/b.txt": "git show",
	"git diff HEAD -- a.txt": "git diff", "git diff --stat HEAD~1...HEAD": "git diff",
	"git blame -L 1,2 a.txt": "git blame", "git grep -n needle -- '*.txt'": "git grep",
	"git branch -vv": "git branch", "git remote -v": "git remote", "git ls-files -o sub": "git ls-files",
	"git rev-parse --abbrev-ref HEAD": "git rev-parse", "git tag -l": "git tag",
	"rg needle sub": "rg", "rg -in -g '*.txt' needle": "rg", "rg '^a (b|c)$' sub {other}": "rg", "rg /api": "rg",
	`rg "func .*\(" sub`: "rg", `grep "a\.b\|c" a.txt`: "grep", `rg "a\$b" sub`: "",
	`cat "..\/o.txt"`: "",
	"rg --files sub":  "rg --files", "find . -name '*.txt' -type f": "find", "find sub {other} -mtime -1": "find",
	"grep -rn needle .": "grep", "ls -la sub": "ls", "cat a.txt {other}/o.txt": "cat", "head -n 5 a.txt": "head",
	"tail -5 a.txt": "tail", "wc -l a.txt sub/b.txt": "wc", "sort -rn a.txt": "sort", "sed -n 1,20p a.txt": "sed",
	"diff -u a.txt sub/b.txt": "diff", "cat missing/also.txt": "cat", "cat {root}/sub/../a.txt": "cat",
	"make check": "make check", "make -s check": "", "make check -j 4 -s": "make check", "make check -j": "make check",
	"go vet ./...": "go vet", "go test ./...": "go test", "go test -count=1 -race -run 'TestA|TestB' ./x": "go test",
	"go test -run=TestA,B ./acp/x_test": "go test", "go test -timeout 30s": "go test",
	"npm test": "npm test", "npm run test:unit": "npm run test:unit", "cargo test --all-features a::b": "cargo test",
	"bazel test //a/...:all :x": "bazel test", "pytest -q sub/test_x.py::test_y -k 'a and b'": "pytest",
}

// Clause R2.
func TestHarmless(t *testing.T) {
	p := newPlace(t)
	for line, rule := range harmless {
		line = p.line(line)
		c, err := Understand(p.ws, p.root, line)
		if rule == "" {
			require.Error(t, err, line)
			continue
		}
		require.NoError(t, err, line)
		require.Equal(t, rule, strings.Join(c.Rule, " "))
		require.True(t, isRule(c.Rule))
		program := c.Words[0]
		if slices.Contains([]string{"go", "npm", "cargo", "bazel", "pytest"}, program) || !has(program) {
			continue // it takes long, or runs what the folder says
		}
		output, marked := p.run(p.root, line, c.Env...)
		require.False(t, marked, line)
		require.NotContains(t, output, "1234", line)
		for _, complaint := range []string{"nknown option", "nrecognized", "usage:", "not a git repository", "nvalid option"} {
			require.NotContains(t, output, complaint, line)
		}
	}
}
