package compatibility

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"example.com/events"
	"example.com/events/internal/operator"
	"example.com/events/internal/strict"
	"example.com/events/internal/testdouble"
)

// output is the stdout of a command. It stops a server that is ready.
type output struct {
	text bytes.Buffer
	stop func()
}

func (o *output) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("ready: ")) {
		o.stop()
	}
	return o.text.Write(p)
}

// eventsd runs a command, and a server until it is ready.
func eventsd(t *testing.T, environ []string, args string) (status int, stdout string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := output{stop: stop}
	status = events.Run(ctx, strings.Fields(args), environ, strings.NewReader(""), &out, t.Output())
	return status, out.text.String()
}

// The subcommands and their flags stay, with their variables, whether they take a value, and their defaults.
func TestFlags(t *testing.T) {
	_, help := eventsd(t, nil, "help")
	var lines []string
	for _, row := range regexp.MustCompile(`(?m)^  (\w+( \w+)?)  `).FindAllStringSubmatch(help, -1) {
		lines = append(lines, row[1])
		_, help := eventsd(t, nil, "help "+row[1])
		flags := regexp.MustCompile(`(?m)^  -(\S+)( [A-Z]\S*)?(?:.*\(default (.*)\))?`)
		for _, flag := range flags.FindAllStringSubmatch(help, -1) {
			line := row[1] + " -" + flag[1]
			if flag[2] != "" {
				line += " VALUE"
			}
			variable := "EVENTSD_" + strings.ToUpper(strings.ReplaceAll(flag[1], "-", "_"))
			if regexp.MustCompile(variable + `\b`).MatchString(help) {
				line += ", " + variable
			}
			lines = append(lines, line)
			if flag[3] != "" {
				lines = append(lines, row[1]+" -"+flag[1]+" default "+flag[3])
			}
		}
	}
	golden(t, "flags.txt", lines)
}

// Exit statuses, names before the colon on stdout, the fields of JSON output, and the control API stay.
func TestOutput(t *testing.T) {
	data := filepath.Join(t.TempDir(), "events.json")
	environ := []string{"EVENTSD_ADDR=127.0.0.1:0", "EVENTSD_DATA=" + data}
	var lines []string
	for _, args := range []string{
		"serve",
		"serve -memory",
		"demo",
		"double",
		"double -- no-such-program",
		"key issue -json -email ada@example.com -name Ada",
		"key list -json",
		"key revoke key_none",
		"status",
		"check",
		"check -data testdata/flags.txt",
		"version",
		"unknown",
	} {
		status, stdout := eventsd(t, environ, args)
		lines = append(lines, fmt.Sprintf("%s: exit status %d", args, status))
		if strings.Contains(args, "-json") {
			lines = append(lines, flatten(args+": ", parse(t, stdout), "%T")...)
		}
		for _, name := range regexp.MustCompile(`(?m)^\w+:`).FindAllString(stdout, -1) {
			lines = append(lines, args+": "+name)
		}
	}
	d, _ := testdouble.New(testdouble.DefaultStart, &testdouble.ProblemList{})
	d.Wrap(events.New(events.NewStore(nil)).(testdouble.API))
	for _, operation := range d.Control(nil).Operations() {
		lines = append(lines, "control API: "+operation)
	}
	status := parse(t, string(strict.Encode(operator.Status{}))) // a running one needs a socket
	golden(t, "output.txt", append(lines, flatten("status: ", status, "%T")...))
}

// The log messages that the documents name stay, with their fields.
func TestLog(t *testing.T) {
	documents := strings.Join(slices.Collect(maps.Values(read(t, "../../docs/*.md"))), "")
	methods := []string{"Debug", "Info", "Warn", "Error", "logChange"}
	var lines []string
	for _, pattern := range []string{"../../*.go", "../../internal/*/*.go"} {
		for name, text := range read(t, pattern) {
			file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
			if err != nil {
				t.Fatal(err)
			}
			for node := range ast.Preorder(file) {
				call, isCall := node.(*ast.CallExpr)
				if !isCall || len(call.Args) == 0 {
					continue
				}
				method, isMethod := call.Fun.(*ast.SelectorExpr)
				message, err := strconv.Unquote(types.ExprString(call.Args[0]))
				if err != nil || !isMethod || !slices.Contains(methods, method.Sel.Name) ||
					!strings.Contains(documents, "`"+message+"`") {
					continue
				}
				lines = append(lines, message)
				for field := range slices.Chunk(call.Args[1:], 2) { // name and value
					lines = append(lines, message+": "+types.ExprString(field[0]))
				}
			}
		}
	}
	golden(t, "log.txt", lines)
}
