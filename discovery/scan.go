package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// Options configure [Scan].
type Options struct {
	// Conventions say what to look for. Earlier ones take precedence. Nil means [Conventions].
	Conventions []Convention

	limits limits // zero fields stand for the defaults; tests set others
}

// limits bound the scan of one root and the texts assembled from a catalog. A limit that left something out is reported as a
// [Limit].
type limits struct {
	depth       int           // directories that "**" descends
	dirs        int           // directories opened
	artifacts   int           // artifacts listed
	fileSize    int64         // bytes of a file; larger ones are listed as too large
	frontmatter int           // bytes of frontmatter
	bytes       int64         // bytes read
	importDepth int           // imports of imports of an instruction file
	imports     int           // files imported by an instruction file, directly and indirectly
	time        time.Duration // for one root

	text int // bytes of instructions in an assembled text
}

func (l limits) withDefaults() limits {
	return limits{
		depth:       cmp.Or(l.depth, 6),
		dirs:        cmp.Or(l.dirs, 10_000),
		artifacts:   cmp.Or(l.artifacts, 2_000),
		fileSize:    cmp.Or(l.fileSize, 1<<20),
		frontmatter: cmp.Or(l.frontmatter, 64<<10),
		bytes:       cmp.Or(l.bytes, 64<<20),
		importDepth: cmp.Or(l.importDepth, 4),
		imports:     cmp.Or(l.imports, 64),
		time:        cmp.Or(l.time, 5*time.Second),
		text:        cmp.Or(l.text, 32<<10),
	}
}

// Scan finds the artifacts in all roots of ws. It scans roots concurrently, each within the limits described at [Limit].
// Files that cannot be read or used are in the catalog; the error is the context's, [workspace.ErrClosed], or says which
// convention is invalid. The catalog reads files through ws, which must stay open while it is used.
func Scan(ctx context.Context, ws *workspace.Workspace, o Options) (*Catalog, error) {
	table := o.Conventions
	if table == nil {
		table = Conventions()
	}
	rows, err := compile(table)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	c := &Catalog{ws: ws, limits: o.limits.withDefaults(), rows: rows}
	roots := ws.Opened()
	scanners := make([]*scanner, len(roots))
	errs := make([]error, len(roots))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var scans sync.WaitGroup
	for i, root := range roots {
		scanners[i] = newScanner(ws, root, c.limits)
		slots <- struct{}{}
		scans.Go(func() {
			defer func() { <-slots }()
			errs[i] = scanners[i].scanRoot(ctx, rows)
		})
	}
	scans.Wait()
	for i, s := range scanners {
		if errs[i] != nil {
			return nil, errs[i]
		}
		for _, a := range s.artifacts {
			c.artifacts = append(c.artifacts, *a)
		}
		c.reached = append(c.reached, s.reached...)
	}
	resolveConflicts(c.artifacts)
	return c, nil
}

// scanner scans one root. It is used by one goroutine.
type scanner struct {
	ws     *workspace.Workspace
	root   workspace.Root
	limits limits

	artifacts []*Artifact
	reached   []Limit

	fixed   map[string]*directory // directories that patterns name literally, by path; nil if there is no such directory
	started map[start]string      // where scans for patterns began
	dirs    int                   // directories opened for patterns
	bytes   int64                 // bytes read
	buffer  []byte                // reused for reading files
}

// start identifies the scan of one directory for one remaining pattern.
type start struct {
	format Format
	dir    workspace.Ref
	rest   string
}

func newScanner(ws *workspace.Workspace, root workspace.Root, l limits) *scanner {
	return &scanner{ws: ws, root: root, limits: l, fixed: make(map[string]*directory), started: make(map[start]string)}
}

// scanRoot scans the root for all rows and sorts the artifacts. The error is the context's or workspace.ErrClosed.
func (s *scanner) scanRoot(ctx context.Context, rows []row) error {
	defer s.close()
	limited, cancel := context.WithTimeoutCause(ctx, s.limits.time, errTimeout)
	defer cancel()
	top, err := s.ws.OpenDir(s.root.Dir.String())
	if errors.Is(err, workspace.ErrClosed) {
		return err
	}
	if err != nil {
		a := s.artifact(row{}, ".")
		a.invalid(reasonOf(err))
		s.add(a)
		return context.Cause(ctx)
	}
	defer top.Close()
	s.scanDir(limited, rows, newDirectory(top, nil, "."))
	slices.SortStableFunc(s.artifacts, byRank)
	return context.Cause(ctx)
}

func (s *scanner) close() {
	for _, d := range s.fixed {
		if d != nil {
			_ = d.dir.Close()
		}
	}
}

// scanDir looks for the patterns of all rows below the directory at.
func (s *scanner) scanDir(ctx context.Context, rows []row, at *directory) {
	if slices.ContainsFunc(rows, func(r row) bool { return r.fixed == 0 }) {
		_, _ = at.list(ctx) // one row needs the list, and it saves the others looking for missing names
	}
	for _, r := range rows {
		if !s.exhausted(ctx, r) {
			s.scanRow(ctx, r, at)
		}
	}
}

// scanRow follows the literal names at the beginning of the row's pattern and matches the rest from there.
func (s *scanner) scanRow(ctx context.Context, r row, at *directory) {
	from := at
	literal := min(r.fixed, len(r.names)-1)
	for _, name := range r.names[:literal] {
		if from = s.openFixed(r, from, name); from == nil {
			return
		}
	}
	rest := r.names[literal:]
	if from != at && s.scannedBefore(r, from, rest) {
		return
	}
	m := &matcher{scanner: s, row: r, level: at, base: from}
	m.match(ctx, from, rest, 0)
}

// scannedBefore reports whether an earlier row was matched in the same directory, which a link gives a second path, and adds
// an artifact that says so.
func (s *scanner) scannedBefore(r row, from *directory, rest []string) bool {
	key := start{r.Format, from.dir.Ref(), strings.Join(rest, "/")}
	earlier, done := s.started[key]
	if !done {
		s.started[key] = from.rel
		return false
	}
	a := s.artifact(r, from.rel)
	a.State, a.ShadowedBy = Shadowed, s.path(earlier)
	a.Reason = "it is the same directory as " + a.ShadowedBy
	s.add(a)
	return true
}

// openFixed opens a directory that a pattern names literally, once for all rows. It returns nil if there is none.
func (s *scanner) openFixed(r row, at *directory, name string) *directory {
	rel := join(at.rel, name)
	if d, known := s.fixed[rel]; known {
		return d
	}
	s.fixed[rel] = nil
	e, err := at.entry(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	dir, err := at.dir.OpenDir(name)
	switch {
	case err == nil:
		s.fixed[rel] = newDirectory(dir, at, name)
	case errors.Is(err, syscall.ENOTDIR): // a file with this name is not ours
	case isGone(e, err):
	default:
		s.addUnreadable(r, at, name, err)
	}
	return s.fixed[rel]
}

// add adds an artifact whatever the limits.
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
		Kind: r.Format.Kind(), Name: rel, Root: s.root, Pattern: r.Pattern, Path: s.path(rel), State: Active,
		rel: rel, rank: r.rank, onePerDirectory: r.OnePerDirectory,
	}
}

// path returns the path of rel as the client spells the root.
func (s *scanner) path(rel string) string {
	if rel == "." {
		return s.root.Dir.String()
	}
	top := s.root.Dir.String()
	if last := top[len(top)-1]; last != '/' && last != filepath.Separator {
		top += string(filepath.Separator)
	}
	return top + filepath.FromSlash(rel)
}

// matcher matches one row's pattern.
type matcher struct {
	*scanner
	row   row
	level *directory // the directory that instructions are for
	base  *directory // where the pattern's literal names end; command names are relative to it
}

// match looks in at for what is left of the pattern.
func (m *matcher) match(ctx context.Context, at *directory, names []string, depth int) {
	switch name := names[0]; {
	case name == "**":
		m.matchBelow(ctx, at, names, depth)
	case !isGlob(name) && len(names) == 1:
		e, err := at.entry(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			m.addUnreadable(m.row, at, name, err)
		default:
			m.readFile(ctx, at, e)
		}
	case !isGlob(name):
		m.descend(ctx, at, workspace.Entry{Name: name, Type: fs.ModeDir}, names[1:], depth)
	default:
		m.each(ctx, at, func(e workspace.Entry) {
			if matched, _ := path.Match(name, e.Name); !matched {
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

// matchBelow looks for the names after "**" in at and in all directories below it. A literal file name matches in any case,
// because the author's file system may ignore case.
func (m *matcher) matchBelow(ctx context.Context, at *directory, names []string, depth int) {
	last := len(names) == 2
	m.each(ctx, at, func(e workspace.Entry) {
		switch {
		case last && !e.Type.IsDir() && matchesFold(names[1], e.Name):
			m.readFile(ctx, at, e)
		case depth < m.limits.depth:
			m.descend(ctx, at, e, names, depth+1)
		case e.Type.IsDir():
			m.limitReached(m.row, join(at.rel, e.Name), "MaxDepth", int64(m.limits.depth))
		}
	})
	if !last {
		m.match(ctx, at, names[1:], depth)
	}
}

// matchesFold reports whether name matches the pattern, or equals it except for case.
func matchesFold(pattern, name string) bool {
	matched, _ := path.Match(pattern, name)
	return matched || strings.EqualFold(name, pattern)
}

// each calls visit with the entries of at that patterns can match.
func (m *matcher) each(ctx context.Context, at *directory, visit func(workspace.Entry)) {
	entries, err := at.list(ctx)
	var limit *workspace.LimitError
	switch {
	case err == nil:
	case errors.As(err, &limit):
		m.limitReached(m.row, at.rel, "MaxEntries", limit.Limit)
	default:
		if !m.exhausted(ctx, m.row) && at.parent != nil {
			m.addUnreadable(m.row, at.parent, path.Base(at.rel), err)
		}
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name, ".") || e.Name == "node_modules" {
			continue
		}
		if m.exhausted(ctx, m.row) {
			return
		}
		visit(e)
	}
}

// descend matches the remaining names in the entry e of at if that is a directory or a link to one.
func (m *matcher) descend(ctx context.Context, at *directory, e workspace.Entry, names []string, depth int) {
	link := e.Type&fs.ModeSymlink != 0
	if !link && !e.Type.IsDir() {
		return
	}
	if m.dirs == m.limits.dirs {
		m.limitReached(m.row, at.rel, "MaxDirs", int64(m.limits.dirs))
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
			a.invalid("it is a link back to " + m.path(same.rel) + ", which is being searched already")
			m.add(a)
			return
		}
	}
	m.match(ctx, next, names, depth)
}

// readFile adds the artifacts of the file e in at.
func (m *matcher) readFile(ctx context.Context, at *directory, e workspace.Entry) {
	content, info, err := at.dir.ReadFile(e, m.buffer, m.limits.fileSize)
	if err != nil {
		if !isGone(e, err) {
			m.addUnreadable(m.row, at, e.Name, err)
		}
		return
	}
	if cap(content) > cap(m.buffer) {
		m.buffer = content
	}
	a := m.artifact(m.row, join(at.rel, e.Name))
	a.Ref, a.Size, a.dir = info.Ref(), info.Size(), m.level.rel
	for _, a := range m.parse(ctx, a, content) {
		if len(m.artifacts) >= m.limits.artifacts {
			m.limitReached(m.row, at.rel, "MaxArtifacts", int64(m.limits.artifacts))
			return
		}
		m.add(a)
	}
}

// parse returns the artifacts that a file's content declares, based on a.
func (m *matcher) parse(ctx context.Context, a Artifact, content []byte) []Artifact {
	content, ok := m.decode(&a, content)
	if !ok {
		return []Artifact{a}
	}
	switch a.Kind {
	case Skill:
		readSkill(&a, string(front(content)), m.limits)
	case Command:
		readCommand(&a, string(opening(content)), m.base.rel, m.limits)
	case MCPServer:
		return readServers(a, string(content), m.row.Format, m.limits)
	default:
		readInstruction(&a, string(content), m.row.Format, m.limits)
		if m.row.Format == TextWithImports && a.State == Active {
			m.imports(ctx, &a)
		}
	}
	return []Artifact{a}
}

// directory is an open directory of a scan.
type directory struct {
	dir    *workspace.Directory
	rel    string // as it was found, slash-separated from the root
	parent *directory

	listed  bool
	entries []workspace.Entry
	err     error // why entries are incomplete
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

// entry returns the entry name. It uses the list if there is one, unless the name is listed in another case only: the file
// system may ignore case.
func (d *directory) entry(name string) (workspace.Entry, error) {
	if d.listed && d.err == nil && isASCII(name) {
		similar := false
		for _, e := range d.entries {
			if e.Name == name {
				return e, nil
			}
			similar = similar || strings.EqualFold(e.Name, name)
		}
		if !similar {
			return workspace.Entry{}, fs.ErrNotExist
		}
	}
	info, err := d.dir.Lstat(name)
	if err != nil {
		return workspace.Entry{}, err
	}
	return workspace.Entry{Name: name, Type: info.Mode().Type()}, nil
}

// ancestor returns the directory above d that is the same directory, nil if there is none.
func (d *directory) ancestor() *directory {
	for up := d.parent; up != nil; up = up.parent {
		if up.dir.Ref() == d.dir.Ref() {
			return up
		}
	}
	return nil
}

// isGone reports whether err, from opening e, means that e has been removed. A link to nothing is still there.
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

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// reasonOf says why something cannot be opened.
func reasonOf(err error) string {
	var outside *workspace.OutsideError
	var special *workspace.SpecialFileError
	var denied *workspace.DeniedError
	switch {
	case errors.As(err, &outside):
		return "it leads out of the roots: " + outside.Why
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
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return "it cannot be read: " + err.Error()
}

// Limit says that a limit ended the scan of a root early, so that there may be more than the catalog shows. Limits for a whole
// root end the scan for the conventions after Pattern as well.
type Limit struct {
	Root workspace.Root
	// Pattern is that of the convention being looked for.
	Pattern string
	// Path is where the limit was reached, as the client spells the root.
	Path string
	// Name is one of MaxDepth, MaxDirs, MaxArtifacts, MaxBytes, MaxEntries and Timeout.
	Name string
	// Value is the limit; that of Timeout is in nanoseconds.
	Value int64
}

// String says what was not scanned, and why.
func (l Limit) String() string {
	var what string
	switch l.Name {
	case "MaxDepth":
		what = text.Count(int(l.Value), "nested directory", "nested directories")
	case "MaxDirs":
		what = text.Count(int(l.Value), "directory", "directories")
	case "MaxArtifacts":
		what = text.Count(int(l.Value), "artifact", "artifacts")
	case "MaxEntries":
		what = text.Count(int(l.Value), "directory entry", "directory entries")
	case "MaxBytes":
		what = text.Size(l.Value)
	default:
		what = time.Duration(l.Value).String()
	}
	where := l.Path
	if where == l.Root.Dir.String() {
		where = l.Pattern
	}
	return fmt.Sprintf("%s was not scanned completely: the limit of %s was reached at %s", l.Root.Dir, what, where)
}

var errTimeout = errors.New("the scan of the root takes too long")

// limitReached records a limit: once, or for limits of a directory once for each directory.
func (s *scanner) limitReached(r row, rel, name string, value int64) {
	at := s.path(rel)
	perDirectory := name == "MaxDepth" || name == "MaxEntries"
	for _, l := range s.reached {
		if l.Name == name && (l.Path == at || !perDirectory) {
			return
		}
	}
	s.reached = append(s.reached, Limit{s.root, r.Pattern, at, name, value})
}

// exhausted reports whether a limit ends the scan of the root.
func (s *scanner) exhausted(ctx context.Context, r row) bool {
	switch {
	case ctx.Err() != nil:
		s.limitReached(r, ".", "Timeout", int64(s.limits.time))
	case len(s.artifacts) >= s.limits.artifacts:
		s.limitReached(r, ".", "MaxArtifacts", int64(s.limits.artifacts))
	case s.bytes >= s.limits.bytes:
		s.limitReached(r, ".", "MaxBytes", s.limits.bytes)
	default:
		return false
	}
	return true
}
