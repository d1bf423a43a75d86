//go:build darwin || linux

package recordfile

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var killRounds = flag.Int("kill.rounds", 36, "how many processes TestKill kills")

// The test binary is also the processes that are killed or hold a lock.
func TestMain(m *testing.M) {
	mode, args, _ := strings.Cut(os.Getenv("RECORDFILE_CHILD"), " ")
	children := map[string]func(args []string) error{"write": childWrite, "hold": childHold}
	if child := children[mode]; child != nil {
		if err := child(strings.Split(args, " ")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child starts this test binary as another process.
func child(t *testing.T, args ...any) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	exe, err := os.Executable()
	ok(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "RECORDFILE_CHILD="+strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd, bufio.NewScanner(out)
}

// numbered is commit i of those of a size: its text can be checked whole.
func numbered(i, size int) string {
	return fmt.Sprintf(`{"i":%d,"x":"%s"}`, i, strings.Repeat(string(rune('a'+i%26)), size+i%7))
}

// childWrite appends for ever and says after each commit which one was durable.
func childWrite(args []string) error {
	size, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	i := 0
	f, err := Open(args[0], options, func(l Line) error {
		if l.Records != "" {
			i++
		}
		return nil
	})
	if err != nil {
		return err
	}
	if f.data == nil {
		err = f.Rewrite(seq())
	} else {
		err = f.Settle()
	}
	for ; err == nil; i++ {
		fmt.Println(i)
		err = f.Append([]byte(numbered(i, size)))
	}
	return err
}

// Writers are killed at any moment; what they said was durable has to be there.
func TestKill(t *testing.T) {
	t.Parallel()
	rounds := *killRounds
	if testing.Short() {
		rounds = min(rounds, 12)
	}
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 6))
	kills, torn, commits := 0, 0, 0
	for _, size := range []int{300, 60_000, 3_000_000} {
		path := filepath.Join(t.TempDir(), "events.json")
		for range rounds / 3 {
			cmd, out := child(t, "write", path, size)
			if !out.Scan() {
				t.Fatal("the writer did not start")
			}
			answered, _ := strconv.Atoi(out.Text())
			most := []int{2, 5, 25}[rng.IntN(3)]
			timer := time.AfterFunc(time.Duration(rng.IntN(most*1000))*time.Microsecond,
				func() { _ = cmd.Process.Kill() })
			for out.Scan() {
				answered, _ = strconv.Atoi(out.Text())
			}
			timer.Stop()
			_ = cmd.Wait()
			kills++
			i := 0
			o := options
			o.Logger = logTo(func(string) { torn++ })
			f, err := Open(path, o, func(l Line) error {
				if l.Records != "" {
					if l.Records != numbered(i, size) {
						return fmt.Errorf("commit %d is not whole", i)
					}
					i++
				}
				return nil
			})
			ok(t, err)
			if i != answered && i != answered+1 {
				t.Fatalf("%d commits were durable, %d were found", answered, i)
			}
			commits = i
			if f.Size() > 200<<20 {
				ok(t, f.Rewrite(seq()))
				ok(t, f.Close())
				ok(t, os.Remove(path))
				continue
			}
			ok(t, f.Settle())
			ok(t, f.Close())
		}
		t.Logf("%d bytes: %d commits after the last kill", size, commits)
	}
	t.Logf("%d writers were killed, %d of them in the middle of a write; no answered commit was lost", kills,
		torn)
	if rounds >= 300 && torn == 0 {
		t.Error("no write was torn: the kills test nothing but the list of commits")
	}
}

// childHold holds the lock until it is killed.
func childHold(args []string) error {
	_, err := Open(args[0], options, ignore)
	fmt.Println("open")
	_, _ = io.ReadAll(os.Stdin)
	if err == nil {
		time.Sleep(time.Minute)
	}
	return err
}

func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	path := create(t, []string{"1"})
	cmd, out := child(t, "hold", path)
	if !out.Scan() {
		t.Fatal("the other process did not open the file")
	}
	_, err := osFS{}.Lock(path)
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint("process ", cmd.Process.Pid)) {
		t.Errorf("Lock = %v, want ErrLocked by process %d", err, cmd.Process.Pid)
	}
	if _, err := Read(path, options, ignore); err != nil {
		t.Errorf("Read = %v", err)
	}
	ok(t, cmd.Process.Signal(syscall.SIGKILL))
	_ = cmd.Wait()
	f, commits := open(t, path)
	if !slices.Equal(commits, []string{"1", ""}) {
		t.Errorf("commits %q", commits)
	}
	ok(t, f.Close())
}

// What the real file system says when things are not as they should be.
func TestRealFileSystem(t *testing.T) {
	dir := t.TempDir()
	make := func(path string) (handle, error) {
		f := File{Options: options.withDefaults()}
		return f.create(path, (*bufio.Writer).Flush)
	}
	path := filepath.Join(dir, "events.json")
	ok(t, os.MkdirAll(filepath.Join(dir, "full", "folder"), 0o700))
	if _, err := make(filepath.Join(dir, "full")); err == nil {
		t.Error("a file was made in the place of a folder")
	}
	if _, err := make(filepath.Join(dir, "none", "f")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file in no folder: %v", err)
	}
	ok(t, syscall.Mkfifo(path, 0o600))
	if _, err := Read(path, options, ignore); err == nil ||
		!strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("Read of a pipe = %v", err)
	}
	f, err := make(filepath.Join(dir, "f"))
	ok(t, err)
	ok(t, f.Close())
	if err := lockFile(f.(*os.File)); err == nil {
		t.Error("lock of a closed file")
	}
	t.Run("no working folder", func(t *testing.T) {
		gone := t.TempDir()
		t.Chdir(gone)
		ok(t, os.Remove(gone))
		if _, _, err := tryOpen(t, "events.json"); err == nil {
			t.Error("Open in a folder that is gone")
		}
	})
}
