package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"

	"github.com/acp-agent/acp-agent/internal/test/needs"
	"github.com/acp-agent/acp-agent/internal/test/volume"
)

func hostTarget() target {
	return allTargets[slices.IndexFunc(allTargets, func(t target) bool {
		return t.os == runtime.GOOS && t.arch == runtime.GOARCH
	})]
}

// tagged is the version of the releases that tests build.
const tagged = "1.2.3"

// A release is built from a copy of the working tree with a tag, and everything is tested from its
// files.
func TestRelease(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("uses tar files")
	}
	checkout := commitTagged(t)
	first := buildFrom(t, checkout)
	unpacked := archive(t, first)
	t.Run("the same bytes in another checkout", func(t *testing.T) {
		testSameBytes(t, first, unpacked, shallowClone(t, checkout))
	})
	t.Run("publication", func(t *testing.T) { testPublication(t, first) })
	t.Run("archive", func(t *testing.T) { testArchive(t, first, unpacked) })
	t.Run("registry", func(t *testing.T) { testRegistry(t, first, unpacked) })
	t.Run("npm", func(t *testing.T) { testNPM(t, first) })
	if volume.Full() { // it compiles the whole program once more, under another path
		t.Run("upgrade", func(t *testing.T) { testUpgrade(t, checkout, unpacked) })
	}
}

// testSameBytes tests that another checkout makes the same program, and with full volume, that it
// makes the same release.
func testSameBytes(t *testing.T, dist, unpacked, checkout string) {
	if volume.Full() {
		require.Equal(t, checksums(t, dist), checksums(t, buildFrom(t, checkout)))
		return
	}
	r := &release{checkout: checkout}
	require.NoError(t, r.compile(t.Context(), t.TempDir(), []target{hostTarget()}))
	again, err := os.ReadFile(r.programs[0].path)
	require.NoError(t, err)
	first, err := os.ReadFile(filepath.Join(unpacked, "acp-agent"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(first, again))
}

// buildFrom builds a release for this platform from a checkout and returns its directory.
func buildFrom(t *testing.T, checkout string) (dist string) {
	t.Helper()
	dist = filepath.Join(t.TempDir(), "dist")
	r := &release{checkout: checkout, out: dist}
	require.NoError(t, r.build(t.Context(), []target{hostTarget()}))
	return dist
}

// commitTagged commits a copy of the working tree, tags it and returns the copy.
func commitTagged(t *testing.T) (checkout string) {
	t.Helper()
	work, err := filepath.Abs("../..")
	require.NoError(t, err)
	checkout = t.TempDir()
	commit := []string{"-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false",
		"commit", "-q", "--allow-empty", "-m"}
	for _, args := range [][]string{
		{"init", "-q", "--template="},
		append(commit, "Before"),
		{"--work-tree=" + work, "add", "-A"},
		append(commit, "A release"),
		{"-c", "tag.gpgsign=false", "tag", "v" + tagged},
		{"checkout", "-q", "--force", "HEAD", "--", "."},
	} {
		dir := "--git-dir=" + filepath.Join(checkout, ".git")
		git := exec.Command("git", append([]string{dir}, args...)...)
		git.Dir = checkout
		const date = "2026-01-02T03:04:05Z"
		git.Env = append(os.Environ(), "GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date)
		out, err := git.CombinedOutput()
		require.NoError(t, err, "%s: %s", git, out)
	}
	return checkout
}

// shallowClone returns a checkout of the tag without history, which jobs of GitHub have.
func shallowClone(t *testing.T, checkout string) (clone string) {
	t.Helper()
	clone = t.TempDir()
	git := exec.Command("git", "clone", "-q", "-c", "advice.detachedHead=false", "--depth=1",
		"--branch=v"+tagged, "file://"+checkout, clone)
	out, err := git.CombinedOutput()
	require.NoError(t, err, string(out))
	return clone
}

// testPublication tests that the workflow signs what it publishes, and that the checksums name it.
func testPublication(t *testing.T, dist string) {
	workflow, err := os.ReadFile("../../.github/workflows/release.yml")
	require.NoError(t, err)
	signed := regexp.MustCompile(`subject-path: (\S+)\n`).FindSubmatch(workflow)
	published := regexp.MustCompile(`gh release create .*\n.* (\S+)\n`).FindSubmatch(workflow)
	require.NotNil(t, signed)
	require.NotNil(t, published)
	require.Equal(t, string(published[1]), string(signed[1]))
	paths, err := filepath.Glob(filepath.Join(filepath.Dir(dist), string(signed[1])))
	require.NoError(t, err)
	var sums strings.Builder
	for _, path := range paths {
		if name := filepath.Base(path); name != "checksums.txt" {
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), name)
		}
	}
	require.Equal(t, checksums(t, dist), sums.String())
	for _, ending := range []string{".tar.gz", ".tgz", ".cdx.json"} {
		require.Contains(t, sums.String(), ending+"\n")
	}
}

// testUpgrade installs a release candidate of the same source with go install, and opens the
// session that it stored with the program of an archive.
func testUpgrade(t *testing.T, checkout, unpacked string) {
	const candidate = "v" + tagged + "-rc.1"
	older := goInstall(t, checkout, candidate)
	state, folder := t.TempDir(), t.TempDir()
	run := func(program string, args ...string) string {
		cmd := exec.Command(program, args...)
		cmd.Env = []string{"HOME=" + t.TempDir(), "XDG_STATE_HOME=" + state,
			"PATH=" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", cmd, out)
		return string(out)
	}
	require.Contains(t, run(older, "version"), "acp-agent "+candidate[1:]+" ")
	run(older, "run", "--cwd", folder, "--dir", t.TempDir(), "hello tangerine")
	newer := filepath.Join(unpacked, "acp-agent")
	require.Contains(t, run(newer, "version"), "acp-agent "+tagged+" ")
	require.Contains(t, run(newer, "sessions", "list"), "hello tangerine")
	run(newer, "run", "--continue", "--cwd", folder, "hello clementine")
	require.Contains(t, run(newer, "sessions", "show", "last"), "tangerine")
}

// goInstall installs a version of the source in checkout with go install, from a module proxy made
// of files, and returns the path of the program.
func goInstall(t *testing.T, checkout, number string) string {
	t.Helper()
	const path = "github.com/acp-agent/acp-agent"
	proxy, bin := t.TempDir(), t.TempDir()
	dir := filepath.Join(proxy, path, "@v")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	var archive bytes.Buffer
	require.NoError(t, modzip.CreateFromDir(&archive, module.Version{Path: path, Version: number},
		checkout))
	mod, err := os.ReadFile(filepath.Join(checkout, "go.mod"))
	require.NoError(t, err)
	for ending, content := range map[string][]byte{
		"zip": archive.Bytes(), "mod": mod,
		"info": []byte(`{"Version":"` + number + `","Time":"2026-01-02T03:04:05Z"}`),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, number+"."+ending), content, 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "list"), []byte(number+"\n"), 0o600))
	downloaded, err := exec.Command("go", "env", "GOMODCACHE").Output()
	require.NoError(t, err)
	cmd := exec.Command("go", "install", path+"/cmd/acp-agent@"+number)
	cmd.Dir = bin
	cmd.Env = append(os.Environ(), "GOBIN="+bin, "GOMODCACHE="+t.TempDir(), "GOSUMDB=off",
		"GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -modcacherw"), "CGO_ENABLED=0",
		"GOPROXY=file://"+proxy+",file://"+strings.TrimSpace(string(downloaded))+"/cache/download")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return filepath.Join(bin, hostTarget().executable())
}

// A tag of an action can be moved to other code, a commit cannot.
func TestActionsArePinned(t *testing.T) {
	workflows, err := filepath.Glob("../../.github/workflows/*.yml")
	require.NoError(t, err)
	require.NotEmpty(t, workflows)
	uses := regexp.MustCompile(`(?m)uses: *(.*)$`)
	for _, name := range workflows {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, m := range uses.FindAllStringSubmatch(string(text), -1) {
			require.Regexp(t, `^[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`, m[1], name)
		}
	}
}

func checksums(t *testing.T, dist string) string {
	t.Helper()
	sums, err := os.ReadFile(filepath.Join(dist, "checksums.txt"))
	require.NoError(t, err)
	return string(sums)
}

// unpackTar unpacks a compressed tar file and returns the directory.
func unpackTar(t *testing.T, path string) string {
	t.Helper()
	content, err := os.Open(path)
	require.NoError(t, err)
	defer content.Close()
	compressed, err := gzip.NewReader(content)
	require.NoError(t, err)
	dir := t.TempDir()
	archive := tar.NewReader(compressed)
	for {
		header, err := archive.Next()
		if err == io.EOF {
			return dir
		}
		require.NoError(t, err)
		require.True(t, filepath.IsLocal(header.Name))
		require.Equal(t, "2026-01-02", header.ModTime.UTC().Format("2006-01-02"))
		name := filepath.Join(dir, header.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		b, err := io.ReadAll(archive)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name, b, fs.FileMode(header.Mode)))
	}
}

// archive returns the unpacked archive for this platform.
func archive(t *testing.T, dist string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dist, "acp-agent_"+tagged+"_*.tar.gz"))
	require.NoError(t, err)
	require.Len(t, paths, 1)
	return unpackTar(t, paths[0])
}

func testArchive(t *testing.T, dist, dir string) {
	out, err := exec.Command(filepath.Join(dir, "acp-agent"), "version").Output()
	require.NoError(t, err)
	require.Regexp(t, `^acp-agent 1\.2\.3 \S+ go\S+ commit [0-9a-f]{40} of 2026-01-02\n$`,
		string(out))
	for name, content := range map[string]string{
		"LICENSE":                 "Apache License",
		"README.md":               "# acp-agent",
		"CHANGELOG.md":            "# Changelog",
		"LICENSES-OF-MODULES.txt": "=== modernc.org/sqlite@",
	} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Contains(t, string(b), content, name)
	}
	var bom struct {
		Components []struct{ Name, Version, PURL string }
	}
	readJSON(t, filepath.Join(dist, "acp-agent_"+tagged+".cdx.json"), &bom)
	require.Greater(t, len(bom.Components), 10)
	for _, c := range bom.Components {
		require.Equal(t, "pkg:golang/"+c.Name+"@"+c.Version, c.PURL)
	}
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, v))
}

// testRegistry repeats the checks of the ACP registry: the entry, the icon, and the first line that
// the program prints with a new home directory and almost no environment.
func testRegistry(t *testing.T, dist, unpacked string) {
	var entry struct {
		ID, Name, Version, Description string

		LicenseURL   string `json:"license_url"`
		Distribution struct {
			Binary map[string]struct{ Archive, SHA256, Cmd string }
		}
	}
	readJSON(t, filepath.Join(dist, "registry", "acp-agent", "agent.json"), &entry)
	require.Regexp(t, `^https://\S+/LICENSE$`, entry.LicenseURL)
	require.Regexp(t, regexp.MustCompile(`^[a-z][a-z0-9-]*$`), entry.ID)
	require.Regexp(t, regexp.MustCompile(`^\d+\.\d+\.\d+$`), entry.Version)
	require.NotEmpty(t, entry.Name)
	require.NotEmpty(t, entry.Description)
	require.Len(t, entry.Distribution.Binary, 1)
	for platform, binary := range entry.Distribution.Binary {
		require.Regexp(t, `^(darwin|linux|windows)-(aarch64|x86_64)$`, platform)
		require.Regexp(t, `\.(zip|tar\.gz)$`, binary.Archive)
		require.NotContains(t, binary.Archive, "latest")
		require.Contains(t, binary.Archive, entry.Version)
		require.FileExists(t, filepath.Join(unpacked, binary.Cmd))
		require.Contains(t, checksums(t, dist), binary.SHA256+"  "+filepath.Base(binary.Archive))
	}
	svg, err := os.ReadFile(filepath.Join(dist, "registry", "acp-agent", "icon.svg"))
	require.NoError(t, err)
	require.Contains(t, string(svg), `width="16" height="16"`)
	require.NotContains(t, string(svg), "<!--") // which breaks the registry's pages
	for _, paint := range regexp.MustCompile(`(?:fill|stroke)="([^"]*)"`).FindAllSubmatch(svg, -1) {
		require.Contains(t, []string{"currentColor", "none"}, string(paint[1]))
	}
	testInitialize(t, exec.Command(filepath.Join(unpacked, "acp-agent")))
}

// testInitialize starts an agent and requires a way to sign in.
func testInitialize(t *testing.T, agent *exec.Cmd) {
	t.Helper()
	agent.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "TERM=dumb"}
	agent.Dir = t.TempDir()
	in, err := agent.StdinPipe()
	require.NoError(t, err)
	out, err := agent.StdoutPipe()
	require.NoError(t, err)
	var stderr bytes.Buffer
	agent.Stderr = &stderr
	require.NoError(t, agent.Start())
	_, err = io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{`+
		`"protocolVersion":1,"clientInfo":{"name":"ACP Registry Validator","version":"1.0.0"},`+
		`"clientCapabilities":{"terminal":true,"fs":{"readTextFile":true,"writeTextFile":true},`+
		`"_meta":{"terminal_output":true,"terminal-auth":true}}}}`+"\n")
	require.NoError(t, err)
	line, err := bufio.NewReader(out).ReadBytes('\n')
	require.NoError(t, err)
	var answer struct {
		Result struct {
			AuthMethods []struct{ ID, Name, Type string }
			AgentInfo   struct{ Version string }
		}
	}
	require.NoError(t, json.Unmarshal(line, &answer), string(line))
	require.Equal(t, tagged, answer.Result.AgentInfo.Version)
	require.NotEmpty(t, answer.Result.AuthMethods)
	require.Contains(t, []string{"", "agent", "terminal"}, answer.Result.AuthMethods[0].Type)
	require.NoError(t, in.Close())
	require.NoError(t, agent.Wait(), stderr.String())
	require.Empty(t, stderr.String())
}

// testNPM installs the packages from their files and starts the program with npx.
func testNPM(t *testing.T, dist string) {
	npm := needs.Programs(t, "npm")[0]
	packages, err := filepath.Glob(filepath.Join(dist, "*.tgz"))
	require.NoError(t, err)
	require.Len(t, packages, 2)
	project := t.TempDir()
	manifest := filepath.Join(project, "package.json")
	require.NoError(t, os.WriteFile(manifest, []byte(`{"private":true}`), 0o600))
	args := []string{"install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts"}
	install := exec.Command(npm, append(args, packages...)...)
	install.Dir = project
	out, err := install.CombinedOutput()
	require.NoError(t, err, string(out))
	npx := exec.Command("npx", "--offline", "acp-agent", "version")
	npx.Dir = project
	out, err = npx.Output()
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(out), "acp-agent "+tagged+" "), string(out))
	testInitialize(t, exec.Command(filepath.Join(project, "node_modules", ".bin", "acp-agent")))
}
