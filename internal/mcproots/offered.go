package mcproots

//lint:file-ignore SA1019 the SDK marks all of roots as deprecated (SEP-2577); they are followed for the clients that there are

import (
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/workspace"
)

// MaxOffered is the most entries of a client's list that are looked at.
const MaxOffered = 1000

// Offered is an entry of a client's list of roots, as it was understood.
type Offered struct {
	// URI and Name are the client's, "" if it gave none.
	URI, Name string
	// Dir is the directory, zero if there is an Err.
	Dir workspace.Dir
	// Err is why the entry is no root: an [*URIError], or [ErrNoURI].
	Err error
}

// ErrNoURI: an entry that is null or has no URI.
var ErrNoURI = errors.New("the entry has no uri")

// MoreError: a list with more entries than are looked at.
type MoreError struct {
	// Entries is how many there are.
	Entries int
}

func (e *MoreError) Error() string {
	return fmt.Sprintf("the client lists %d roots, of which the first %d are looked at", e.Entries, MaxOffered)
}

// Offers reads a client's list of roots, in its order, null entries and all (M12). Whether a directory exists is not
// asked. The error is a [*MoreError]: what is returned beside it is the beginning.
func Offers(list *mcp.ListRootsResult) ([]Offered, error) {
	if list == nil {
		return nil, nil
	}
	roots, err := list.Roots, error(nil)
	if len(roots) > MaxOffered {
		roots, err = roots[:MaxOffered], &MoreError{Entries: len(roots)}
	}
	offers := make([]Offered, 0, len(roots))
	for _, r := range roots {
		offers = append(offers, offered(r))
	}
	return offers, err
}

func offered(r *mcp.Root) Offered {
	if r == nil || r.URI == "" {
		return Offered{Err: ErrNoURI}
	}
	o := Offered{URI: r.URI, Name: r.Name}
	o.Dir, o.Err = ParseURI(r.URI)
	return o
}
