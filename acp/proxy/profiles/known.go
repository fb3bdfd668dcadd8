package profiles

import (
	_ "embed"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/internal/text"
)

//go:embed known.txt
var table string

// Known returns the profiles of the known agents, sorted by name.
func Known() []Profile { return slices.Clone(readTable()) }

// readTable reads the table when it is needed, to keep the start of the program fast.
var readTable = sync.OnceValue(func() (all []Profile) {
	for line := range strings.Lines(table) {
		name, value := text.CutWord(strings.TrimSpace(line))
		switch {
		case name == "" || name[0] == '#':
		case line[0] != '\t':
			all = append(all, Profile{Name: name})
		default:
			all[len(all)-1].set(name, value)
		}
	}
	return all
})

// set sets a field, such as Start.Command, or adds to it.
func (p *Profile) set(field, value string) {
	v := reflect.ValueOf(p).Elem()
	for name := range strings.SplitSeq(field, ".") {
		v = v.FieldByName(name)
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		n, _ := strconv.Atoi(value)
		v.SetInt(int64(n))
	case reflect.Slice: // clipped, because callers add to it
		words := append(v.Interface().([]string), strings.Fields(value)...)
		v.Set(reflect.ValueOf(slices.Clip(words)))
	default:
		v.SetString(strings.TrimSpace(v.String() + " " + value))
	}
}
