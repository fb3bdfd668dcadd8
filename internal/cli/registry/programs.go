package registry

import (
	"slices"
	"strings"
	"unicode"
)

// An entry of a registry can name any program in PATH. No list of the programs that run others is
// complete, so an entry can hardly say anything to its program: its arguments are switches and words,
// without a path, a script or an address, and its environment variables are switches of the agent.

// otherPrograms are programs of systems and languages that start other programs or change files,
// without the digits of their versions. None is an agent.
const otherPrograms = `
	acp-agent ash asdf awk aws-vault bash brew bun bunx busybox bwrap cargo caffeinate chroot
	cmd command csh cscript curl dash dd deno direnv docker doas doppler dotnet ed elvish emacs
	env ex exec expect fakeroot fd find firejail fish flatpak flatpak-spawn flock gawk gdb git
	go guile infisical ionice java jjs jshell julia just kill killall ksh kubectl ld ldd less
	lldb lua luajit make mawk mise more mshta mv nawk nc ncat newgrp nice nix nix-shell node
	nodejs nohup npm npx nsenter nu op osascript parallel perl php pip pipx pkexec pnpm pnpx
	podman poweroff powershell proxychains pwsh pypy python pythonw pypyw r rbash reboot rm
	rscript rsync ruby run-parts rundll runuser rzsh screen script sed setarch setpriv setsid
	sg sh shutdown snap socat ssh stdbuf strace su sudo systemctl systemd-run taskset tar tclsh
	tcsh time timeout tmux toolbox torsocks toybox ts-node tsx unbuffer unshare uv uvx valgrind
	vi view vim vimdiff watch wget winpty wscript wsl xargs xonsh xvfb-run yarn yash zsh
`

// isOther reports whether a program is one of the machine's that starts others, such as a shell, an
// interpreter, sudo or a dynamic linker.
func isOther(program string) bool {
	name, _, _ := strings.Cut(strings.ToLower(program), ".") // "vim.tiny", "python3.12"
	if strings.HasPrefix(name, "ld-") {
		return true
	}
	name = strings.TrimSuffix(strings.TrimRight(name, "0123456789-"), "-static")
	return slices.Contains(strings.Fields(otherPrograms), name)
}

// isOwn reports whether a variable begins with a word of names, those of an agent, as in
// AUGMENT_DISABLE_AUTO_UPDATE of a package in @augmentcode.
func isOwn(variable string, names ...string) bool {
	first, _, found := strings.Cut(strings.ToLower(variable), "_")
	if !found || len(first) < 3 {
		return false
	}
	for _, name := range names {
		words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r)
		})
		if slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, first) }) {
			return true
		}
	}
	return false
}
