package schema

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"example.com/events/internal/strict"
)

// A Rule returns the problem of a string, or "" if it is valid. The problem follows the field name in
// messages, as in "must have 1 to 100 characters, not 101".
type Rule func(s string) (problem string)

// Rules maps names in tags to rules.
type Rules map[string]Rule

// commonRules are the rules of every schema. They take precedence over the caller's rules.
var commonRules = Rules{
	"title": title,
	"email": email,
	"url":   url,
	"zone":  zone,
	"slug":  slug,
}

// ruleConstructors are the rules with a parameter.
var ruleConstructors = map[string]func(parameter string) Rule{
	"id":     id,
	"chars":  chars,
	"one_of": oneOf,
}

// Match returns a rule: the string must have min to max bytes, and a regular expression must match all of it.
// Don't limit lengths in the expression, because compiling that costs a lot of memory.
func Match(min, max int, pattern, problem string) Rule {
	match := regexp.MustCompile(`^(?:` + pattern + `)$`).MatchString
	return func(s string) string {
		if len(s) >= min && len(s) <= max && match(s) {
			return ""
		}
		return problem
	}
}

func id(kind string) Rule {
	prefix := len(kind + "_")
	return Match(prefix+1, prefix+64, kind+`_[A-Za-z0-9_-]+`,
		"must be "+kind+`_ followed by 1 to 64 letters, digits, "_" or "-"`)
}

func chars(bounds string) Rule {
	var min, max int
	fmt.Sscanf(bounds, "%d-%d", &min, &max)
	return func(s string) string {
		n := utf8.RuneCountInString(s)
		if n < min || n > max {
			return fmt.Sprintf("must have %d to %d characters, not %d", min, max, n)
		}
		return ""
	}
}

func oneOf(list string) Rule {
	words := strings.Split(list, "|")
	last := len(words) - 1
	problem := "must be " + strings.Join(words[:last], ", ") + " or " + words[last]
	return func(s string) string {
		if slices.Contains(words, s) {
			return ""
		}
		return problem
	}
}

var titleChars = chars("1-255")

func title(s string) string {
	if strings.TrimSpace(s) == "" {
		return "must have 1 to 255 characters, not only white space"
	}
	return titleChars(s)
}

var (
	emailForm = Match(0, math.MaxInt, `[^@\pZ\p{Cc}]+@[^@\pZ\p{Cc}]+`,
		"must be an address with one @ and no white space, such as ada@example.com")
	emailChars = chars("3-254")
)

func email(s string) string { return cmp.Or(emailForm(s), emailChars(s)) }

const maxURL = 2048 // characters, all of them ASCII

func url(s string) string {
	if len(s) <= maxURL && strict.IsURL(s) {
		return ""
	}
	return fmt.Sprintf("must be an http or https URL such as https://example.com/x, percent-encoded, "+
		"without user info and at most %d characters long", maxURL)
}

func zone(s string) string {
	if strict.IsZone(s) {
		return ""
	}
	return "must be an IANA time zone name such as Europe/Paris, with the exact capitalization, or UTC"
}

const maxSlug = 100 // characters

var hyphenated = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString

func slug(s string) string {
	if len(s) <= maxSlug && hyphenated(s) {
		return ""
	}
	return fmt.Sprintf("must be at most %d lower-case letters and digits with single hyphens between them",
		maxSlug)
}
