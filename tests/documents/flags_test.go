package documents

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/events"
	"example.com/events/eventstest"
	"example.com/events/internal/httpapi"
	"example.com/events/internal/testdouble"
)

// Documents and the files for containers and proxies name only flags and variables that the program reads.
func TestFlagsAndVariables(t *testing.T) {
	flags, variables := readHelp(t)
	all := slices.Concat(slices.Collect(maps.Values(flags))...)
	variable := regexp.MustCompile(`EVENTSD_\w+`)
	quoted := regexp.MustCompile("`-([a-z][a-z-]*)")
	command := regexp.MustCompile("\\beventsd((?: [a-z]+)*)( -[^|;&)\n`]*)")
	user := regexp.MustCompile(`-[a-z] eventsd\b`)
	given := regexp.MustCompile(` -([a-z][a-z-]*)`)
	for _, pattern := range []string{"*.md", "docs/*", "*.yaml", "examples/*/*.yaml", "Dockerfile"} {
		files, err := filepath.Glob("../../" + pattern)
		if err != nil || files == nil {
			t.Errorf("Glob(%s): got no file, %v, want one", pattern, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.ReplaceAll(string(data), "\\\n", "")
			text = user.ReplaceAllString(text, "")
			for _, name := range variable.FindAllString(text, -1) {
				if !slices.Contains(variables, name) {
					t.Errorf("%s: got the variable %s, want one of %s", file, name, variables)
				}
			}
			for _, match := range quoted.FindAllStringSubmatch(text, -1) {
				if !slices.Contains(all, match[1]) {
					t.Errorf("%s: got the flag -%s, want one of %s", file, match[1], all)
				}
			}
			for _, match := range command.FindAllStringSubmatch(text, -1) {
				line, _, _ := strings.Cut(match[2], " -- ") // before the command of a double
				known, found := flags[cmp.Or(strings.TrimSpace(match[1]), "serve")]
				if !found {
					continue // another program, after EVENTSD=…/eventsd
				}
				for _, name := range given.FindAllStringSubmatch(line, -1) {
					if !slices.Contains(known, name[1]) {
						t.Errorf("%s: %s: got the flag -%s, want one of %s", file, match[0], name[1], known)
					}
				}
			}
		}
	}
}

// Help, documents, types and package eventstest have each kind of problem.
func TestProblemKinds(t *testing.T) {
	constants := []string{eventstest.UnknownRoute, eventstest.UnsafeRetry, eventstest.UnusedFault}
	kinds := slices.Sorted(maps.Keys(testdouble.Kinds))
	if !slices.Equal(constants, kinds) {
		t.Errorf("constants of eventstest: got %s, want %s", constants, kinds)
	}
	for file, text := range map[string]string{
		"eventsd help double":        help(t, "double"),
		"docs/double.md":             read(t, "docs/double.md"),
		"eventstest/eventstest.go":   read(t, "eventstest/eventstest.go"),
		"examples/node/double.d.cts": read(t, "examples/node/double.d.cts"),
	} {
		for _, kind := range kinds {
			if !strings.Contains(text, kind) {
				t.Errorf("%s: got no %s, want it", file, kind)
			}
		}
	}
}

// The table of functions in double-reference.md has those of the helpers and of package eventstest, and no
// others.
func TestFunctions(t *testing.T) {
	table := read(t, "docs/double-reference.md")
	table, _, _ = strings.Cut(table, "## Faults")
	known := []string{"New"}
	for file, pattern := range map[string]string{
		"examples/node/double.d.cts": `(?m)^(?:  |export function )(\w+)\(`,
		"examples/python/double.py":  `(?m)^(?:class|    def|def) ([A-Za-z]\w*)\(?`,
	} {
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(read(t, file), -1) {
			known = append(known, match[1])
		}
	}
	for _, server := range []reflect.Type{
		reflect.TypeFor[*eventstest.Server](), reflect.TypeFor[*eventstest.InjectedFault](),
	} {
		for method := range server.Methods() {
			known = append(known, method.Name)
		}
	}
	for _, name := range known {
		if !strings.Contains(table, name+"(") {
			t.Errorf("double-reference.md: got no %s( in the table, want it", name)
		}
	}
	for method := range reflect.TypeFor[*events.Store]().Methods() {
		known = append(known, method.Name)
	}
	for _, match := range regexp.MustCompile(`(\w+)\(`).FindAllStringSubmatch(table, -1) {
		if !slices.Contains(known, match[1]) {
			t.Errorf("double-reference.md: got %s( in the table, want one of %s", match[1], known)
		}
	}
}

// The table of limits in operate.md has those of the servers.
func TestLimits(t *testing.T) {
	document, err := os.ReadFile("../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	s := httpapi.NewServer(nil)
	for name, want := range map[string]string{
		"request headers":                          fmt.Sprint(s.MaxHeaderBytes>>10, " KiB,"),
		"time to read the headers":                 fmt.Sprint(s.ReadHeaderTimeout.Seconds(), " s |"),
		"time to read a request":                   fmt.Sprint(s.ReadTimeout.Seconds(), " s |"),
		"time to write a response, once it begins": fmt.Sprint(s.WriteTimeout.Seconds(), " s |"),
		"idle connection":                          fmt.Sprint(s.IdleTimeout.Seconds(), " s |"),
	} {
		if row := "| " + name + " | " + want; !strings.Contains(string(document), row) {
			t.Errorf("operate.md: got no row %s, want it", row)
		}
	}
}

// readHelp returns the flags of each subcommand and the environment variables of all, from their help. It
// either says that each flag has a variable, or names the only one.
func readHelp(t *testing.T) (flags map[string][]string, variables []string) {
	t.Helper()
	flags = map[string][]string{}
	flag := regexp.MustCompile(`(?m)^  -([a-z-]+)`)
	variable := regexp.MustCompile(`EVENTSD_\w+`)
	for line := range strings.Lines(help(t)) {
		subcommand, _, _ := strings.Cut(strings.TrimPrefix(line, "  "), "  ")
		if !strings.HasPrefix(line, "  ") {
			continue
		}
		text := help(t, strings.Fields(subcommand)...)
		variables = append(variables, variable.FindAllString(text, -1)...)
		for _, match := range flag.FindAllStringSubmatch(text, -1) {
			flags[subcommand] = append(flags[subcommand], match[1])
		}
	}
	slices.Sort(variables)
	return flags, slices.Compact(variables)
}

// help returns the output of eventsd help with some arguments.
func help(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status := events.Run(t.Context(), append([]string{"help"}, args...), nil, nil, &stdout, &stderr)
	if status != 0 {
		t.Fatalf("eventsd help %s: got %d %s, want 0", args, status, &stderr)
	}
	return stdout.String()
}
