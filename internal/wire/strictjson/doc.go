// Package strictjson reads JSON requests strictly: it distinguishes an absent member from null, a
// name given twice from a name given once, and "cwd" from "CWD". It reports everything that is
// wrong with a request as violations, so that one response can list all mistakes. It knows nothing
// about ACP.
//
//   - [ParseObject] returns an [Object], whose members are read by type with the methods of
//     [Field]. [Violations] collects what is wrong with them.
//   - [Check] walks a whole value and reports duplicate names, and names that differ from a known
//     name only in case.
//   - [Take] and [Remove] remove a member of an object, [Set] sets one. All other bytes stay as they
//     were, for messages that are passed on. [Encode] writes our own messages.
//   - [Decode] reads into Go types what programs send to each other.
//
// JSON strings can contain lone surrogates (\ud800), which are not valid Unicode. They are a
// violation only if the string is read with [Field.Text]; in names they count as U+FFFD. Nesting is
// limited to 10,000 levels: see [ErrTooDeep].
//
// Returned slices share memory with the input, which must not change.
package strictjson
