package strict

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// all is what a sequence of elements yields, in one text.
func all(r io.Reader, window int) (text string) {
	for v, err := range elements(r, window) {
		text += fmt.Sprintf("%v %v\n", v, err)
	}
	return text
}

// TestWindows: however little of a text is in memory at once, and however it arrives, the same
// elements and the same mistakes are found.
func TestWindows(t *testing.T) {
	t.Parallel()
	long := `[{"a":"` + strings.Repeat("x", 500) + `"},` + "\n" + `{"b":"\ud83d\ude00"}, 12345 ,` + "\n\n" + `"é"  ]` + "\n "
	texts := []string{long, long + "x", long[:len(long)-4], "", " \n ", "[", "[]", "[1", "[1,\n2,\nx,4]", "[1,\n\n  \"\xff\"]",
		"[1,2,\n]", "[\"a\nb\"]", "[1,\n2]\n\n 3", "[12\n3]", "{}", "[" + strings.Repeat(`"abc",`+"\n", 50) + "5.]"}
	rich := `[{"a\ud83d\ude00":"é\u00e9\\","b":[-1.5e3,true,null]}, "\ud83d\ude00" ,false,{},0.25 ]` + " "
	for i := range rich {
		texts = append(texts, rich[:i], rich[:i]+rich[i+1:], rich[:i]+"x"+rich[i:], rich[:i]+`"`+rich[i:])
	}
	for _, text := range texts {
		want := all(strings.NewReader(text), 1<<20)
		for window := 1; window < min(600, 2*len(text)+8); window += 1 + window/3 {
			if got := all(strings.NewReader(text), window); got != want {
				t.Errorf("with a window of %d, %q is\n%s\nwant\n%s", window, text, got, want)
			}
		}
		if got := all(iotest.HalfReader(strings.NewReader(text)), 64); got != want {
			t.Errorf("read in parts, %q is\n%s\nwant\n%s", text, got, want)
		}
	}
}

// TestUnreadable: an error of the reader comes after the elements that were read before it.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	failed := errors.New("the disk failed")
	r := io.MultiReader(strings.NewReader("[1,\n2,3"), iotest.ErrReader(failed))
	want := "{number false 1 []} <nil>\n{number false 2 []} <nil>\n{null false  []} the disk failed\n"
	if got := all(r, 4); strings.ReplaceAll(got, "a number", "number") != want {
		t.Errorf("the elements are\n%s\nwant\n%s", got, want)
	}
}

// TestMistakeEndsReading: no more is read after a mistake, however much is left.
func TestMistakeEndsReading(t *testing.T) {
	t.Parallel()
	for _, mistake := range []string{"[1,2 3,", "{", `["\x",`, `["a` + "\n", "[01,", "[nul,", "[1]2", `[{"a":1,"b" 2},`, "[\"\xff\","} {
		begun := false
		r := io.MultiReader(strings.NewReader(mistake+strings.Repeat(" ", 100)), readerFunc(func(p []byte) (int, error) {
			if begun {
				t.Errorf("%q: reading goes on", mistake)
				return 0, io.EOF
			}
			begun = true // what the first window takes
			return copy(p, strings.Repeat(" ", 64)), nil
		}))
		if got := all(r, 120); !strings.Contains(got, "line 1, column ") {
			t.Errorf("%q: the elements are\n%s\nwant a mistake of line 1", mistake, got)
		}
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
