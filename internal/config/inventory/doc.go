// Package inventory says what can answer on this machine: which agents are installed, and which
// models the servers of the configuration offer.
package inventory
