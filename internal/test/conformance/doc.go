// Package conformance tests the repository itself: that docs/internals/conformance.md marks no
// clause as built without a test, that imports follow the layers of the architecture, that the
// snippets in the documents compile, that child processes are started in one place, that nothing
// changes state shared by the whole process, and that what is concurrent is tested with the race
// detector.
package conformance
