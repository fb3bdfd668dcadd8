package protocol

// Handling says what the program does with a part of the protocol.
type Handling int

const (
	Served  Handling = iota // the program knows what it means, whatever answers behind it
	Passed                  // it passes between the client and the agent unread
	Refused                 // it is not answered, not offered, or left out
)

// String returns the handling as documentation has it.
func (h Handling) String() string {
	return [...]string{"served", "passed on", "refused"}[h]
}
