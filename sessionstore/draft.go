package sessionstore

import "context"

// Draft is a history on its way: segments that are stored as they come, however many, and that nobody sees
// until an [Activation] puts them in the place of a session's history (clause P7). A draft that comes to
// nothing is discarded; one whose process died, the store drops by and by. It is used by one goroutine at a time.
type Draft interface {
	// Append adds a segment, as [Store.Append] does. [Merge] it first.
	Append(ctx context.Context, segment []Update) error
	// Discard drops what was added. After an activation with the draft it does nothing.
	Discard(ctx context.Context) error
}

// DraftError: an activation was given a draft that is not of this store and session, or was used or discarded before,
// or was left alone for so long that the store dropped it.
type DraftError struct{ ID ID }

func (e *DraftError) Error() string {
	return "the new history of session " + string(e.ID) + " is not there any more; load it again"
}
