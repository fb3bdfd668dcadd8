package rules

// IndexBytes limits how much of a history is indexed in one transaction.
const IndexBytes = 512 << 10

// Indexed returns the last segment whose passages are complete, once the segments after after up to
// last are indexed. The passage that begins in the segment open, if that is not 0, is made again if
// more may follow: done says that last is the end of the history, running that a turn is. A passage
// too long for one transaction is cut.
func Indexed(after, last, open int64, done, running bool) int64 {
	if open > 0 && (done && running || !done && open-1 > after) {
		return open - 1
	}
	return last
}
