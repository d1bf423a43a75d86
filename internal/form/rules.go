package form

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"example.com/events/internal/strict"
)

// A Rule is what the value of a member must be: its type and its bounds, in one message. Rules
// with parameters are made once and kept in variables.
type Rule struct {
	// Problem returns what is wrong with a value that is not null as the end of a sentence that
	// begins with the member's name ("must have 1 to 100 characters, not 101"), or "".
	Problem func(strict.Value) string
}

// Of returns what is wrong with a string, or "".
func (r *Rule) Of(s string) string { return r.Problem(strict.Value{Kind: strict.String, Text: s}) }

// ofText is the rule of a string. The problem says what is wrong with it, or is "".
func ofText(problem func(string) string) *Rule {
	return &Rule{Problem: func(v strict.Value) string {
		switch {
		case v.Kind != strict.String:
			return "must be a string, not " + v.Kind.String()
		case !utf8.ValidString(v.Text): // it comes from a struct, not from a JSON text
			return "must be valid UTF-8"
		}
		return problem(v.Text)
	}}
}

// check is the rule that isGood must be true of a string. The problem says what the
// string must be.
func check(isGood func(string) bool, problem string) *Rule {
	return ofText(func(s string) string {
		if isGood(s) {
			return ""
		}
		return problem
	})
}

// Match is the rule of a regular expression, for the whole of a string. The problem
// says what the string must be.
func Match(pattern, problem string) *Rule {
	return check(regexp.MustCompile(`^(?:`+pattern+`)$`).MatchString, problem)
}

// makers make the rules that have a parameter, by their names in tags.
var makers = map[string]func(parameter string) *Rule{
	"id":     ID,
	"chars":  Chars,
	"one_of": OneOf,
}

// OneOf is the rule of a fixed list of words: "public|private".
func OneOf(list string) *Rule {
	words := strings.Split(list, "|")
	last := len(words) - 1
	return check(func(s string) bool { return slices.Contains(words, s) },
		"must be "+strings.Join(words[:last], ", ")+" or "+words[last])
}

// Chars is the rule of a least and a greatest number of characters (Unicode code points):
// "1-255".
func Chars(bounds string) *Rule {
	var min, max int
	fmt.Sscanf(bounds, "%d-%d", &min, &max)
	return ofText(func(s string) string {
		n := utf8.RuneCountInString(s)
		if n < min || n > max {
			return fmt.Sprintf("must have %d to %d characters, not %d", min, max, n)
		}
		return ""
	})
}

// both returns the rule of two rules.
func both(first, second *Rule) *Rule {
	return &Rule{Problem: func(v strict.Value) string {
		problem := first.Problem(v)
		if problem != "" {
			return problem
		}
		return second.Problem(v)
	}}
}

// ID is the rule of the ids of a kind: usr_… for "usr".
func ID(kind string) *Rule {
	return Match(kind+`_[A-Za-z0-9_-]{1,64}`, "must be "+kind+"_ and 1 to 64 of A-Z a-z 0-9 _ -")
}

// Title is the rule of a title: 1 to 255 characters, not only white space.
var Title = both(
	check(func(s string) bool { return strings.TrimSpace(s) != "" },
		"must have 1 to 255 characters, not only white space"),
	Chars("1-255"))

// Email is the rule of an email address: one @ with something on both sides, no white space or
// control characters, and at most 254 characters.
var Email = both(
	Match(`[^@\pZ\p{Cc}]+@[^@\pZ\p{Cc}]+`,
		"must be an address with one @ and no white space, such as ada@example.com"),
	Chars("3-254"))

// URL is the rule of a web address of at most 2,048 characters ([strict.URL]).
var URL = check(func(s string) bool { return len(s) <= 2048 && strict.URL(s) },
	"must be an http or https URL with a host, such as https://example.com/x: at most 2048 characters, "+
		"no user info, and what a URL cannot hold percent-encoded, a space as %20")

// Zone is the rule of a time zone name ([strict.Zone]).
var Zone = check(strict.Zone, "must be a time zone name of the form Area/City from the IANA list "+
	"in its exact case, such as Europe/Paris, or UTC")

// Slug is the rule of a slug that was not made by the server.
var Slug = check(func(s string) bool { return len(s) <= 100 && s != "create" && hyphenated(s) },
	"must be at most 100 of a-z 0-9 with single hyphens between them, and not create")

var hyphenated = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString

// Visible reports whether s has visible ASCII characters only.
var Visible = regexp.MustCompile(`^[!-~]*$`).MatchString
