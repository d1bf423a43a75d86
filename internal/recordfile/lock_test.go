package recordfile

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// What stands at a path may belong to a data file in any spelling of the two paths, before
// either of them is there.
func TestBelongsTo(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{"data", "other"} {
		ok(t, os.Mkdir(filepath.Join(dir, folder), 0o700))
	}
	t.Chdir(dir)
	type question struct {
		data, path string
		want       bool
	}
	questions := []question{
		{"data/events.json", "data/events.json", true},
		{"data/events.json", "data/events.json.lock", true},
		{"data/events.json", "data/events.json.sock", true},
		{"data/events.json", "data/events.json.tmp", true},
		{"data/events.json", "data/events.json.torn-20270101T000000Z", true},
		{"data/events.json", filepath.Join(dir, "data", "events.json"), true},
		{"data/events.json", "./other/..//data/./events.json", true},
		{"data/events.json", "data/events.json.torn", false},
		{"data/events.json", "data/events.json.locked", false},
		{"data/events.json", "data/events.jso", false},
		{"data/events.json", "data/backup.json", false},
		{"data/events.json", "data/.lock", false},
		{"data/events.json", "other/events.json", false},
		{"data/events.json", "none/events.json", false},
		{"none/events.json", "none/events.json.lock", true},
		{"data/events.json", "", false},
		{"", "data/events.json", false},
	}
	link := "data/events.json"
	if runtime.GOOS != "windows" { // where links need rights
		for name, target := range map[string]string{
			"linked":              "data",                     // to the folder
			"link.json":           "data/events.json",         // to the file
			"chain.json":          "link.json",                // to a link to it
			"other/lock":          "../data/events.json.lock", // to what is not there yet
			"other/elsewhere":     "../other/nothing",
			"other/loop":          "loop",
			"data/seed.json":      "../other/seed.json",
			"other/absolute.json": filepath.Join(dir, "data", "events.json.tmp"),
		} {
			ok(t, os.Symlink(target, name))
		}
		link = "chain.json"
		questions = append(questions,
			question{"data/events.json", "linked/events.json", true},
			question{"linked/events.json", "data/events.json.lock", true},
			question{"link.json", "data/events.json.sock", true},
			question{"chain.json", "linked/events.json.tmp", true},
			question{"data/events.json", "chain.json", true},
			question{"data/events.json", "other/lock", true},
			question{"data/events.json", "other/absolute.json", true},
			question{"data/events.json", "other/elsewhere", false},
			question{"data/events.json", "other/loop", false},
			question{"data/events.json", "data/seed.json", false},
		)
	}
	look := func(when string) {
		for _, q := range questions {
			if got := BelongsTo(filepath.FromSlash(q.data), filepath.FromSlash(q.path)); got != q.want {
				t.Errorf("%s: BelongsTo(%q, %q) = %v, want %v", when, q.data, q.path, got, q.want)
			}
		}
	}
	look("before the file is made")
	ok(t, os.WriteFile("data/events.json", nil, 0o600))
	look("after that")
	ok(t, os.Link("data/events.json", "other/hard.json"))
	if !BelongsTo("data/events.json", "other/hard.json") {
		t.Error("a hard link to the data file does not belong to it")
	}
	want := filepath.Join(leadsTo(dir), "data", "events.json.lock")
	if got := LockPath(link); got != want {
		t.Errorf("LockPath = %q, want %q", got, want)
	}
}

// goneProcess is the id of a process that has ended.
func goneProcess(t *testing.T) int {
	t.Helper()
	exe, err := os.Executable()
	ok(t, err)
	cmd := exec.Command(exe, "-test.run=^$")
	ok(t, cmd.Run())
	return cmd.Process.Pid
}

func TestLockText(t *testing.T) {
	own := os.Getpid()
	gone := goneProcess(t)
	path := filepath.Join(t.TempDir(), "events.json")
	long := strings.Repeat("ä", maxHolder)
	for _, test := range []struct {
		text   string
		pid    int
		holder string
		isLock bool
	}{
		{"", 0, "", true},
		{"\x00\x00\x00", 0, "", true},
		{fmt.Sprintln(own), own, "", true},
		{fmt.Sprint(own), own, "", true},
		{fmt.Sprintf("%d\r\n", own), own, "", true},
		{fmt.Sprintf("%d\nstarting\n", own), own, "starting", true},
		{fmt.Sprintf("%d\noperator: /srv/a b.sock\n", own), own, "operator: /srv/a b.sock", true},
		{fmt.Sprintf("%d\nstart", own), 0, "", true}, // it is being written, or a crash cut it
		{fmt.Sprintf("%d\nstarting\n", gone), 0, "", true},
		{fmt.Sprintln(gone), 0, "", true},
		{"0\nstarting\n", 0, "", true},
		{"99999999999999999999\nstarting\n", 0, "", true}, // no process has it
		{string(lockText(own, long)), own, long[:maxHolder], true},
		{string(lockText(own, "two\nlines\x1b[31m\xff")), own, "two lines [31m?", true},
		{"999999999999999999999\n", 0, "", false},
		{"precious", 0, "", false},
		{fmt.Sprintf("%d\none\ntwo\n", own), 0, "", false},
		{fmt.Sprintf("%d\n\x1b[31m\n", own), 0, "", false},
		{fmt.Sprintf("%d\n\xff\n", own), 0, "", false},
		{fmt.Sprintf("%d\n%s\n", own, strings.Repeat("x", 2*maxHolder)), 0, "", false},
	} {
		ok(t, os.WriteFile(path+".lock", []byte(test.text), 0o600))
		f, err := os.Open(path + ".lock")
		ok(t, err)
		text, isLock := readLock(f)
		pid, holder := text.process()
		f.Close()
		if isLock != test.isLock || isLock && (pid != test.pid || holder != test.holder) {
			t.Errorf("readLock of %.60q = %d, %q, %v, want %d, %q, %v",
				test.text, pid, holder, isLock, test.pid, test.holder, test.isLock)
		}
		pid, holder = LockHolder(path)
		if pid != test.pid || holder != test.holder {
			t.Errorf("LockHolder beside %.60q = %d, %q, want %d, %q", test.text, pid, holder, test.pid, test.holder)
		}
	}
}

// A lock file says what its holder is, from the moment it is taken until it is released.
func TestHolder(t *testing.T) {
	path := create(t, []string{"1"})
	o := options
	o.Holder = "starting"
	f, err := Open(path, o, ignore)
	ok(t, err)
	want := &LockedError{File: f.Path(), PID: os.Getpid(), Holder: "starting"}
	refused := func(says string) {
		t.Helper()
		_, err := Open(path, o, ignore)
		locked, is := errors.AsType[*LockedError](err)
		if !is || *locked != *want || !errors.Is(err, ErrLocked) || err.Error() != f.Path()+": "+says {
			t.Errorf("second Open = %v, want %q", err, says)
		}
		pid, holder := LockHolder(path)
		if pid != want.PID || holder != want.Holder {
			t.Errorf("LockHolder = %d, %q, want %+v", pid, holder, want)
		}
	}
	id := os.Getpid()
	refused(fmt.Sprintf("the data file is in use by process %d", id))
	ok(t, f.SetHolder("operator: off (no\nreason)"))
	want.Holder = "operator: off (no reason)"
	refused(fmt.Sprintf("the data file is in use by process %d", id))
	ok(t, f.Settle())
	ok(t, f.Rewrite(seq("2")))
	refused(fmt.Sprintf("the data file is in use by process %d", id))
	ok(t, f.SetHolder(""))
	want.Holder = ""
	refused(fmt.Sprintf("the data file is in use by process %d", id))

	// A process that died after it had the lock is not named: the holder has not written yet who it is.
	for _, text := range []string{"", fmt.Sprintf("%d\neventsd apply\n", goneProcess(t))} {
		ok(t, os.WriteFile(path+".lock", []byte(text), 0o600))
		want.PID = 0
		refused("the data file is in use by another process")
	}
	ok(t, f.Close())
	if text := readFile(t, path+".lock"); text != "" {
		t.Errorf("after Close the lock file holds %q, and names nobody then", text)
	}
	if err := f.SetHolder("x"); err == nil {
		t.Error("SetHolder of a closed file")
	}
}

// A lock is waited for while its holder is one to wait for.
func TestWaitForLock(t *testing.T) {
	command := func(holder string) bool { return holder == "eventsd apply" }
	for name, test := range map[string]struct {
		holder  string        // that has the lock
		frees   time.Duration // when it is released; 0: never
		wait    time.Duration
		waitFor func(string) bool
		opened  bool
		took    time.Duration // about
	}{
		"no wait":              {"eventsd apply", time.Second, 0, command, false, 0},
		"a command":            {"eventsd apply", 3 * time.Second, 10 * time.Second, command, true, 3 * time.Second},
		"a long command":       {"eventsd apply", 0, 10 * time.Second, command, false, 10 * time.Second},
		"a server":             {"operator: /x.sock", 3 * time.Second, 10 * time.Second, command, false, 0},
		"nobody to wait for":   {"eventsd apply", 3 * time.Second, 10 * time.Second, nil, false, 0},
		"the caller ends it":   {"eventsd apply", 0, 10 * time.Second, counted(100), false, 2 * time.Second},
		"unknown, then free":   {"", 500 * time.Millisecond, 10 * time.Second, command, true, 500 * time.Millisecond},
		"unknown for good":     {"", 0, 10 * time.Second, command, false, time.Second},
		"unknown, short wait":  {"", 0, 100 * time.Millisecond, command, false, 100 * time.Millisecond},
		"unknown, and no wait": {"", 0, 0, command, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m, f := settled(t)
				ok(t, f.SetHolder(test.holder))
				if test.frees > 0 {
					time.AfterFunc(test.frees, func() { f.Close() })
				}
				o := on(m)
				o.Wait, o.WaitFor = test.wait, test.waitFor
				began := time.Now()
				second, err := Open(dataPath, o, ignore)
				took := time.Since(began)
				if took < test.took || took > test.took+2*lockPoll {
					t.Errorf("Open took %v, want %v", took, test.took)
				}
				if test.opened {
					ok(t, err)
					ok(t, second.Close())
				} else if locked, is := errors.AsType[*LockedError](err); !is || locked.Holder != test.holder {
					t.Errorf("Open = %v, want a LockedError of %q", err, test.holder)
				}
				time.Sleep(test.frees)
			})
		})
	}
}

// counted waits for anybody, and ends that after n tries.
func counted(n int) func(string) bool {
	return func(string) bool {
		n--
		return n >= 0
	}
}
