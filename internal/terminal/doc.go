// Package terminal has what a person sees and types on a terminal: the answers of an agent,
// questions, and a list of sessions to choose from. It knows nothing of stores and commands.
//
//   - width.go: how wide a terminal and a text are; cutting and wrapping.
//   - table.go: the tables that commands print; Say and Item in width.go print their paragraphs.
//   - page.go, updates.go, calls.go, markdown.go: what is shown of a turn.
//   - printer.go: a turn as it goes on, with requests for permission.
//   - progress.go: what a command does now.
//   - prompt.go, reader.go: lines that the user types, and what is piped.
//   - qr.go: a link to scan.
//   - screen_*.go, keys.go: a terminal as a whole page, and each key as it is typed.
//   - picker.go: choosing a session, and continuing it.
//
// All texts are made harmless before they are written: what an agent or a stored session says never
// reaches the terminal as an escape sequence.
package terminal
