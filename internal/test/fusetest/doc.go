// Package fusetest mounts file systems that a test answers for (Linux only). They ignore case and
// the normal form of names, and can hang. It must only be imported by tests.
package fusetest
