// Package bench benchmarks the built program as its users start it.
//
//	make bench
//	go test ./internal/test/bench -run '^$' -bench ColdStart
//	go test ./internal/test/bench -run '^$' -bench 'LargeStore|Load|Fork'
//	go test ./internal/test/bench -run '^$' -bench Cancel -benchtime 500x     # a better 99th percentile
//	make soak                                                 # ten minutes of random requests
//
// Each benchmark builds the program as it is released. Times are medians in milliseconds. The
// program in echo, which echoes one line, is measured in turn with ours, so that ratios are
// comparable between machines. The program in flood is the adapter with a backend that only
// streams.
package bench
