package workspace

import (
	"io"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/gitignore"
)

// The names that git gives to what says what it ignores.
const (
	repository = ".git"
	ruleFile   = ".gitignore"
)

// rulesAbove is the matcher of the directory that holds d, from the root that owns it down. It is nil if
// there is none, or if d is in a directory that is ignored: whoever starts there wants what is in it.
func (s *scan) rulesAbove(d *Directory) *gitignore.Matcher {
	if d.ref.rel == "." {
		return nil
	}
	names := strings.Split(d.ref.rel, "/")
	dir, err := s.w.openRootDir(d.ref.root.Index)
	var rules *gitignore.Matcher
	for i := 0; err == nil; i++ {
		_, repositoryErr := dir.lstat(repository)
		rules = s.matcher(dir, rules, repositoryErr == nil, s.parse(dir, ruleFile))
		if i == len(names)-1 {
			break
		}
		if rules.Match(names[i], gitignore.Directory) == gitignore.Ignored {
			rules = nil
		}
		above := dir
		dir, err = above.openDir(names[i])
		_ = above.Close()
	}
	if err != nil {
		return nil
	}
	_ = dir.Close()
	if rules.Match(names[len(names)-1], gitignore.Directory) == gitignore.Ignored {
		return nil
	}
	return rules
}

// enter is the matcher of dir, which has these entries. outer is that of the directory above.
func (s *scan) enter(dir *Directory, entries []Entry, outer *gitignore.Matcher) *gitignore.Matcher {
	named := func(name string) (Entry, bool) {
		i, ok := slices.BinarySearchFunc(entries, name, func(e Entry, name string) int { return strings.Compare(e.Name, name) })
		if !ok {
			return Entry{}, false
		}
		return entries[i], true
	}
	var own *gitignore.Rules
	if e, ok := named(ruleFile); ok && e.Type.IsRegular() {
		own = s.parse(dir, ruleFile)
	}
	_, top := named(repository)
	return s.matcher(dir, outer, top, own)
}

// matcher is the matcher of dir, whose own rules are these. top reports whether it is that of a repository.
func (s *scan) matcher(dir *Directory, outer *gitignore.Matcher, top bool, own *gitignore.Rules) *gitignore.Matcher {
	switch {
	case top:
		return gitignore.NewMatcher(own, s.excludes(dir))
	case outer == nil:
		return gitignore.NewMatcher(own)
	default:
		return outer.Enter(dir.at.names[len(dir.at.names)-1], own)
	}
}

// excludes are the rules of the repository whose top dir is.
func (s *scan) excludes(dir *Directory) *gitignore.Rules {
	for _, name := range []string{repository, "info"} {
		child, err := dir.openDir(name)
		if err != nil {
			return nil
		}
		defer child.Close()
		dir = child
	}
	return s.parse(dir, "exclude")
}

// parse reads a file of rules. One that cannot be read has none, as for git, which does not follow a
// link to one either.
func (s *scan) parse(dir *Directory, name string) *gitignore.Rules {
	info, err := dir.lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > s.o.MaxRules {
		return nil
	}
	file, err := dir.openFile(name)
	if err != nil {
		return nil
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, s.o.MaxRules+1))
	if err != nil || int64(len(data)) > s.o.MaxRules {
		return nil
	}
	return gitignore.Parse(data)
}
