// Package bench benchmarks the built program as its users start it.
//
//	make bench
//	go test ./bench -run '^$' -bench ColdStart
//	go test ./bench -run '^$' -bench 'LargeStore|Load|Fork'
//	go test ./bench -run '^$' -bench Cancel -benchtime 500x     # a better 99th percentile
//
// Each benchmark builds the program as it is released. Times are medians in milliseconds. A program
// that echoes one line (bench/echo) is measured in turn with ours, so that ratios are comparable
// between machines. bench/flood is the adapter with a backend that only streams.
package bench
