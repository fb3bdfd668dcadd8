package gitignore

import (
	"fmt"
	"testing"
)

// typical is the .gitignore of a web application, as the usual generators write it.
const typical = `# dependencies
/node_modules
/.pnp
.pnp.js
.yarn/*
!.yarn/patches
!.yarn/plugins
# testing
/coverage
*.lcov
.nyc_output
# build
/.next/
/out/
/build
dist/
*.tsbuildinfo
next-env.d.ts
# misc
.DS_Store
*.pem
*~
*.sw[op]
Thumbs.db
# logs
logs
*.log
npm-debug.log*
yarn-debug.log*
report.[0-9]*.[0-9]*.[0-9]*.[0-9]*.json
# environment
.env
.env.*
!.env.example
/docs/**/generated/
tmp*
`

// BenchmarkMatch judges one file four directories deep that no rule names, the common case.
func BenchmarkMatch(b *testing.B) {
	m := NewMatcher(Parse([]byte(typical)), Parse([]byte("*.bak\n")))
	for _, name := range []string{"src", "components", "forms", "inputs"} {
		m = m.Enter(name, nil)
	}
	names := make([]string, 100)
	for i := range names {
		names[i] = fmt.Sprintf("text-input-%d.tsx", i)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if m.Match(names[i%len(names)], File) != Undecided {
			b.Fatal("a rule names it")
		}
		i++
	}
}

// BenchmarkParse parses a typical file.
func BenchmarkParse(b *testing.B) {
	data := []byte(typical)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		Parse(data)
	}
}
