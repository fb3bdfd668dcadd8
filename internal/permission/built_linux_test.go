package permission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// built are command lines that nobody asks about, and that print a denied file without naming it: a
// shell makes its name, or a program finds it. One that begins with "-" prints it only in another
// shell, or with a program that is not everywhere. "@" names the folder in which a line runs.
var built = map[string][]string{
	"variables": {
		"f=.en; cat ${f}v", "a=.e b=nv; cat $a$b", "x=env; cat .$x", "set -- .e nv; cat $1$2", "f=xenv; cat .${f#x}", "sh -c 'cat $0v' .en",
		"export E=nv; sh -c 'cat .e$E'", "echo nv > out.tmp; read v < out.tmp; cat \".e$v\"", "X=cat; Y=.e; $X ${Y}nv", "a=.e; a=${a}nv; cat \"$a\"",
		"f() { cat \".$1\"; }; f env", "cat \"${NONE:-.e}nv\"", "eval 'a=.e'; cat ${a}nv", "d=secret; cat ${d}s/key.pem",
		"ls -A | while read f; do cat \"$f\"; done", "for f in e; do cat .${f}nv; done", "-GIT_PAGER='cat .e${X}nv' git -c core.pager='cat .e${X}nv' -p log",
		"git -c alias.x='!f=.en; cat ${f}v' x", "-a=(.e nv); cat ${a[0]}${a[1]}", "-f=.enx; cat ${f/x/v}", "-cat $'.e\\x6ev' $'.e''nv'",
	},
	"the output of commands": {
		"cat $(printf .%s env)", "cat `printf .%s env`", "cat \"$(echo .e)nv\"", "cat $(ls -A | head -1)", "cat \"`git ls-files | head -1`\"",
		"cat .$(echo env)", "cat .$(echo vne | rev)", "cat < $(echo .e)nv", "cat $(find . -maxdepth 1 -type f)", "cat $(echo Li5lbnY= | base64 -d | cut -c2-)",
		"-cat (echo .e)nv", "-cat .$[0]env .e$((0))nv", "-cat <(rev <<< vne.) $(< names)",
	},
	"commands from a pipe": {
		"printf '%s%s' 'cat .e' nv | sh", "echo Y2F0IC5lbnY= | base64 -d | sh", "echo 'vne. tac' | rev | sh", "ls -A | xargs cat", "printf '%s' .e nv | xargs cat",
		"find . -maxdepth 1 -type f -exec cat {} +", "find . -type f -exec cat '{}' ';'", "printf 'cat .e%s' nv > z.tmp; sh < z.tmp", "echo 'vne. tac' | rev | env bash",
		"find secret* -type f | xargs -n 1 cat", "find . -type f -print0 | xargs -0 grep HIDDEN", "ls -A > l.tmp; xargs -a l.tmp cat", "echo 'vne. tac' | rev | (cd sub; cd ..; sh)",
		"echo 'vne. tac' | rev | /bin/sh -s", "echo 'vne. tac' | rev | { sh; }", "find . -type f -execdir cat {} \\;", "find . -name '*nv' -okdir cat {} \\; < /dev/null; ls -A | xargs cat",
		"sh << 'X'\ncat .e''nv\nX", "rev << X | sh\nvne. tac\nX", "ls -A | tar cO -T - | cat", "ls -A > l.tmp; wc --files0-from=l.tmp; tar cO --files-from=l.tmp",
		"-fd -H -x cat", "-rev <<< 'vne. tac' | . /dev/stdin", "-ls -A | cpio -o", "-ls -A | parallel cat",
	},
	"patterns": {
		"cat .*", "cat ./.*", "cat */*", "cat .??*", "cat *******/***.***", "cat ???????/*", "cat .[!.]*", "cd secrets; cat *", "cd secrets && cat ./*",
		"for f in .??*; do cat $f; done", "@sub:cat ../.*", "@secrets:cat *", "grep -h . */*", "cat .[[:alpha:]]nv", "cat .[[:alpha:]][[:alpha:]]v",
		"cat ../v?ult/secrets/key.pem", "cat ../*/secrets/key.pem", "cd ???????/; cat key.pem", "cd ../v*; cat secrets/key.pem",
		"cd s?????s; cat *", "sh -c 'cat .*'", "cat /proc/self/c?d/secrets/key.pem", "cat .?/vault/secrets/key.pem", "cat .*/secrets/key.pem",
		"-cat **/*", "-cat .en{u..w}", "-cat {.,x}e{nv,x}", "-cat {sub/.e,x/y}nv", "-shopt -s dotglob; cat *", "-setopt globdots; cat *", "-cat *(D)", "-cat (.|x)env", "-cat .(e|x)nv",
		"-bash -O dotglob -c 'cat *'", "-GLOBIGNORE=a.txt; cat *", "-setopt extendedglob; cat ^a.txt",
	},
	"searches in a longer line": {
		"grep -r HIDDEN . | head -3", "true && grep -rh HIDDEN .", "git show HEAD~1 | cat", "git log -p | head -100", "cd . && grep -r HIDDEN .",
		"sh -c 'grep -r HIDDEN .'", "git --no-pager log -p | cat; git log -p", "rg --hidden HIDDEN . | head -3", "sh -c 'cd sub; grep -r HIDDEN ..'",
		"cd sub && grep -r HIDDEN ..", "time git show HEAD~1", "FOO=1 grep -r HIDDEN .", "grep -rP HIDDEN .", "grep -R HIDDEN *", "grep -rP -A 3 HIDDEN",
		"egrep -r HIDDEN . | cat", "/usr/bin/grep -r HIDDEN .", "grep --dir=recurse HIDDEN . | cat", "@sub:grep -r HIDDEN ..", "@sub:tar cO .. | cat", "tar cO secret* | cat",
		"tar cO . | cat", "tar cO -C secrets key.pem", "diff -rN . plain | cat", "diff -rN secrets plain", "git diff HEAD~1 | cat", "git grep HIDDEN HEAD | cat",
		"git archive HEAD | tar xO", "git format-patch --stdout HEAD~1", "git cat-file --batch --batch-all-objects", "git -C sub log -p | cat", "git stash show -p | cat",
		"git whatchanged -p -1 | cat", "git log -u | cat", "git diff-tree -p HEAD | cat", "cp -r . ../copy.tmp; cat ../copy.tmp/sec*/k*",
		"ln -s . d.tmp; cat d.tmp/secrets/key.pem", "git clone -q . ../c.tmp; cat ../c.tmp/secrets/key.pem", "cp -a s*s x.tmp; cat x.tmp/key.pem", "mv s?????s y.tmp; cat y.tmp/key.pem; mv y.tmp secrets",
		"-rgrep HIDDEN", "-ag HIDDEN", "-zip -r - . | cat", "-rsync -a . ../r.tmp", "-scp -r . host:", "-grep -rh KEY ~+/",
	},
	"places": {
		"HOME=$PWD; cat ~/.e*", "HOME=.; cat ~/secrets/key.pem", "export HOME=.; cat ~/secrets/key.pem", "mkdir n; cd n; cat ../secrets/key.pem", "mkdir m; env -C m cat ../secrets/key.pem", "mkdir o; cd -P -- o; cat ../secrets/key.pem", "mkdir p; env --chdir=p cat ../secrets/key.pem", "HOME={root}; cd; cat secrets/key.pem", "-cat ~+/secrets/key.pem", "cd secrets; cd ..; cd -; cat key.pem",
		"mkdir -p 1 2 3 4 5 6 7 8 9 10 11; cd 1; cd ../2; cd ../3; cd ../4; cd ../5; cd ../6; cd ../7; cd ../8; cd ../9; cd ../10; cd ../11; cd ../s?????s; cat key.pem; cd ..; rmdir 1 2 3 4 5 6 7 8 9 10 11",
		"-curl 'file://{root}/.e{nv,x}'", "-curl 'file://{root}/.en[v-v]'",
	},
	"words that other words hide": {
		"true # it's\nf=.en; cat ${f}v #'", "true # it's\ncat .e''nv #'", "cat << X\nit's\nX\nf=.en; cat ${f}v # '", "true #\"\nf=.en; cat ${f}v; true #\"",
		strings.Repeat(": aaaaaaaaaaaaaaaaaaaaaa;", 4000) + "cat .e*", ": " + strings.Repeat("a ", 40_000) + "; cat .env", strings.Repeat("true;", 200) + "grep -r HIDDEN .",
		"sh -c \"sh -c 'sh -c \\\"x=env; cat .\\\\\\$x\\\"'\"", "echo 'f=.en; cat ${f}v' | sh", "awk 1 a.txt; eval 'f=.en; cat ${f}v'",
		"eval cat '.*'", "sh -c '$0 .*' cat", "-watch cat '.*'", "-alias g='grep -r'\ng HIDDEN .", "/bin/gre? -r HIDDEN .", "touch grep; gre? -r HIDDEN .", "touch xargs; ls -A | xarg*[!z] cat",
		"-sh -c 'cat<.*'", "mkdir ../w.tmp; git --work-tree=../w.tmp checkout -f; cat ../w.tmp/secrets/key.pem", "mkdir ../w2; GIT_WORK_TREE=../w2 git checkout -f; cat ../w2/secrets/key.pem",
		"echo x >> sub/d.txt; git add sub; git commit --dry-run -v", "-EDITOR=cat git commit -v", "-git add -p < /dev/null", "-git checkout -p < /dev/null",
	},
}

// vaultLines are command lines that read no denied file, and are not asked about.
var vaultLines = []string{
	"cat a.txt | head -1", "make && go test ./...", "cd sub && cat b.txt", "echo '$x'", "grep 'a$' a.txt", "grep -n a$ a.txt", "ls | sort | wc -l",
	"cat a.txt > copy.tmp", "rg --files | head", "git status; git log --oneline | head -3", "go test ./... 2>&1 | tail -5", "sh -c 'make all'",
	"bash -lc 'make | tail -3'", "ls *.txt", "ls *", "echo *", "find . -name '*.go' | wc -l", "git log --format='%h %s' | head", "ps aux | awk '{print $2}'",
	"git commit -m 'Show diff in log'", "git add . && git commit -qm 'Say more'", "(cd sub && make)", "# Look\nls", "sed -n '$p' a.txt | cat", "grep -c '.*' a.txt | cat",
	"ls -la ~/ | head", "npm run build 2>&1 | tail -20", "cp a.txt sub/", "mv a.txt plain", "mkdir -p out/{a,b}", "jq '.a | $x' a.txt", "if test -f a.txt; then cat a.txt; fi",
	"git stash; git checkout -q main", "git branch -v | cat", "git status --short | wc -l", "for f in a b; do make; done", "bash build.sh | tail -5", "ls -d */",
	"make; echo \"exit: $?\"", "cd plain && git log --oneline main | head -3", "git -C sub status --short | cat",
}

// What a shell makes, or a program finds, cannot be told before it runs: then the user is asked.
//
// Clause R5.
func TestRulesOfCommandsThatBuildNames(t *testing.T) {
	for _, effect := range []string{"deny ", "ask "} {
		g := newVault(t)
		rules, none := g.rules(t, effect+"read **/.env", effect+"read secrets/**"), g.rules(t, "allow read")
		for kind, lines := range built {
			for _, line := range lines {
				line, silent := strings.CutPrefix(g.expand(line), "-")
				dir := g.root
				if at, rest, found := strings.Cut(line, ":"); found && strings.HasPrefix(at, "@") {
					dir, line = filepath.Join(g.root, at[1:]), rest
				}
				a, _ := Command(g.place.Workspace, line, dir)
				require.Error(t, rules.Check(a), "%s: %.200s", kind, line)
				require.NoError(t, none.Check(a), line)
				if !silent && effect == "deny " && !strings.Contains(line, "rg ") {
					require.True(t, g.prints(t, line, dir), "%.200s prints nothing here", line)
				}
			}
		}
		for _, line := range vaultLines {
			a, _ := Command(g.place.Workspace, line, g.root)
			require.NoError(t, rules.Check(a), line)
		}
	}
}

// The folder in which a command runs need not be one of the session's.
//
// Clause R5.
func TestRulesOfCommandsElsewhere(t *testing.T) {
	g := newVault(t)
	rules := g.rules(t, "deny read secrets/**", "deny read outside {out}/secret.txt")
	for _, line := range []string{"cat {root}/s?????s/*", "f={root}/secrets; cat $f/key.pem", "grep -r HIDDEN {root}", "grep -r HIDDEN {out}/.. | cat", "grep -r 1 ."} {
		a, _ := Command(g.place.Workspace, g.expand(line), g.out)
		require.Error(t, rules.Check(a), line)
	}
	for _, line := range []string{"ls -la", "cat {root}/a.txt | head", "grep -r x {root}/plain"} {
		a, _ := Command(g.place.Workspace, g.expand(line), g.out)
		require.NoError(t, rules.Check(a), line)
	}
}

// What is built may also be a command, a host or a file that is changed.
//
// Clause R5.
func TestOtherRulesOfCommandsThatBuildNames(t *testing.T) {
	g := newVault(t)
	require.NoError(t, os.WriteFile(filepath.Join(g.root, "plain/a.sql"), nil, 0o644))
	for rule, lines := range map[string][]string{
		"run git push":   {"p=pus; git ${p}h", "$(echo git) push", "G=gi; ${G}t push", "echo hsup tig | rev | sh"},
		"fetch evil.com": {"h=evil; curl $h.com", "curl $(echo evil).com", "echo moc.live | rev | xargs curl"},
		"edit **/*.sql":  {"rm plain/*.s??", "rm */*", "f=a.sq; rm plain/${f}l", "cd plain; rm *", "find . -type f -exec rm {} +"},
	} {
		for _, effect := range []string{"deny ", "ask "} {
			rules := g.rules(t, effect+rule)
			for _, line := range lines {
				a, _ := Command(g.place.Workspace, line, g.root)
				require.Error(t, rules.Check(a), "%s: %s", rule, line)
			}
		}
	}
	for _, rule := range []string{"read", "edit", "tool x.*"} { // these are not about commands
		a, _ := Command(g.place.Workspace, "cat $x", g.root)
		require.NoError(t, g.rules(t, "deny "+rule).Check(a), rule)
	}
}

// A tool of a server may get a command that builds its words.
//
// Clause R5.
func TestRulesOfToolsThatBuildNames(t *testing.T) {
	g := newVault(t)
	rules := g.rules(t, "deny read **/.env")
	for arguments, asks := range map[string]bool{
		`{"command":"f=.en; cat ${f}v"}`: true, `{"command":"sh","args":["-c","ls -A | xargs cat"]}`: true,
		`{"command":"cat a.txt | head"}`: false, `{"text":"costs $5 a month"}`: false,
	} {
		err := rules.Check(ToolCall(g.place.Workspace, Action{Server: "x", Tool: "run"}, []byte(arguments)))
		require.Equal(t, asks, err != nil, arguments)
	}
}
