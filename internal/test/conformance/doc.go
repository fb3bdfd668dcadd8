// Package conformance tests the repository itself: that docs/conformance.md marks no clause as
// built without a test, that imports follow the layers of the architecture, and that nothing
// changes state shared by the whole process.
package conformance
