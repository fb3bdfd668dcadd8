// Package rules decides what all stores of this module decide alike: what an import changes, which
// session keeps a state key, what a restored copy replaces, where a list begins. It works on plain
// structs. The stores read and write the rows.
package rules
