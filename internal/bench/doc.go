// Package bench holds no code, only benchmarks of the built program as its users start it.
//
//	make bench
//	go test ./bench -run '^$' -bench ColdStart
//	go test ./bench -run '^$' -bench 'LargeStore|Load|Fork'
//	go test ./bench -run '^$' -bench Cancel -benchtime 500x     # a better 99th percentile
//
// Each builds what it starts, stripped, as it is released. Times are medians in milliseconds, and
// a program that echoes one line (bench/echo) is started in turn with ours, so that a ratio says
// something on any machine. bench/flood is the adapter with a runtime that only streams.
package bench
