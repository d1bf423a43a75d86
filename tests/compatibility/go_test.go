package compatibility

import (
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"example.com/events"
	_ "example.com/events/eventstest" // so that its changes run this test again
)

// The exported names of the two packages stay, with their types, JSON names and values.
func TestGoAPI(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the packages if they aren't in the cache")
	}
	const list = `{{if .Export}}{{.ImportPath}} {{.Export}}{{end}}`
	text, err := exec.Command("go", "list", "-deps", "-export", "-f", list, "../../eventstest").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	files := map[string]string{} // compiled packages by import path
	for line := range strings.Lines(string(text)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	compiled := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(files[path])
	})
	var lines []string
	for _, path := range []string{"example.com/events", "example.com/events/eventstest"} {
		pkg, err := compiled.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range pkg.Scope().Names() {
			if object := pkg.Scope().Lookup(name); object.Exported() {
				lines = append(lines, describe(object)...)
			}
		}
	}
	golden(t, "go.txt", lines)
}

// The rules of stored fields stay as long as the format of the data file does. Otherwise, an older program
// would open the file and refuse its own dump.
func TestStoredRules(t *testing.T) {
	_, version := eventsd(t, nil, "version")
	_, format, _ := strings.Cut(strings.TrimSpace(version), "format: ")
	var lines []string
	for _, record := range []any{events.User{}, events.Key{}, events.Event{}, events.Guest{}} {
		for field := range reflect.TypeOf(record).Fields() {
			lines = append(lines, fmt.Sprintf("%T.%s: %s", record, field.Name, field.Tag.Get("schema")))
		}
	}
	golden(t, "rules-"+strings.ReplaceAll(format, "/", "-")+".txt", lines)
}

// describe returns lines for an exported name and, if it is a type, for its fields and methods.
func describe(object types.Object) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	name := object.Pkg().Name() + "." + object.Name()
	switch object := object.(type) {
	case *types.Const:
		add("const %s %s = %s", name, typeName(object.Type()), object.Val().ExactString())
		return lines
	case *types.Var:
		add("var %s %s", name, typeName(object.Type()))
		return lines
	case *types.Func:
		add("func %s%s", name, signature(object))
		return lines
	}
	fields, isStruct := object.Type().Underlying().(*types.Struct)
	if !isStruct {
		add("type %s", name) // its underlying type may have unexported names
	} else {
		add("type %s struct", name)
		for i := range fields.NumFields() {
			if f := fields.Field(i); f.Exported() {
				tag := reflect.StructTag(fields.Tag(i)).Get("json") // a schema tag has only rules
				add("field %s.%s %s %q", name, f.Name(), typeName(f.Type()), tag)
			}
		}
	}
	for mark, typ := range map[string]types.Type{"": object.Type(), "*": types.NewPointer(object.Type())} {
		for method := range types.NewMethodSet(typ).Methods() { // with methods of embedded fields
			if f := method.Obj().(*types.Func); f.Exported() {
				add("method (%s%s).%s%s", mark, name, f.Name(), signature(f))
			}
		}
	}
	return lines
}

// typeName returns a type with the names of packages instead of their paths.
func typeName(t types.Type) string { return types.TypeString(t, (*types.Package).Name) }

// signature returns the types of a function's parameters and results.
func signature(f *types.Func) string {
	list := func(tuple *types.Tuple) string {
		var all []string
		for v := range tuple.Variables() {
			all = append(all, typeName(v.Type()))
		}
		return "(" + strings.Join(all, ", ") + ")"
	}
	s := f.Signature()
	variadic := ""
	if s.Variadic() {
		variadic = "..."
	}
	return list(s.Params()) + variadic + " " + list(s.Results())
}
