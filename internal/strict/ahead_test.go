package strict_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"example.com/events/internal/strict"
)

// TestAhead: everything comes in its order, however early the caller stops, and nothing is left
// running after that.
func TestAhead(t *testing.T) {
	t.Parallel()
	last := errors.New("the last")
	synctest.Test(t, func(t *testing.T) {
		for _, n := range []int{0, 1, 127, 128, 129, 1000, 5000} {
			seq := func(yield func(int, error) bool) {
				for i := range n {
					if !yield(i, nil) {
						return
					}
				}
				yield(-1, last)
			}
			for _, most := range []int{0, 1, 128, 700, 6000} {
				next := 0
				ended := false
				for i, err := range strict.Ahead(seq) {
					switch {
					case ended, err == nil && i != next, err != nil && (err != last || next != n):
						t.Fatalf("of %d: %d, %v comes at the place of %d", n, i, err, next)
					}
					ended = err != nil
					next++
					if next > most {
						break
					}
				}
				if want := min(n+1, most+1); next != want {
					t.Errorf("of %d and an error, %d came before the break at %d", n, next, most)
				}
			}
		}
		synctest.Wait()
	})
}

// TestAheadPanics: a panic of the other goroutine does not end the process.
func TestAheadPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		p := fmt.Sprint(recover())
		if !strings.HasPrefix(p, "a defect\n") || !strings.Contains(p, "TestAheadPanics") {
			t.Errorf("the caller panics with %s, want the defect and where it is", p)
		}
	}()
	for range strict.Ahead(func(yield func(int, error) bool) {
		yield(1, nil)
		panic("a defect")
	}) {
	}
}
