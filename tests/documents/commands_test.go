//go:build unix

// Package documents tests the documents: it runs their commands and checks the flags, variables and
// limits that they name.
package documents

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var runCommands = flag.Bool("commands", false,
	"run the commands of the documents, on the ports that they name")

// TestCommands runs the commands of each document as its reader would, from top to bottom in one shell, in
// a fresh clone:
//
//	```sh            commands. A json or text block right after them has what they print, where … is any
//	                 text
//	```sh fails      commands of which the last one fails
//	```sh serve      a server, which runs until the next one or the end. It is ready once it prints a line
//	                 that begins with "ready: "
//	```sh stopped    commands for when that server is stopped
//	```sh docker     the same with Docker. They are skipped unless CI is set and a Docker daemon runs
//	```go FILE       a file that later commands need, also in another language: ```js FILE, ```py FILE
//
// Other blocks are not run. A block that only the test needs, such as a server for the commands of a task, is
// in an HTML comment, which readers don't see.
func TestCommands(t *testing.T) {
	if !*runCommands {
		t.Skip("needs -commands")
	}
	for _, document := range documents(t, "README.md", "docs/*.md") {
		t.Run(document, func(t *testing.T) {
			if document == "docs/instances.md" {
				if _, err := exec.LookPath("nginx"); err != nil {
					t.Skip("skipped: there is no nginx")
				}
			}
			dir := t.TempDir()
			clone := filepath.Join(dir, "events")
			if out, err := exec.Command("git", "clone", "-q", "../..", clone).CombinedOutput(); err != nil {
				t.Fatalf("git clone: got %v, want a clone\n%s", err, out)
			}
			text, err := os.ReadFile(filepath.Join(clone, document))
			if err != nil {
				t.Fatal(err)
			}
			blocks := parse(string(text))
			if blocks == nil {
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, "bash", "-c", script(document, blocks))
			cmd.Dir = clone
			cmd.Env = append(os.Environ(), "OUT="+dir)
			cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // bash stops its server
			cmd.WaitDelay = 10 * time.Second
			out, err := cmd.CombinedOutput()
			t.Logf("%s", out)
			if err != nil {
				t.Fatalf("the last command above: got %v, want no error", err)
			}
			compare(t, document, dir, blocks)
		})
	}
}

// On macOS, sed -i needs a suffix for the name of a copy, as in sed -i.bak.
func TestSedSuffix(t *testing.T) {
	sed := regexp.MustCompile(`\bsed -i\s.*`)
	for _, document := range documents(t, "*.md", "docs/*.md") {
		if command := sed.FindString(read(t, document)); command != "" {
			t.Errorf("%s: got %s, want sed with -i.bak, or a new file", document, command)
		}
	}
}

// documents returns the paths of the documents that match patterns, below the root of the repository.
func documents(t *testing.T, patterns ...string) (paths []string) {
	t.Helper()
	for _, pattern := range patterns {
		matches, err := fs.Glob(os.DirFS("../.."), pattern)
		if err != nil || matches == nil {
			t.Fatalf("Glob(%s): got %v, %v, want documents", pattern, matches, err)
		}
		paths = append(paths, matches...)
	}
	return paths
}

// A block is a code block of a document.
type block struct {
	line       int
	info, text string
}

// parse returns the code blocks of a document, also indented ones in lists.
func parse(document string) (blocks []block) {
	open, indent := false, ""
	for i, line := range strings.Split(document, "\n") {
		text := strings.TrimLeft(line, " ")
		info, fence := strings.CutPrefix(text, "```")
		switch {
		case fence && !open:
			blocks = append(blocks, block{line: i + 1, info: info})
			indent = strings.TrimSuffix(line, text)
			open = true
		case fence:
			open = false
		case open:
			blocks[len(blocks)-1].text += strings.TrimPrefix(line, indent) + "\n"
		}
	}
	return blocks
}

// prelude is the beginning of each script.
const prelude = `set -euo pipefail
server= docker=
stop_server() {
	[ -z "$server" ] || kill -- "-$server" || true
	while [ -n "$server" ] && kill -0 -- "-$server" 2>/dev/null; do sleep 0.05; done
	server=
}
trap 'stop_server; [ -z "$docker" ] || docker rm -fv events >/dev/null' EXIT
start_server() {
	stop_server
	: >"$OUT/server"
	set -m # a process group, because go run doesn't pass signals on
	bash -euo pipefail -c "$1" >"$OUT/server" &
	server=$!
	disown # so that commands can wait for their own jobs
	set +m
	until grep -qs '^ready: ' "$OUT/server"; do kill -0 "$server"; sleep 0.1; done
}
`

// script returns the blocks as a script. The output of each goes to the file $OUT/LINE.
func script(document string, blocks []block) string {
	var s strings.Builder
	s.WriteString(prelude)
	for _, b := range blocks {
		kind, rest, _ := strings.Cut(b.info, " ")
		file := slices.Contains([]string{"go", "js", "py"}, kind) && rest != ""
		if kind != "sh" && !file {
			continue
		}
		fmt.Fprintf(&s, "echo %s:%d\n", document, b.line)
		output := fmt.Sprintf(`"$OUT/%d"`, b.line)
		switch {
		case file:
			fmt.Fprintf(&s, "cat >%s <<'END OF BLOCK'\n%sEND OF BLOCK\n", rest, b.text)
		case rest == "":
			fmt.Fprintf(&s, "{\n%s} >%s\n", b.text, output)
		case rest == "fails":
			fmt.Fprintf(&s, "if {\n%s} >%s; then echo it must fail; exit 1; fi\n", b.text, output)
		case rest == "serve":
			fmt.Fprintf(&s, "start_server %s\n", quote(b.text))
		case rest == "stopped":
			fmt.Fprintf(&s, "stop_server\n{\n%s} >%s\n", b.text, output)
		case rest == "docker":
			fmt.Fprintf(&s, "if [ -n \"${CI-}\" ] && [ -z \"${ALONE-}\" ] &&\n"+
				"docker info >/dev/null 2>&1; then\n"+
				"stop_server; docker=1\n%s"+
				"else echo skipped: Docker; fi\n", b.text)
		default:
			fmt.Fprintf(&s, "echo unknown kind of block: %s; exit 1\n", b.info)
		}
	}
	return s.String()
}

// quote returns a text as one word of a shell command.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// compare compares the outputs of blocks with the blocks that show them.
func compare(t *testing.T, document, dir string, blocks []block) {
	for i, b := range blocks[1:] {
		command, _, _ := strings.Cut(blocks[i].info, " ")
		if command != "sh" || b.info != "json" && b.info != "text" {
			continue
		}
		out, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(blocks[i].line)))
		if err != nil {
			t.Error(err)
		}
		if !matches(b.text, string(out)) {
			t.Errorf("%s:%d: the commands above: got\n%s\nwant\n%s", document, b.line, out, b.text)
		}
	}
}

// matches reports whether an output is as a document shows it, apart from white space.
func matches(want, got string) bool {
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	want, got = squeeze(want), squeeze(got)
	if strings.HasPrefix(want, "{") || strings.HasPrefix(want, "[") { // JSON
		tight := regexp.MustCompile(`\s*([][{},:])\s*`)
		want, got = tight.ReplaceAllString(want, "$1"), tight.ReplaceAllString(got, "$1")
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*")
	return regexp.MustCompile("^" + pattern + "$").MatchString(got)
}
