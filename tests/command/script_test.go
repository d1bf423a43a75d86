//go:build unix

package command

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestScripts runs the scripts in testdata/script. A script is a list of shell commands with what they print:
//
//	# A comment says what the next commands show.
//	$ eventsd key issue -email ada@example.com     a command, which must print exactly the next lines
//	> {KEY}                                        on stdout
//	! eventsd: issued {ID} for $USER; …            on stderr
//	? 1                                            and exit with this status; without the line, with 0
//	$ eventsd serve &                              starts a server and waits until it is ready
//	> base_url: {URL}
//	> …
//	$ stop                                         ends the server; the lines are its log
//	! …
//	-- seed.json --                                the rest is files
//
// In a line, … is any text, and any number of lines if it is alone. {NAME} is a word, which becomes the
// variable $NAME of later commands and lines. $DIR is the directory of the script. A command goes on in the
// next line after a backslash.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("testdata/script: got no scripts, want some")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := &script{t: t, file: file, dir: tempDir(t)}
			s.variables = map[string]string{"DIR": s.dir}
			commands := s.writeFiles(string(text))
			for i := range commands {
				s.run(&commands[i])
			}
		})
	}
}

type script struct {
	t         *testing.T
	file, dir string
	variables map[string]string
	server    *process // newest server
}

// scriptCommand is a command with what it must print.
type scriptCommand struct {
	line           int
	comment, text  string
	stdout, stderr []string
	status         string
}

var fileHeader = regexp.MustCompile(`(?m)^-- (\S+) --\n`)

// writeFiles writes the files of a script and returns its commands.
func (s *script) writeFiles(text string) []scriptCommand {
	headers := fileHeader.FindAllStringSubmatchIndex(text, -1)
	end := len(text)
	for _, h := range slices.Backward(headers) {
		name := text[h[2]:h[3]]
		err := os.WriteFile(filepath.Join(s.dir, name), []byte(text[h[1]:end]), 0o600)
		if err != nil {
			s.t.Fatal(err)
		}
		end = h[0]
	}
	return s.parse(strings.ReplaceAll(text[:end], "\\\n", "\\\x00"))
}

func (s *script) parse(text string) (commands []scriptCommand) {
	comment, number := "", 0
	var c *scriptCommand
	for line := range strings.Lines(text) {
		number++
		prefix, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch {
		case prefix == "#":
			comment = rest
		case prefix == "$":
			command := strings.ReplaceAll(rest, "\\\x00", "\\\n")
			commands = append(commands, scriptCommand{line: number, comment: comment, text: command})
			c = &commands[len(commands)-1]
			c.status = "0"
		case prefix == ">" && c != nil:
			c.stdout = append(c.stdout, rest)
		case prefix == "!" && c != nil:
			c.stderr = append(c.stderr, rest)
		case prefix == "?" && c != nil:
			c.status = rest
		case prefix != "":
			s.t.Fatalf("%s:%d: got %s, want #, $, >, ! or ? at the beginning of a line", s.file, number, line)
		}
		number += strings.Count(line, "\x00")
	}
	return commands
}

// run runs a command and compares what it prints. A failure shows all of its output.
func (s *script) run(c *scriptCommand) {
	s.t.Helper()
	var variables []string
	for name, value := range s.variables {
		variables = append(variables, name+"="+value)
	}
	server, isServer := strings.CutSuffix(c.text, " &")
	var stdout, stderr string
	status := 0
	switch {
	case isServer:
		s.server = start(s.t, s.dir, "exec env "+server, variables...)
		stdout = s.server.stdout
	case c.text == "stop":
		status = s.server.stop(syscall.SIGTERM)
		stderr = s.server.stderr.String()
	default:
		stdout, stderr, status = run(s.t, s.dir, c.text, variables...)
	}
	problems := slices.Concat(
		s.match("stdout", stdout, c.stdout),
		s.match("stderr", stderr, c.stderr),
		s.match("status", strconv.Itoa(status), []string{c.status}))
	if secret.MatchString(stderr) {
		problems = append(problems, "stderr: got a key, want none")
	}
	if problems != nil {
		s.t.Errorf("%s:%d: %s\n$ %s\n%s\nstatus: %d\nstdout:\n%sstderr:\n%svariables: %v",
			s.file, c.line, c.comment, c.text, strings.Join(problems, "\n"), status, stdout, stderr,
			s.variables)
	}
}

// match compares the lines of an output with the wanted lines and sets the variables in them. It returns the
// first difference.
func (s *script) match(stream, output string, want []string) (problem []string) {
	got := slices.Collect(strings.Lines(output))
	skip := false // any number of lines may come before the next
	for _, line := range want {
		if line == "…" {
			skip = true
			continue
		}
		rest, found := s.find(line, got, skip)
		if !found {
			return []string{fmt.Sprintf("%s: got %q, want the line %s", stream, append(got, "")[0], line)}
		}
		got, skip = rest, false
	}
	if !skip && len(got) > 0 {
		return []string{fmt.Sprintf("%s: got %q, want no more lines", stream, got[0])}
	}
	return nil
}

// find looks for a line at the beginning of an output or, if skip is true, anywhere in it. It returns the
// lines after it.
func (s *script) find(want string, output []string, skip bool) (rest []string, found bool) {
	for i, line := range output {
		if s.matchLine(want, strings.TrimSuffix(line, "\n")) {
			return output[i+1:], true
		}
		if !skip {
			break
		}
	}
	return nil, false
}

var (
	secret   = regexp.MustCompile(`svc_live_\w`)
	spaces   = regexp.MustCompile(`[ \t]+`)
	variable = regexp.MustCompile(`\$[A-Z_]+`)
	capture  = regexp.MustCompile(`\\\{([A-Z_]+)\\\}`)
)

// matchLine reports whether a line is as wanted, apart from the amount of white space, and sets the
// variables in it.
func (s *script) matchLine(want, got string) bool {
	want = variable.ReplaceAllStringFunc(want, func(name string) string {
		value, found := s.variables[name[1:]]
		if !found {
			return name
		}
		return value
	})
	pattern := strings.ReplaceAll(regexp.QuoteMeta(spaces.ReplaceAllString(want, " ")), "…", ".*")
	names := capture.FindAllStringSubmatch(pattern, -1)
	pattern = `\A` + capture.ReplaceAllString(pattern, `([\w.:/-]+)`) + `\z`
	values := regexp.MustCompile(pattern).FindStringSubmatch(spaces.ReplaceAllString(got, " "))
	if values == nil {
		return false
	}
	for i, name := range names {
		s.variables[name[1]] = values[i+1]
	}
	return true
}
