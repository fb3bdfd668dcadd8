package confine

import (
	"fmt"
	"net"
	"path/filepath"

	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
	"github.com/acp-agent/acp-agent/internal/text"
)

// ExplainRefusal returns a text in Markdown that tells the user which setting would let a child
// connect to a host. who names the child, and owner the section of the configuration file with its
// settings.
func ExplainRefusal(r hosts.Refusal, who, owner string) string {
	why := ""
	setting := "sandboxHosts"
	switch {
	case r.Near != "":
		why = fmt.Sprintf(", which leads to %s, an address that is not public", r.Near)
	case r.Entry == "":
		_, port, _ := net.SplitHostPort(r.Target)
		setting, r.Entry = "sandboxPorts", port
	}
	return fmt.Sprintf("The sandbox does not let %s connect to %s%s. If you know that it must, "+
		"add %s to %s of %s in acp-agent's configuration file, and restart acp-agent.", who,
		text.Code(r.Target), why, text.Code(r.Entry), text.Code(setting), owner)
}

// ExplainDenial looks for an error in a child's message that its sandbox has probably caused. It
// returns a text in Markdown that tells the user which setting would permit the access, or why it
// suggests none, and the path that this is about. Both are "" without such an error. who names the
// child, and owner the section of the configuration file with its settings.
func ExplainDenial(p sandbox.Policy, message, who, owner string) (explanation, path string) {
	d, denied := p.Denied(message)
	if !denied {
		return "", ""
	}
	does, setting := "change", text.Code("sandboxWrite")
	if d.Reading {
		does, setting = "read", text.Code("sandboxRead")+" (or to "+setting+", to change it too)"
	}
	says := fmt.Sprintf("The sandbox does not let %s %s %s, by its own report", who, does,
		text.Code(d.Path))
	worktree := worktreeOf(filepath.Dir(d.Path))
	switch {
	case worktree != "":
		return fmt.Sprintf("%s: it belongs to %s, a linked worktree of git that a program in the "+
			"sandbox could have made. If you made it, run %s, and load the session again.", says,
			text.Code(worktree),
			text.Code("acp-agent permissions follow "+text.ShellWord(worktree))), d.Path
	case d.Grant == "":
		return says + ". No setting is suggested, because only caches of known tools are: other " +
			"files may hold keys, or be obeyed by programs outside the sandbox." +
			aboutLock(d.Path), d.Path
	}
	return fmt.Sprintf("%s. If you know that it must, add %s to %s of %s in acp-agent's "+
		"configuration file, and restart acp-agent. If the path does not exist, create it first.",
		says,
		text.Code(d.Grant), setting, owner), d.Grant
}

// aboutLock says which commands of git need a file that a process in a linked worktree cannot
// write, or "".
func aboutLock(path string) string {
	if filepath.Base(path) != "packed-refs.lock" {
		return ""
	}
	return " Git needs this file to delete a reference: at the end of a cherry-pick, revert, " +
		"rebase or bisect, and for `branch -d` and `-m`, `tag -d`, `fetch -p`, `stash drop` and " +
		"`pop`. What it has committed is kept, and the reference is left. In the worktree, " +
		"outside the sandbox, run the command again, or end it with `git cherry-pick --quit`, " +
		"`git revert --quit`, `git rebase --quit` and `git cherry-pick --quit`, " +
		"`git bisect reset`, or `git stash drop`."
}

// worktreeOf returns the linked worktree that has the directory own in its repository, or "".
func worktreeOf(own string) string {
	root, _ := listedWorktree(own)
	if claimed, ok := LinkedWorktree(root); !ok || claimed != own {
		return ""
	}
	return root
}

// ExplainFailure returns a text for the error of a child whose sandbox is probably the cause: that
// of [ExplainDenial], or one that names no path.
func ExplainFailure(p sandbox.Policy, message, who, owner string) string {
	if explanation, _ := ExplainDenial(p, message, who, owner); explanation != "" {
		return explanation
	}
	return "It runs in acp-agent's sandbox, which may have denied this: name what it needs in " +
		"sandboxWrite or sandboxRead of " + owner + " in acp-agent's configuration file."
}
