package dirfd

import "strings"

// Losses is a set of what a file does not get from the one that it replaces.
type Losses uint8

// What a file may not get.
const (
	// LosesOwner means that it will belong to the user of this process.
	LosesOwner Losses = 1 << iota
	// LosesGroup means that it will belong to another group, which gets no more permissions than
	// everybody else.
	LosesGroup
	// LosesACL means that its access control list is dropped. Nobody gets more permissions.
	LosesACL
	// LosesAttributes means that some of its extended attributes are dropped.
	LosesAttributes
	// LosesLinks means that its other names (hard links) keep the old content.
	LosesLinks
)

// String describes the losses as the rest of a sentence about the file, such as "will not keep its
// owner", or "".
func (l Losses) String() string {
	var lost, all []string
	for i, name := range []string{"owner", "group", "access control list", "extended attributes"} {
		if l&(1<<i) != 0 {
			lost = append(lost, name)
		}
	}
	if len(lost) > 0 {
		all = append(all, "will not keep its "+strings.Join(lost, " and "))
	}
	if l&LosesLinks != 0 {
		all = append(all, "has other names (hard links) that keep the old content")
	}
	return strings.Join(all, " and ")
}
