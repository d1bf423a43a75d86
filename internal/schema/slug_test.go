package schema

import (
	"regexp"
	"strings"
	"testing"
)

func TestSlugify(t *testing.T) {
	t.Parallel()
	for title, want := range map[string]string{
		"":                             "",
		"Hello, World!":                "hello-world",
		"  --a--b--  ":                 "a-b",
		"Ärger über Straße":            "arger-uber-strasse",
		"Crème brûlée":                 "creme-brulee",
		"Cre\u0300me":                  "creme",
		"ÆØÅ ÐÞ Œ ŁŻ":                  "aeoa-dth-oe-lz",
		"Điện Biên Phủ":                "dien-bien-phu",
		"İstanbul":                     "istanbul",
		"100 % × 2":                    "100-2",
		"日本語 v2":                       "v2",
		"🎉":                            "",
		"a_b":                          "a-b",
		"Quiz 09":                      "quiz-09",
		strings.Repeat("x", 60):        strings.Repeat("x", 48),
		strings.Repeat("ab ", 30):      strings.Repeat("ab-", 15) + "ab",
		strings.Repeat("x", 47) + " y": strings.Repeat("x", 47),
	} {
		if got := Slugify(title); got != want {
			t.Errorf("Slugify(%q): got %q, want %q", title, got, want)
		}
	}
}

func FuzzSlugify(f *testing.F) {
	f.Add("Ärger, über\x00 \xff é\u0301")
	shape := regexp.MustCompile(`^([a-z0-9]+(-[a-z0-9]+)*)?$`)
	f.Fuzz(func(t *testing.T, title string) {
		s := Slugify(title)
		if !shape.MatchString(s) {
			t.Errorf("Slugify(%q): got %q, want words with single hyphens", title, s)
		}
		if len(s) > maxSlugified {
			t.Errorf("Slugify(%q): got %d characters, want at most %d", title, len(s), maxSlugified)
		}
	})
}
