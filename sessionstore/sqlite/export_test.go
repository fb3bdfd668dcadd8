package sqlite

// The journal modes, for external tests.
const (
	JournalWAL      = journalWAL
	JournalRollback = journalRollback
)

// LockFile locks the file that programs lock while they open or repair a store.
var LockFile = lockFile

// Journal is a journal mode.
type Journal = journal

// WithJournal returns o with a journal mode.
func (o Options) WithJournal(j Journal) Options {
	o.journal = j
	return o
}
