//go:build unix

package commitlog

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

var kills = flag.Int("kills", 6, "number of processes that TestKill kills")

// Variables of the process that TestKill kills.
const (
	pathVariable = "COMMITLOG_TEST_FILE"
	sizeVariable = "COMMITLOG_TEST_SIZE"
)

// TestMain is also the process that TestKill kills.
func TestMain(m *testing.M) {
	path := os.Getenv(pathVariable)
	if path == "" {
		debug.SetGCPercent(1000) // the heap of the crash tests is tiny
		os.Exit(m.Run())
	}
	err := appendForever(path, os.Getenv(sizeVariable))
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
			cmd.Env = append(os.Environ(), pathVariable+"="+path, fmt.Sprint(sizeVariable, "=", size))
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.StdoutPipe()
			check(t, err)
			check(t, cmd.Start())
			lines := bufio.NewScanner(out)
			if !lines.Scan() {
				cmd.Wait()
				t.Fatalf("stdout of the process: got nothing and %s, want a number", &stderr)
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
				t.Fatalf("commits: got %d, want %d, which were durable", len(found), want)
			}
			if len(found) > want+1 {
				t.Fatalf("commits: got %d, want at most one more than the %d durable ones", len(found), want)
			}
			for i, commit := range found {
				if commit != numbered(i, size) {
					t.Fatalf("commit %d of %d: got %.40s, want %.40s",
						i, len(found), commit, numbered(i, size))
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
			t.Errorf("the same test with a limit: got %v, want nil:\n%s", err, out)
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
			t.Fatalf("commits: got %d, want %d", got, i)
		}
		size := l.Size()
		low := limit
		setLimit(&low.Cur, size+int64(room))
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
			t.Fatalf("end of the file after a write with room for %d bytes: got %q, want a bracket",
				room, text[len(text)-9:])
		}
		check(t, l.Append(commit))
		check(t, l.Close())
	}
}

// setLimit sets a limit, whose type depends on the system.
func setLimit[T int64 | uint64](limit *T, n int64) { *limit = T(n) }

// appearFS lets the data file appear just before a new one gets its name.
type appearFS struct {
	osFS
	appear func()
}

func (f appearFS) Replace(tmp, old file, path string) (file, error) {
	f.appear()
	return f.osFS.Replace(tmp, old, path)
}

// A first start never replaces a file, even if another process has just created it, which is possible if
// someone removes the lock file.
func TestFirstStartOpensNewFile(t *testing.T) {
	other := create(t, []string{"1"})
	path := filepath.Join(t.TempDir(), "events.json")
	o := options
	o.fs = appearFS{appear: func() { check(t, os.Link(other, path)) }}
	var commits []string
	l, err := Open(path, o, collect(&commits))
	check(t, err)
	if !slices.Equal(commits, []string{"1", ""}) {
		t.Errorf("commits: got %q, want the other process's", commits)
	}
	check(t, l.Append([]byte("2")))
	check(t, l.Close())
	_, err = os.Stat(path + tmpSuffix)
	checkIs(t, "Stat of FILE.tmp", err, os.ErrNotExist)
}

// A second process can't open the file by another name or with another lock file, nor after a rewrite.
func TestOtherLockFile(t *testing.T) {
	path := create(t, []string{"1"})
	l, _ := open(t, path)
	link := filepath.Join(t.TempDir(), "link.json")
	check(t, os.Link(path, link))
	for _, step := range []struct {
		name, path string
		do         func() error
	}{
		{"a hard link", link, func() error { return nil }},
		{"a removed lock file", path, func() error { return os.Remove(path + ".lock") }},
		{"a removed lock file after a rewrite", path, func() error {
			return errors.Join(os.Remove(path+".lock"), l.Rewrite(seq("2")))
		}},
	} {
		check(t, step.do())
		synctest.Test(t, func(t *testing.T) {
			_, err := Open(step.path, options, ignore)
			checkIs(t, step.name+": Open", err, ErrLocked)
			checkSays(t, step.name+": Open", err, "uses another path or lock file")
		})
	}

	// A process that waits while the file is rewritten opens the new file.
	check(t, os.Remove(path+".lock"))
	synctest.Test(t, func(t *testing.T) {
		go func() {
			time.Sleep(time.Second)
			check(t, l.Rewrite(seq("3")))
			time.Sleep(time.Second)
			check(t, l.Close())
		}()
		l, commits := open(t, path)
		if !slices.Equal(commits, []string{"3", ""}) {
			t.Errorf("commits: got %q, want the rewritten ones", commits)
		}
		check(t, l.Close())
	})
}

// A rewrite keeps the mode of the file, and as root its owner. A new lock file gets them as well.
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
	check(t, os.Remove(path+".lock"))
	l, _ := open(t, path)
	check(t, l.Rewrite(seq("2")))
	check(t, l.Close())
	saved, err := filepath.Glob(path + tornSuffix + "*")
	check(t, err)
	for _, name := range append(saved, path, path+".lock") {
		info, err := os.Stat(name)
		check(t, err)
		if got := info.Mode().Perm(); got != 0o640 {
			t.Errorf("mode of %s: got %v, want 0640", name, got)
		}
		if got := info.Sys().(*syscall.Stat_t).Uid; got != uint32(uid) {
			t.Errorf("owner of %s: got %d, want %d", name, got, uid)
		}
	}
	if len(saved) != 1 {
		t.Errorf("saved torn writes: got %q, want one", saved)
	}
}

// While nobody can tell whether the file was replaced, commits are refused. Later ones succeed.
func TestUnreachable(t *testing.T) {
	path := create(t, []string{"1"})
	l, _ := open(t, path)
	dir := filepath.Dir(path)
	check(t, os.Rename(dir, dir+".moved"))
	check(t, os.WriteFile(dir, nil, 0o600))
	checkIs(t, "Append", l.Append([]byte("2")), syscall.ENOTDIR)
	check(t, os.Remove(dir))
	check(t, os.Rename(dir+".moved", dir))
	check(t, l.Append([]byte("2")))
}

func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.json")
	check(t, syscall.Mkfifo(path, 0o600))
	_, err := Check(path, options, ignore)
	checkIs(t, "Check of a pipe", err, ErrFormat)
}

// While another process replaces the file, it always has the lock of the current one. So OpenLocked never
// returns an old one, although nobody has its lock any more.
func TestOpenLockedWhileReplaced(t *testing.T) {
	path := create(t, nil)
	current, err := osFS{}.OpenLocked(path)
	check(t, err)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for err == nil {
			select {
			case <-stop:
				return
			default:
			}
			var tmp file
			tmp, err = osFS{}.Create(path+tmpSuffix, nil)
			if err == nil {
				current, err = osFS{}.Replace(tmp, current, path)
			}
		}
	}()
	for range 20_000 {
		f, err := osFS{}.OpenLocked(path)
		if err == nil {
			f.Close()
		}
		if !errors.Is(err, ErrLocked) {
			t.Errorf("OpenLocked of a file that is replaced: got %v, want %v", err, ErrLocked)
			break
		}
	}
	close(stop)
	<-stopped
	check(t, err)
	check(t, current.Close())
}

// foreignFile is the FileInfo of a file that belongs to root and that everyone can read.
type foreignFile struct{ fs.FileInfo }

func (foreignFile) Mode() fs.FileMode { return 0o644 }
func (foreignFile) Sys() any          { return &syscall.Stat_t{} }

// A file that can't be given to the owner of the data file is for nobody else to read.
func TestForeignOwner(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root can change owners")
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "events.json.lock"))
	check(t, err)
	defer f.Close()
	check(t, f.Chmod(0o600))
	copyOwner(f, foreignFile{})
	info, err := f.Stat()
	check(t, err)
	if got := info.Mode(); got != 0o600 {
		t.Errorf("mode of a file of another owner: got %v, want 0600", got)
	}
}

// A new name is durable: after the file was linked, its directory is synced.
func TestDirectoryIsSynced(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command("strace", "-f", "-y", "-e", "trace=fsync", "-o", trace,
		os.Args[0], "-test.run=^TestNewFile$")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Skipf("strace: %v\n%s", err, out) // not installed, or not allowed
	}
	calls := readFile(t, trace)
	if !regexp.MustCompile(`fsync\(\d+<.*/TestNewFile\d*/001>`).MatchString(calls) {
		t.Errorf("synced files: got\n%s\nwant the directory of a new file", calls)
	}
}
