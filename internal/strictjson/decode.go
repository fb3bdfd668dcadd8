package strictjson

import "github.com/go-json-experiment/json"

// Decode decodes a value that another program wrote, as [encoding/json.Unmarshal] does, except that
// a name matches only if it is spelled exactly so, as it does for the program that the value is
// for. If a name is given twice, the last one counts. It stops at the first member of another type.
func Decode(raw []byte, to any) error { return json.Unmarshal(raw, to, lenientJSON) }

// lenientJSON accepts what programs send to each other.
var lenientJSON = json.JoinOptions(lenient...)
