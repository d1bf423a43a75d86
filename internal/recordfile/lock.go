package recordfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	lockSuffix = ".lock"
	tmpSuffix  = ".tmp"
	tornSuffix = ".torn-"
)

// companion matches what follows the name of a data file in the names of the file itself and
// of all that stands beside it. The socket is that of the process that has the file open.
var companion = regexp.MustCompile(`^(|\.lock|\.sock|\.tmp|\.torn-.*)$`)

// LockPath is the path of the lock file of a data file. It stands beside the file that data
// leads to, which need not be there yet.
func LockPath(data string) string { return leadsTo(data) + lockSuffix }

// SocketPath is the path of the socket of the process that has a data file open, if that makes
// one. It stands beside the file that data leads to, so that every link leads to one process.
func SocketPath(data string) string { return leadsTo(data) + ".sock" }

// BelongsTo reports whether a path leads to a data file or to what stands beside it: FILE.lock,
// FILE.sock, FILE.tmp and FILE.torn-*. Links are followed, and neither of the two need be there
// yet. So it answers whether something else may be written at the path.
func BelongsTo(data, path string) bool {
	if data == "" || path == "" {
		return false
	}
	data = leadsTo(data)
	path = leadsTo(path)
	if isSame(data, path) { // it may be a hard link
		return true
	}
	folder := filepath.Dir(data)
	if folder != filepath.Dir(path) && !isSame(folder, filepath.Dir(path)) {
		return false
	}
	name, dataName := filepath.Base(path), filepath.Base(data)
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" { // where mostly the case does not count
		name, dataName = strings.ToLower(name), strings.ToLower(dataName)
	}
	suffix, begins := strings.CutPrefix(name, dataName)
	return begins && companion.MatchString(suffix)
}

// isSame reports whether two paths lead to one file or folder.
func isSame(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// leadsTo is the absolute path that a path leads to, which may be that of no file yet.
func leadsTo(path string) string {
	const maxLinks = 40 // more are a loop
	for range maxLinks {
		resolved, err := filepath.EvalSymlinks(path)
		if err == nil {
			path = resolved
			break
		}
		folder, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			break
		}
		path = filepath.Join(folder, filepath.Base(path))
		link, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(link) {
			link = filepath.Join(folder, link)
		}
		path = link
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return absolute
}

// A LockedError says that another process, or another Open in this one, has the data file
// open. It wraps [ErrLocked].
type LockedError struct {
	File   string // the data file
	PID    int    // of the process that has it open; 0 if that is not known
	Holder string // what that process says it is (see [Options]); "" if that is not known; not in the text
}

func (e *LockedError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("%s: %v by %s", e.File, ErrLocked, who)
}

func (e *LockedError) Unwrap() error { return ErrLocked }

// LockHolder is the process that the lock file of a data file names, and what that says it is
// (see [Options]). The id is 0 if there is no such process. It takes no lock and changes nothing,
// so it can be out of date.
func LockHolder(data string) (pid int, holder string) {
	f, err := os.OpenFile(LockPath(data), os.O_RDONLY|noFollow, 0)
	if err != nil {
		return 0, ""
	}
	defer f.Close()
	text, isLock := readLock(f)
	if !isLock {
		return 0, ""
	}
	return text.process()
}

// lock is the lock of a data file.
type lock interface {
	io.Closer
	SetHolder(text string) error
}

// foreignLock is the error for a lock file that is none.
const foreignLock = "%s must be a regular file with one name, which holds a process id, and no link: " +
	"it was left as it is; see what it is and remove it"

// Lock takes the lock and leaves the process id and the holder's text in the lock file. That file
// stays for good: if it were deleted, two processes could each lock one of that name.
//
// The folder may belong to another user, who puts there what this process is to
// overwrite or to give away: a symbolic or hard link, even between two of the calls
// below. So no link is followed, only a file that was just made here gets another
// owner, and the rest is asked of the open file, not of its name.
//
// It returns the text of the holder before, if that did not release the lock.
func (osFS) Lock(path, holder string) (l lock, left string, err error) {
	name := path + lockSuffix
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		data, err := os.Stat(path)
		if err == nil {
			copyOwner(f, data) // else who owns the data file could not lock it
		}
	}
	if errors.Is(err, fs.ErrExist) {
		f, err = os.OpenFile(name, os.O_RDWR|noFollow, 0)
	}
	if err != nil {
		info, statErr := os.Lstat(name)
		if statErr == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf(foreignLock, name)
		}
		return nil, "", err
	}
	held := osLock{osFile{f}}
	left, err = held.take(path, holder)
	if err != nil {
		held.osFile.Close()
		return nil, "", err
	}
	return held, left, nil
}

// osLock is a lock file that is locked.
type osLock struct{ osFile }

// take locks a lock file and writes into it who has it, if it is a lock file. A hard link that
// was deleted after it was opened shows no second name any more. So the file must also hold
// nothing but what this program writes there, or what a crash leaves of that.
func (l osLock) take(path, holder string) (left string, err error) {
	info, err := l.Stat()
	if err != nil {
		return "", err
	}
	text, isLock := readLock(l.File)
	if !isLock || !info.Mode().IsRegular() || !hasOneName(info) {
		return "", fmt.Errorf(foreignLock, l.Name())
	}
	err = lockFile(l.File)
	if errors.Is(err, ErrLocked) {
		pid, other := text.process()
		return "", &LockedError{File: path, PID: pid, Holder: other}
	}
	if err != nil {
		return "", err
	}
	text, _ = readLock(l.File) // again, as the holder before may have released it in between
	return text.holder, l.SetHolder(holder)
}

// SetHolder writes into the lock file who has it. On a full disk it holds nothing: that is no
// reason to refuse a start.
func (l osLock) SetHolder(text string) error {
	err := l.Truncate(0)
	if err == nil {
		_, err = l.WriteAt(lockText(os.Getpid(), text), 0)
	}
	if isFull(err) {
		return nil
	}
	return err
}

// Close empties the lock file, so that it names no process that is gone, and releases the lock.
func (l osLock) Close() error {
	l.Truncate(0) // a process that died leaves its text, too: see readLock
	return l.osFile.Close()
}

const maxHolder = 1000 // bytes of the holder's text in a lock file

// lockText is what a lock file holds: the process id and the holder's text, a line each. The
// text is made one line.
func lockText(pid int, holder string) []byte {
	oneLine := func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}
	holder = strings.Map(oneLine, strings.ToValidUTF8(holder, "?"))
	for len(holder) > maxHolder {
		_, size := utf8.DecodeLastRuneInString(holder)
		holder = holder[:len(holder)-size]
	}
	text := fmt.Appendln(nil, pid)
	if holder != "" {
		text = fmt.Appendln(text, holder)
	}
	return text
}

// lockedBy is what a lock file holds.
type lockedBy struct {
	pid     string // digits, or nothing
	holder  string // the holder's text
	isWhole bool   // the holder's text is not cut
}

// process returns the id of the process and the holder's text. If that process is gone, or the
// text is not whole, the id is 0: another process has taken the lock and not yet written who it
// is, or nobody has it.
func (l lockedBy) process() (pid int, holder string) {
	number, err := strconv.ParseInt(l.pid, 10, 32)
	if err != nil || number == 0 || !l.isWhole || !isRunning(int(number)) {
		return 0, ""
	}
	return int(number), l.holder
}

// readLock reads a lock file. It reports whether the file is one: whether it holds what lockText
// makes, or a part of that, or the zeros that a crash can leave of it.
func readLock(f *os.File) (l lockedBy, isLock bool) {
	const maxID = 20 // digits
	text := make([]byte, maxID+maxHolder+8)
	n, _ := f.ReadAt(text, 0)
	if n == len(text) {
		return l, false
	}
	id, holder, _ := strings.Cut(strings.TrimRight(string(text[:n]), "\x00"), "\n")
	l.pid = strings.Trim(id, "\r\x00")
	l.holder, l.isWhole = strings.CutSuffix(holder, "\n")
	l.isWhole = l.isWhole || l.holder == ""
	isLock = len(l.pid) <= maxID && strings.Trim(l.pid, "0123456789") == "" &&
		utf8.ValidString(l.holder) && !strings.ContainsFunc(l.holder, unicode.IsControl)
	return l, isLock
}

const (
	lockPoll    = 20 * time.Millisecond // between two tries to take a lock that is waited for
	unknownWait = time.Second           // at most, for a holder that has not yet written what it is
)

// isToWaitFor reports whether to try again to take the lock, which was waited for since began.
func (o *Options) isToWaitFor(holder *LockedError, began time.Time) bool {
	waited := time.Since(began)
	if waited >= o.Wait {
		return false
	}
	if holder.PID == 0 && waited < unknownWait {
		return true
	}
	return o.WaitFor != nil && o.WaitFor(holder.Holder)
}
