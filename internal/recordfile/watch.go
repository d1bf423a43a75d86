package recordfile

import "time"

const (
	slow      = time.Second      // a commit or a rewrite that takes longer is logged
	slowPause = 10 * time.Second // and none that begins within this time after that
)

// Busy is how long the commit or the rewrite that is under way has taken so far. It is 0
// if there is none. It is safe for concurrent use.
func (f *File) Busy() time.Duration {
	began := f.began.Load()
	if began == nil {
		return 0
	}
	return time.Since(*began)
}

// watch begins a commit or a rewrite, and returns the function that ends it. Both log it
// if it takes long: the first says that it does while nothing else tells, as on a disk that
// hangs, and the second how long it took.
func (f *File) watch(what string) (end func()) {
	began := time.Now()
	f.began.Store(&began)
	var timer *time.Timer
	if began.After(f.quiet) {
		timer = time.AfterFunc(slow, func() {
			f.Logf("%s: %s has not ended after %v: the disk is slow or hangs", f.path, what, slow)
		})
	}
	return func() {
		f.began.Store(nil)
		if timer == nil || timer.Stop() {
			return
		}
		f.Logf("%s: %s took %v", f.path, what, time.Since(began))
		f.quiet = time.Now().Add(slowPause)
	}
}
