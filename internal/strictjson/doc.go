// Package strict reads JSON by the letter: it tells an absent member from a null
// one, a name given twice from a name given once, and "cwd" from "CWD". What it
// finds wrong it says as violations, so that a request can be refused with all
// of its mistakes named. It knows nothing of ACP.
//
// Three things are here:
//
//   - [Check] walks a whole value and reports names that are given twice, anywhere, and
//     names that equal a known one but for case, where a [Shape] knows the
//     names (clause W2).
//   - [ParseObject] gives an [Object], and its fields ([Field]) are read by type:
//     [Field.Text], [Field.Texts], [Field.Items], [Field.Object].
//   - [Take] and [Put] remove and set one member of an object and leave every
//     other member as the bytes that were sent, for messages that only pass
//     through.
//
// Strings are Unicode text, but JSON can write a lone surrogate (\ud800), which is none. That
// is an error only where a Text is read ([violation.Encoding]); elsewhere it passes, and
// in a name it counts as U+FFFD. Nesting is limited to 10,000 levels.
//
// Slices that are returned share memory with the input, which must not change.
package strictjson
