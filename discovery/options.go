package discovery

import "time"

// Options configure [Scan]. The zero value is a good one. A bound that cut something shows in [Catalog.Cuts].
type Options struct {
	// Conventions is what is looked for and where, first rows first. Default [Conventions].
	Conventions []Convention

	// MaxDepth is how many directories deep a "**" goes. Default 6.
	MaxDepth int
	// MaxDirs is the most directories of one root that are looked into. Default 10000.
	MaxDirs int
	// MaxArtifacts is the most artifacts of one root. Default 2000.
	MaxArtifacts int
	// MaxFile is the most bytes of a file; a larger one is listed as too large. Default 1 MiB.
	MaxFile int64
	// MaxFrontmatter is the most bytes of frontmatter. Default 64 KiB.
	MaxFrontmatter int
	// MaxBytes is the most bytes that are read in one root. Default 64 MiB.
	MaxBytes int64
	// MaxHops is how far imports go: the imports of a file are the first hop. Default 4.
	MaxHops int
	// MaxImports is the most files that one file imports, those of the imported ones included. Default 64.
	MaxImports int
	// Timeout is the most time for one root. Default 5 s.
	Timeout time.Duration

	// RootBudget is the most bytes of instructions of one root in an assembled text, SessionBudget of all roots
	// together. Default 32 KiB each. What does not fit is cut visibly.
	RootBudget    int
	SessionBudget int
}

func (o Options) withDefaults() Options {
	if o.Conventions == nil {
		o.Conventions = Conventions()
	}
	o.MaxDepth = orDefault(o.MaxDepth, 6)
	o.MaxDirs = orDefault(o.MaxDirs, 10000)
	o.MaxArtifacts = orDefault(o.MaxArtifacts, 2000)
	o.MaxFile = orDefault(o.MaxFile, 1<<20)
	o.MaxFrontmatter = orDefault(o.MaxFrontmatter, 64<<10)
	o.MaxBytes = orDefault(o.MaxBytes, 64<<20)
	o.MaxHops = orDefault(o.MaxHops, 4)
	o.MaxImports = orDefault(o.MaxImports, 64)
	o.Timeout = orDefault(o.Timeout, 5*time.Second)
	o.RootBudget = orDefault(o.RootBudget, 32<<10)
	o.SessionBudget = orDefault(o.SessionBudget, 32<<10)
	return o
}

func orDefault[T int | int64 | time.Duration](value, otherwise T) T {
	if value <= 0 {
		return otherwise
	}
	return value
}
