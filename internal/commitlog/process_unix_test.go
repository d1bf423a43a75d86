//go:build unix

package commitlog

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var kills = flag.Int("kills", 6, "number of processes that TestKill kills")

const childVariable = "COMMITLOG_TEST_FILE"

// TestMain is also the process that TestKill kills.
func TestMain(m *testing.M) {
	path, size, ok := strings.Cut(os.Getenv(childVariable), " ")
	if !ok {
		debug.SetGCPercent(1000) // the heap of the crash tests is tiny
		os.Exit(m.Run())
	}
	err := appendForever(path, size)
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// numbered returns the records of commit i, of about size bytes.
func numbered(i, size int) string {
	return fmt.Sprintf(`{"i":%d,"x":"%s"}`, i, strings.Repeat(string(rune('a'+i%26)), size+i%7))
}

// appendForever appends numbered commits, and prints how many are durable.
func appendForever(path, size string) error {
	n, err := strconv.Atoi(size)
	if err != nil {
		return err
	}
	var commits []string
	l, err := Open(path, options, collect(&commits))
	for i := len(withRecords(commits)); err == nil; i++ {
		fmt.Println(i)
		err = l.Append([]byte(numbered(i, n)))
	}
	return err
}

// A process is killed at any moment. The commits that it reported as durable must be there, and at most one
// more.
func TestKill(t *testing.T) {
	t.Parallel()
	torn := 0
	for i, size := range []int{300, 60_000, 3_000_000} {
		path := filepath.Join(t.TempDir(), "events.json")
		for range (*kills + i) / 3 {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", childVariable, path, size))
			out, err := cmd.StdoutPipe()
			check(t, err)
			check(t, cmd.Start())
			lines := bufio.NewScanner(out)
			if !lines.Scan() {
				t.Fatal("the process did not start")
			}
			durable := lines.Text()
			maximum := []int{2, 5, 25}[rand.IntN(3)] * 1000
			time.AfterFunc(time.Duration(rand.IntN(maximum))*time.Microsecond, func() { cmd.Process.Kill() })
			for lines.Scan() {
				durable = lines.Text()
			}
			cmd.Wait()
			report, err := Check(path, options, ignore)
			check(t, err)
			if report.Torn != "" {
				torn++
			}
			l, commits := open(t, path)
			check(t, l.Close())
			found := withRecords(commits)
			want, _ := strconv.Atoi(durable)
			if len(found) < want {
				t.Fatalf("%d commits, %d were durable", len(found), want)
			}
			if len(found) > want+1 {
				t.Fatalf("%d commits, at most one more than the %d durable ones was begun", len(found), want)
			}
			for i, commit := range found {
				if commit != numbered(i, size) {
					t.Fatalf("commit %d of %d is wrong", i, len(found))
				}
			}
		}
	}
	t.Logf("%d processes killed, %d of them within a write", *kills, torn)
}

// The kernel writes a part of a commit when the file reaches a limit, as it does on a full disk.
func TestFileSizeLimit(t *testing.T) {
	if os.Getenv("COMMITLOG_TEST_LIMIT") == "" { // the limit is for the whole process
		cmd := exec.Command(os.Args[0], "-test.run=^TestFileSizeLimit$")
		cmd.Env = append(os.Environ(), "COMMITLOG_TEST_LIMIT=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	path := create(t, nil)
	commit := []byte(numbered(1, 100))
	var limit syscall.Rlimit
	check(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	line := len(appendLine(nil, 0, 10, commit))
	for i, room := range []int{0, 1, 2, line / 2, line - 1} { // bytes after the closing bracket
		l, commits := open(t, path)
		if got := len(withRecords(commits)); got != i {
			t.Fatalf("%d commits, want %d", got, i)
		}
		size := l.Size()
		low := limit
		low.Cur = uint64(size) + uint64(room)
		check(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &low))
		appendErr := l.Append(commit)
		rewriteErr := l.Rewrite(seq(strings.Repeat("x", int(size)+room)))
		check(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
		checkIs(t, "Append", appendErr, syscall.EFBIG)
		checkIs(t, "Rewrite", rewriteErr, syscall.EFBIG)
		check(t, l.Err())
		text := readFile(t, path)
		checkSize(t, fmt.Sprintf("file after a write with room for %d bytes", room), int64(len(text)), size)
		if !strings.HasSuffix(text, "}\n]\n") {
			t.Fatalf("room for %d bytes: the closing bracket is missing", room)
		}
		check(t, l.Append(commit))
		check(t, l.Close())
	}
}

// A rewrite keeps the mode of the file, and as root its owner.
func TestOwner(t *testing.T) {
	path := create(t, []string{"1"}, "2")
	check(t, os.Chmod(path, 0o640))
	uid := os.Getuid()
	if uid == 0 {
		uid = 12345
		check(t, os.Chown(path, uid, uid))
	}
	text := readFile(t, path)
	check(t, os.WriteFile(path, []byte(text[:len(text)-2]+",torn"), 0o640))
	l, _ := open(t, path)
	check(t, l.Rewrite(seq("2")))
	check(t, l.Close())
	saved, err := filepath.Glob(path + tornSuffix + "*")
	check(t, err)
	for _, name := range append(saved, path) {
		info, err := os.Stat(name)
		check(t, err)
		if got := info.Mode().Perm(); got != 0o640 {
			t.Errorf("%s has mode %v, want 0640", name, got)
		}
		if got := info.Sys().(*syscall.Stat_t).Uid; got != uint32(uid) {
			t.Errorf("%s has owner %d, want %d", name, got, uid)
		}
	}
	if len(saved) != 1 {
		t.Errorf("saved torn writes: %q", saved)
	}
}

func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.json")
	check(t, syscall.Mkfifo(path, 0o600))
	_, err := Check(path, options, ignore)
	checkIs(t, "Check of a pipe", err, ErrFormat)
}
