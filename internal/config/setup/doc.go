// Package setup is the wizard that writes the configuration file: it asks what should answer and
// which folders belong together, shows how the file changes, and prints what to add to an editor.
//
//   - setup.go: the questions, and the file.
//   - answer.go: the agents and models to choose from.
//   - editors.go: what to add to each editor.
package setup
