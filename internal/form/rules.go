package form

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"example.com/events/internal/strict"
)

// A Rule returns what is wrong with a string as the end of a sentence that begins
// with the member's name ("must have at most 100 characters"), or "". Rules with
// parameters are made once and kept in variables.
type Rule func(string) string

// Length is the rule of min to max characters (Unicode code points).
func Length(min, max int) Rule {
	return func(s string) string {
		n := utf8.RuneCountInString(s)
		switch {
		case n >= min && n <= max:
			return ""
		case min == 0:
			return fmt.Sprintf("must have at most %d characters, not %d", max, n)
		}
		return fmt.Sprintf("must have %d to %d characters, not %d", min, max, n)
	}
}

// OneOf is the rule of a fixed list of words.
func OneOf(words ...string) Rule {
	return func(s string) string {
		if slices.Contains(words, s) {
			return ""
		}
		last := len(words) - 1
		return "must be " + strings.Join(words[:last], ", ") + " or " + words[last]
	}
}

// Match is the rule of a regular expression, for the whole of a string. The problem
// says what the string must be.
func Match(pattern, problem string) Rule {
	whole := regexp.MustCompile(`^(?:` + pattern + `)$`)
	return func(s string) string {
		if whole.MatchString(s) {
			return ""
		}
		return problem
	}
}

// ID is the rule of the ids of a kind: usr_… and so on.
func ID(kind string) Rule {
	return Match(kind+`_[A-Za-z0-9_-]{1,64}`, "must be "+kind+"_ and 1 to 64 of A-Z a-z 0-9 _ -")
}

// Title is the rule of what a person must be able to read.
func Title(s string) string {
	if strings.TrimSpace(s) == "" {
		return "must have 1 to 255 characters, not only white space"
	}
	return Length(1, 255)(s)
}

// Email is the rule of an address: one @, with something on both sides.
func Email(s string) string {
	if at := strings.IndexByte(s, '@'); at < 1 || at == len(s)-1 || strings.Count(s, "@") != 1 {
		return "must be an address with one @, such as ada@example.com"
	}
	return Length(3, 254)(s)
}

// URL is the rule of a web address of at most 2,048 characters ([strict.URL]).
func URL(s string) string {
	if problem := Length(1, 2048)(s); problem != "" {
		return problem
	}
	if err := strict.URL(s); err != nil {
		return err.Error()
	}
	return ""
}

// Zone is the rule of a time zone name ([strict.Zone]).
func Zone(s string) string {
	if strict.Zone(s) {
		return ""
	}
	return "must be a time zone name of the form Area/City from the IANA list in its exact case, " +
		"such as Europe/Paris, or UTC"
}

var hyphenated = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Slug is the rule of a slug that was not made by the server.
func Slug(s string) string {
	if len(s) > 100 || s == "create" || !hyphenated.MatchString(s) {
		return "must be at most 100 of a-z 0-9 with single hyphens between them, and not create"
	}
	return ""
}

// Visible reports whether s has visible ASCII characters only.
func Visible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
