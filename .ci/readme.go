// Command readme runs what a Markdown file tells its reader to run, from top to
// bottom in one folder:
//
//	```sh            commands, run by bash -e. A json or text block right after them
//	                 has what they print, where … stands for anything
//	```sh serve      a server, run in the background until the next one or the end.
//	                 It is ready once it prints a line that begins with "ready: "
//	```sh stopped    commands for when that server is stopped
//	```sh fails      commands that end with a status other than 0
//	```sh docker     the same with Docker. They are skipped unless CI is set and a Docker daemon runs
//	```go FILE       a file that later commands need
//	```go FILE before TEXT
//	                 what the reader puts before the line of that file that has this text
//
// Other blocks are not run. What commands leave is there for later ones, as it is for who pastes
// them into a terminal: their variables, and the folder that they have gone to.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

type block struct {
	line       int
	info, text string
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(file string) error {
	source, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	left, err := os.MkdirTemp("", "readme")
	if err != nil {
		return err
	}
	defer os.RemoveAll(left)
	stop := func() {}
	defer func() { stop() }()
	all := blocks(string(source))
	ran := 0
	for i, b := range all {
		switch b.info {
		case "sh serve":
			stop()
			started, err := serve(b)
			if err != nil {
				return fmt.Errorf("%s:%d: %w", file, b.line, err)
			}
			stop = started
		case "sh", "sh stopped", "sh fails", "sh docker":
			if b.info == "sh stopped" || b.info == "sh docker" {
				stop()
			}
			if b.info == "sh docker" && !useDocker() {
				fmt.Printf("skipped: %s:%d, because CI is not set or no Docker daemon runs\n", file, b.line)
				continue
			}
			out, err := shell(b.text, filepath.Join(left, "env"))
			if b.info == "sh fails" {
				if err == nil {
					return fmt.Errorf("%s:%d: it did not fail\n%s", file, b.line, b.text)
				}
				err = nil
			}
			if err != nil {
				return fmt.Errorf("%s:%d: %w\n%s", file, b.line, err, b.text)
			}
			var want string // the block behind this one, if it holds what is printed
			if i+1 < len(all) && (all[i+1].info == "json" || all[i+1].info == "text") {
				want = all[i+1].text
			}
			if want != "" && !matches(want, out) {
				return fmt.Errorf("%s:%d: printed\n%s\nwant\n%s", file, b.line, out, want)
			}
		default:
			name, isFile := strings.CutPrefix(b.info, "go ")
			if !isFile {
				continue
			}
			if err := write(name, b.text); err != nil {
				return fmt.Errorf("%s:%d: %w", file, b.line, err)
			}
		}
		ran++
		fmt.Printf("%s:%d: ok\n", file, b.line)
	}
	if ran == 0 {
		return fmt.Errorf("%s: nothing to run", file)
	}
	return nil
}

// useDocker reports whether commands may use Docker. On a developer's machine they could meet a container of
// the same name.
func useDocker() bool {
	return os.Getenv("CI") != "" && exec.Command("docker", "info").Run() == nil
}

// blocks returns the code blocks of a Markdown text, also those in a list, which are indented.
func blocks(source string) (all []block) {
	open := false
	indent := ""
	for i, line := range strings.Split(source, "\n") {
		text := strings.TrimLeft(line, " ")
		switch fence := strings.HasPrefix(text, "```"); {
		case fence && !open:
			all = append(all, block{line: i + 1, info: strings.TrimPrefix(text, "```")})
			indent = strings.TrimSuffix(line, text)
			open = true
		case fence:
			open = false
		case open:
			all[len(all)-1].text += strings.TrimPrefix(line, indent) + "\n"
		}
	}
	return all
}

// write writes a text into FILE or, where it says "FILE before TEXT", into that file.
func write(where, text string) error {
	name, mark, inside := strings.Cut(where, " before ")
	if !inside {
		return os.WriteFile(name, []byte(text), 0o644)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	at := bytes.Index(content, []byte(mark))
	if at < 0 {
		return fmt.Errorf("%s has no line with %q", name, mark)
	}
	at = bytes.LastIndexByte(content[:at], '\n') + 1
	return os.WriteFile(name, slices.Concat(content[:at], []byte(text), content[at:]), 0o644)
}

// matches compares what was printed with what the file shows, which may be
// broken into lines and indented for its reader: JSON by its tokens.
func matches(want, got string) bool {
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	want, got = squeeze(want), squeeze(got)
	if strings.HasPrefix(want, "{") || strings.HasPrefix(want, "[") {
		tight := regexp.MustCompile(`\s*([][{},:])\s*`)
		want, got = tight.ReplaceAllString(want, "$1"), tight.ReplaceAllString(got, "$1")
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*")
	return regexp.MustCompile("^" + pattern + "$").MatchString(got)
}

// shell runs commands and returns what they print. It keeps the variables that they set in the
// file env, for the next commands, and goes to the folder in which they end.
func shell(text, env string) (string, error) {
	script := fmt.Sprintf(`set -euo pipefail
[ ! -f %[1]q ] || . %[1]q
set -a
%[2]s
set +a
declare -px | grep -v -e 'declare -[a-z]*r' > %[1]q
pwd > %[1]q.folder
`, env, text)
	cmd := exec.Command("bash", "-c", script)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%w: %s%s", err, out.String(), errs.String())
	}
	folder, err := os.ReadFile(env + ".folder")
	if err != nil {
		return "", err
	}
	return out.String(), os.Chdir(strings.TrimSuffix(string(folder), "\n"))
}

// serve starts a server, and returns once that is ready.
func serve(b block) (stop func(), err error) {
	cmd := exec.Command("bash", "-c", "set -euo pipefail\n"+b.text)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // go run does not hand signals on
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = sync.OnceFunc(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		cmd.Wait()
	})
	ready := make(chan bool, 1)
	go func() {
		for sc := bufio.NewScanner(stdout); sc.Scan(); {
			if strings.HasPrefix(sc.Text(), "ready: ") {
				ready <- true
				io.Copy(io.Discard, stdout)
			}
		}
		ready <- false
	}()
	select {
	case ok := <-ready:
		if ok {
			return stop, nil
		}
	case <-time.After(2 * time.Minute):
	}
	stop()
	return nil, fmt.Errorf("the server was not ready: %s", b.text)
}
