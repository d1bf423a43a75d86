package documents

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/events"
)

// Documents and the files for containers and proxies set only variables that the program reads.
func TestVariables(t *testing.T) {
	known := readVariables(t)
	variable := regexp.MustCompile(`EVENTSD_\w+`)
	for _, pattern := range []string{"*.md", "docs/*", "*.yaml", "examples/*/*.yaml", "Dockerfile"} {
		files, err := filepath.Glob("../../" + pattern)
		if err != nil || files == nil {
			t.Errorf("Glob(%s): got no file, %v, want one", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range variable.FindAllString(string(text), -1) {
				if !slices.Contains(known, name) {
					t.Errorf("%s: got the variable %s, want one of %s", file, name, known)
				}
			}
		}
	}
}

// readVariables returns the environment variables of all subcommands, from their help. It either says that
// each flag has one, or names the only one.
func readVariables(t *testing.T) (variables []string) {
	t.Helper()
	flag := regexp.MustCompile(`(?m)^  -([a-z-]+)`)
	for line := range strings.Lines(help(t)) {
		subcommand, _, _ := strings.Cut(strings.TrimPrefix(line, "  "), "  ")
		if !strings.HasPrefix(line, "  ") {
			continue
		}
		text := help(t, strings.Fields(subcommand)...)
		all := strings.Contains(text, "Each flag also has an environment variable")
		for _, match := range flag.FindAllStringSubmatch(text, -1) {
			name := "EVENTSD_" + strings.ToUpper(strings.ReplaceAll(match[1], "-", "_"))
			if all || strings.Contains(text, name+" for -"+match[1]) {
				variables = append(variables, name)
			}
		}
	}
	slices.Sort(variables)
	return slices.Compact(variables)
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
