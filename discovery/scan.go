package discovery

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// Scan finds the artifacts in all roots of ws. It scans roots concurrently, each within the limits
// described at [Limit]. Files that cannot be read or used are in the catalog; the error is the
// context's or [workspace.ErrClosed]. The catalog reads files through ws, which must stay open
// while it is used.
func Scan(ctx context.Context, ws *workspace.Workspace) (*Catalog, error) {
	return scan(ctx, ws, defaultLimits)
}

// scan is Scan with limits.
func scan(ctx context.Context, ws *workspace.Workspace, l limits) (*Catalog, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	roots := ws.Opened()
	scanners := make([]*scanner, len(roots))
	var scans errgroup.Group
	scans.SetLimit(runtime.GOMAXPROCS(0))
	for i, root := range roots {
		scanners[i] = newScanner(ws, root, l)
		scans.Go(func() error { return scanners[i].scanRoot(ctx) })
	}
	if err := scans.Wait(); err != nil {
		return nil, err
	}
	c := &Catalog{ws: ws, limits: l}
	for _, s := range scanners {
		for _, a := range s.artifacts {
			c.artifacts = append(c.artifacts, *a)
		}
		c.reached = append(c.reached, s.reached...)
	}
	resolveConflicts(c.artifacts)
	return c, nil
}

// scanner scans one root. It is used by one goroutine at a time.
type scanner struct {
	ws     *workspace.Workspace
	root   workspace.Root
	limits limits

	artifacts []*Artifact
	reached   []Limit

	// where matching began; the value is the path by which the directory was found
	started map[matchStart]string
	seen    map[fileOfKind]bool // files that were added, and directories that cannot be opened
	dirs    int                 // directories opened for patterns
	bytes   int                 // bytes read
	buffer  []byte              // reused for reading files

	ignored *workspace.IgnoredDirs // nil until it is needed
}

// matchStart identifies the matching of a remaining pattern in a directory.
type matchStart struct {
	kind Kind
	dir  workspace.Ref
	rest string
}

// fileOfKind is a file that was found, by its path in the root. A file can hold artifacts of
// several kinds.
type fileOfKind struct {
	kind Kind
	rel  string
}

func newScanner(ws *workspace.Workspace, root workspace.Root, l limits) *scanner {
	return &scanner{
		ws: ws, root: root, limits: l,
		started: make(map[matchStart]string), seen: make(map[fileOfKind]bool),
	}
}

// scanRoot scans the root for all rows and sorts the artifacts. The error is the context's or
// workspace.ErrClosed.
func (s *scanner) scanRoot(ctx context.Context) error {
	limited, cancel := context.WithTimeoutCause(ctx, s.limits.time, errTimeout)
	defer cancel()
	top, err := s.ws.OpenDir(s.root.Dir.String())
	if errors.Is(err, workspace.ErrClosed) {
		return err
	}
	if err != nil {
		s.add(Artifact{Kind: Instruction, Name: ".", Root: s.root, Path: s.path("."),
			State: Invalid, Reason: reasonOf(err), rel: "."})
		return context.Cause(ctx)
	}
	defer top.Close()
	s.scanDir(limited, rows(), newDirectory(top, nil, "."))
	for _, a := range s.artifacts {
		if dir := path.Dir(a.rel); a.rel[0] != '.' && dir != "." && a.Kind != Plugin {
			s.checkOwner(a, dir)
		}
	}
	slices.SortStableFunc(s.artifacts, byRank)
	return context.Cause(ctx)
}

// scanDir looks for the patterns of all rows below the directory at.
func (s *scanner) scanDir(ctx context.Context, rows []row, at *directory) {
	_, _ = at.list(ctx) // so that names that do not exist need not be looked up
	for _, r := range rows {
		if !r.inside {
			s.scanRow(ctx, r, at, "")
		}
	}
}

// scanRow follows the literal names at the beginning of the row's pattern and matches the rest from
// there. plugin is the name of the plugin whose directory is at, if it is one.
func (s *scanner) scanRow(ctx context.Context, r row, at *directory, plugin string) {
	if s.stopAtLimit(ctx, r) {
		return
	}
	if hidden := r.names[0]; hidden[0] == '.' && isGlob(hidden) && len(r.names) > 1 {
		for _, e := range at.entries {
			if matches(hidden, e.Name) && !isForeign(e.Name) {
				s.scanHidden(ctx, r, at, e.Name)
			}
		}
		return
	}
	from := at
	literal := min(r.fixed, len(r.names)-1)
	for _, name := range r.names[:literal] {
		next := s.openNamed(ctx, r, from, name)
		if next == nil {
			return
		}
		defer next.dir.Close()
		from = next
	}
	rest := r.names[literal:]
	if from != at && !s.begin(r, from, rest) {
		return
	}
	m := &matcher{scanner: s, row: r, level: at, base: from, plugin: plugin}
	m.match(ctx, from, rest, 0)
}

// scanHidden looks in a hidden directory for the pattern of a row that begins with a glob, unless
// another row names that directory.
func (s *scanner) scanHidden(ctx context.Context, r row, at *directory, name string) {
	one, err := r.at(name + "/" + strings.Join(r.names[1:], "/"))
	if err != nil || slices.ContainsFunc(rows(), func(named row) bool {
		return named.pattern == one.pattern && named.kind == one.kind
	}) {
		return
	}
	one.hidden = true
	s.scanRow(ctx, one, at, "")
}

// begin records that the rest of the pattern is matched in a directory. It returns false, and adds
// an artifact that says so, if that was done for an earlier row, which found the directory by
// another path because of a link.
func (s *scanner) begin(r row, from *directory, rest []string) bool {
	key := matchStart{r.kind, from.dir.Ref(), strings.Join(rest, "/")}
	earlier, done := s.started[key]
	switch {
	case !done:
		s.started[key] = from.rel
		return true
	case earlier == from.rel: // other files may not have been found for a plugin
		return true
	}
	a := s.artifact(r, from.rel)
	a.State, a.ShadowedBy = Shadowed, s.path(earlier)
	a.Reason = "it is the same directory as " + a.ShadowedBy
	s.add(a)
	return false
}

// openNamed opens a directory that the row's pattern names literally. It returns nil if there is
// none.
func (s *scanner) openNamed(ctx context.Context, r row, at *directory, name string) *directory {
	e, err := at.entry(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	dir, err := at.dir.OpenDir(name)
	if err == nil {
		return newDirectory(dir, at, name)
	}
	isOther := r.hidden && name == r.names[0] // it need not have to do with agents
	isFile := errors.Is(err, syscall.ENOTDIR)
	if isOther || isFile || isGone(e, err) {
		return nil
	}
	if s.markNew(r.kind, join(at.rel, name)) {
		s.addUnreadable(r, at, name, err)
	}
	return nil
}

// markNew marks what is at rel as added with a kind, and reports whether it was not before.
func (s *scanner) markNew(kind Kind, rel string) bool {
	key := fileOfKind{kind, rel}
	isNew := !s.seen[key]
	s.seen[key] = true
	return isNew
}

// add adds an artifact. It does not check the limits.
func (s *scanner) add(a Artifact) { s.artifacts = append(s.artifacts, &a) }

// addUnreadable adds an artifact for a file or directory that cannot be opened.
func (s *scanner) addUnreadable(r row, at *directory, name string, err error) {
	a := s.artifact(r, join(at.rel, name))
	a.invalid(reasonOf(err))
	s.add(a)
}

// artifact returns a new artifact of the row at rel.
func (s *scanner) artifact(r row, rel string) Artifact {
	return Artifact{
		Kind: r.kind, Name: rel, Root: s.root, Pattern: r.pattern,
		Path: s.path(rel), State: Active,
		rel: rel, row: r,
	}
}

// path returns the path of rel as the client spells the root.
func (s *scanner) path(rel string) string {
	if rel == "." {
		return s.root.Dir.String()
	}
	return s.root.Ref().Child(rel).Path()
}

// matcher matches one row's pattern.
type matcher struct {
	*scanner
	row    row
	level  *directory // the directory that instructions in the files are for
	base   *directory // where the pattern's literal names end; command names are relative to it
	plugin string     // the plugin that the files belong to, if any
}

// match looks in at for names, the rest of the pattern. depth is the number of directories
// descended by "**".
func (m *matcher) match(ctx context.Context, at *directory, names []string, depth int) {
	switch name := names[0]; {
	case name == "**":
		m.matchBelow(ctx, at, names, depth)
	case !isGlob(name) && len(names) == 1:
		e, err := at.entry(ctx, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			m.addUnreadable(m.row, at, name, err)
		case m.row.orDir && e.Type.IsDir():
		default:
			m.readFile(ctx, at, e)
		}
	case !isGlob(name):
		m.descend(ctx, at, workspace.Entry{Name: name, Type: fs.ModeDir}, names[1:], depth)
	default:
		m.each(ctx, at, name, func(e workspace.Entry) {
			if !matches(name, e.Name) {
				return
			}
			if len(names) > 1 {
				m.descend(ctx, at, e, names[1:], depth)
			} else if !e.Type.IsDir() {
				m.readFile(ctx, at, e)
			}
		})
	}
}

// matchBelow looks for the names after "**" in at and in all directories below it.
func (m *matcher) matchBelow(ctx context.Context, at *directory, names []string, depth int) {
	last := len(names) == 2
	m.each(ctx, at, names[0], func(e workspace.Entry) {
		switch {
		case last && !e.Type.IsDir() && strings.EqualFold(names[1], e.Name) && names[1] != e.Name:
			a := m.artifact(m.row, join(at.rel, e.Name))
			a.unused("its name must be " + names[1])
			m.add(a)
		case last && !e.Type.IsDir() && matches(names[1], e.Name):
			m.readFile(ctx, at, e)
		case depth < m.limits.depth:
			m.descend(ctx, at, e, names, depth+1)
		case e.Type.IsDir():
			m.limitReached(m.row, join(at.rel, e.Name),
				text.Count(m.limits.depth, "nested directory", "nested directories"))
		}
	})
	if !last {
		m.match(ctx, at, names[1:], depth)
	}
}

// matches reports whether name matches a valid pattern.
func matches(pattern, name string) bool {
	matched, _ := path.Match(pattern, name)
	return matched
}

// each calls visit with the entries of at that a glob can match.
func (m *matcher) each(
	ctx context.Context, at *directory, glob string, visit func(workspace.Entry),
) {
	entries, err := at.list(ctx)
	var limit *workspace.LimitError
	switch {
	case err == nil:
	case errors.As(err, &limit):
		m.limitReached(m.row, at.rel,
			text.Count(int(limit.Limit), "directory entry", "directory entries"))
	default:
		if stopped := m.stopAtLimit(ctx, m.row); !stopped && at.parent != nil {
			m.addUnreadable(m.row, at.parent, path.Base(at.rel), err)
		}
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name, ".") != strings.HasPrefix(glob, ".") ||
			e.Name == "node_modules" {
			continue
		}
		if m.stopAtLimit(ctx, m.row) {
			return
		}
		visit(e)
	}
}

// descend matches the remaining names in the entry e of at, if e is a directory or a link to one.
func (m *matcher) descend(
	ctx context.Context, at *directory, e workspace.Entry, names []string, depth int,
) {
	link := e.Type&fs.ModeSymlink != 0
	if !link && !e.Type.IsDir() {
		return
	}
	if m.dirs == m.limits.dirs {
		m.limitReached(m.row, at.rel, text.Count(m.limits.dirs, "directory", "directories"))
		return
	}
	m.dirs++
	dir, err := at.dir.OpenDir(e.Name)
	if err != nil {
		// A pattern that begins with "*" matches directories that have nothing to do with agents.
		if m.base != m.level && !errors.Is(err, syscall.ENOTDIR) && !isGone(e, err) {
			m.addUnreadable(m.row, at, e.Name, err)
		}
		return
	}
	defer dir.Close()
	next := newDirectory(dir, at, e.Name)
	if link {
		if same := next.ancestor(); same != nil {
			a := m.artifact(m.row, next.rel)
			a.invalid("it is a link back to " + m.path(same.rel) +
				", which is being searched already")
			m.add(a)
			return
		}
	}
	m.match(ctx, next, names, depth)
}

// readFile adds the artifacts of the file e in at, unless another row has.
func (m *matcher) readFile(ctx context.Context, at *directory, e workspace.Entry) {
	rel := join(at.rel, e.Name)
	if !m.markNew(m.row.kind, rel) {
		return
	}
	content, info, err := at.dir.ReadFile(e, m.buffer, int64(m.limits.fileSize))
	if err != nil {
		if !isGone(e, err) {
			m.addUnreadable(m.row, at, e.Name, err)
		}
		return
	}
	if cap(content) > cap(m.buffer) {
		m.buffer = content
	}
	file := m.artifact(m.row, rel)
	file.Ref, file.Size, file.dir = info.Ref(), info.Size(), m.level.rel
	for _, a := range m.parse(ctx, file, content) {
		if m.stopIfFull(m.row) {
			return
		}
		m.add(a)
	}
}

// parse returns the artifacts that a file's content declares, based on a.
func (m *matcher) parse(ctx context.Context, a Artifact, content []byte) []Artifact {
	file, err := decode(content, a.Size, m.limits.fileSize)
	m.bytes += int(file.size)
	if err != nil {
		a.invalid(err.Error())
		if a.Size > int64(m.limits.fileSize) {
			a.State = TooLarge
		}
		return []Artifact{a}
	}
	a.Diagnostics = append(a.Diagnostics, file.diagnostics...)
	switch a.Kind {
	case Skill:
		readSkill(&a, file.text)
	case Command:
		a.nameCommand(m.base.rel)
		readCommand(&a, file.text)
	case MCPServer:
		return readServers(a, file.text, m.limits)
	case Plugin:
		return m.readPlugins(ctx, a, file.text)
	default:
		readInstruction(&a, file.text)
		if m.row.imports && a.State == Active {
			in := &importer{scanner: m.scanner, a: &a, read: map[string]bool{a.Ref.Real(): true}}
			in.follow(ctx, a.Path, a.text, 1)
		}
	}
	if m.plugin != "" {
		a.Name = m.plugin + ":" + a.Name
	}
	return []Artifact{a}
}

// directory is an open directory of a scan. Whoever opened dir closes it.
type directory struct {
	dir    *workspace.Directory
	rel    string     // as it was found, slash-separated from the root
	parent *directory // nil for the root

	listed  bool
	entries []workspace.Entry // sorted by name
	err     error             // why entries are incomplete
}

// newDirectory returns the open directory name in parent, or the root if parent is nil.
func newDirectory(dir *workspace.Directory, parent *directory, name string) *directory {
	d := &directory{dir: dir, rel: name, parent: parent}
	if parent != nil {
		d.rel = join(parent.rel, name)
	}
	return d
}

// list returns the directory's entries, which it reads once.
func (d *directory) list(ctx context.Context) ([]workspace.Entry, error) {
	if !d.listed {
		d.entries, d.err = d.dir.Entries(ctx)
		d.listed = true
	}
	return d.entries, d.err
}

// entry returns the entry that has exactly this name. It lists a directory that was not listed only
// if it may have the entry, because a file system that ignores case also finds other names.
func (d *directory) entry(ctx context.Context, name string) (workspace.Entry, error) {
	if !d.listed || d.err != nil {
		info, err := d.dir.Lstat(name)
		if err != nil {
			return workspace.Entry{}, err
		}
		if _, err := d.list(ctx); err != nil {
			return workspace.Entry{Name: name, Type: info.Mode().Type()}, nil
		}
	}
	i, found := slices.BinarySearchFunc(d.entries, name,
		func(e workspace.Entry, name string) int { return strings.Compare(e.Name, name) })
	if !found {
		return workspace.Entry{}, fs.ErrNotExist
	}
	return d.entries[i], nil
}

// ancestor returns the directory above d that is the same directory, or nil.
func (d *directory) ancestor() *directory {
	for up := d.parent; up != nil; up = up.parent {
		if up.dir.Ref() == d.dir.Ref() {
			return up
		}
	}
	return nil
}

// isGone reports whether err, from opening e, means that e has been removed. A link to nothing is
// still there.
func isGone(e workspace.Entry, err error) bool {
	return errors.Is(err, fs.ErrNotExist) && e.Type&fs.ModeSymlink == 0
}

// join returns the path of name in the directory rel.
func join(rel, name string) string {
	if rel == "." {
		return name
	}
	return rel + "/" + name
}

// reasonOf says why something cannot be opened.
func reasonOf(err error) string {
	var outside *workspace.OutsideError
	var special *workspace.SpecialFileError
	var denied *workspace.DeniedError
	switch {
	case errors.As(err, &outside):
		return "it leads out of the folders: " + outside.Why
	case errors.As(err, &special):
		return "it is a " + special.Kind + ", not a file"
	case errors.As(err, &denied):
		return "the policy refuses " + denied.By.String()
	case errors.Is(err, fs.ErrNotExist):
		return "it is a link that leads to nothing"
	case errors.Is(err, syscall.EISDIR):
		return "it is a directory, not a file"
	case errors.Is(err, syscall.ELOOP):
		return "its links lead in a circle"
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return "it cannot be read: " + err.Error()
}
