package tools

import "time"

// Options configure a [Set]. A zero field is its default.
type Options struct {
	// Permit decides about each change. If it is nil no tool that changes a file is offered (A30).
	Permit Permit
	// MaxBytes is the most text of files, lines and names in one answer, in bytes. Default 64 KiB.
	MaxBytes int
	// MaxLines is the most lines that read_file gives. Default 2,000.
	MaxLines int
	// MaxEntries is the most entries that list_directory and find_files give. Default 1,000.
	MaxEntries int
	// MaxMatches is the most matches that search gives. Default 200.
	MaxMatches int
	// MaxLine is how much of a line search gives, in bytes. Default 500.
	MaxLine int
	// MaxFileSize is the size in bytes over which a file is neither searched nor changed. Default [DefaultMaxFileSize].
	MaxFileSize int64
	// MaxFiles is the most files that find_files and search look at. Default [DefaultMaxFiles].
	MaxFiles int
	// MaxTime is how long find_files and search may take. Default 30 s.
	MaxTime time.Duration
}

func (o Options) withDefaults() Options {
	setDefault(&o.MaxBytes, 64<<10)
	setDefault(&o.MaxLines, 2000)
	setDefault(&o.MaxEntries, 1000)
	setDefault(&o.MaxMatches, 200)
	setDefault(&o.MaxLine, 500)
	setDefault(&o.MaxFileSize, DefaultMaxFileSize)
	setDefault(&o.MaxFiles, DefaultMaxFiles)
	setDefault(&o.MaxTime, 30*time.Second)
	return o
}

func setDefault[N int | int64 | time.Duration](n *N, value N) {
	if *n == 0 {
		*n = value
	}
}
