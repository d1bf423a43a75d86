package schema

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"example.com/events/internal/strict"
)

// A Rule restricts the strings that a field may have. All messages complete a sentence that begins
// with the name of the field, as in "must have 1 to 100 characters, not 101".
type Rule struct {
	// Check returns what is wrong with a string, or "".
	Check func(string) string

	// The same for a description of the API.
	Min, Max int      // number of characters; 0 and 0: not limited
	Words    []string // all valid strings; nil: not a list of words
}

// CheckValue returns what is wrong with a value, which must be a string, or "".
func (r *Rule) CheckValue(v strict.Value) string {
	problem := checkString(v)
	if problem != "" {
		return problem
	}
	return r.Check(v.Text)
}

// ruleConstructors are the rules that have a parameter, by their names in tags.
var ruleConstructors = map[string]func(parameter string) *Rule{
	"id":     ID,
	"chars":  Chars,
	"one_of": OneOf,
}

// ruleFunc returns a rule for strings that satisfy valid.
func ruleFunc(valid func(string) bool, message string) *Rule {
	return &Rule{Check: func(s string) string {
		if valid(s) {
			return ""
		}
		return message
	}}
}

// Match returns a rule for strings that match a regular expression as a whole.
func Match(pattern, message string) *Rule {
	return ruleFunc(regexp.MustCompile(`^(?:`+pattern+`)$`).MatchString, message)
}

// OneOf returns a rule for a list of words: "public|private".
func OneOf(list string) *Rule {
	words := strings.Split(list, "|")
	last := len(words) - 1
	rule := ruleFunc(func(s string) bool { return slices.Contains(words, s) },
		"must be "+strings.Join(words[:last], ", ")+" or "+words[last])
	rule.Words = words
	return rule
}

// Chars returns a rule for the least and the greatest number of characters (Unicode code points):
// "1-255".
func Chars(bounds string) *Rule {
	var min, max int
	fmt.Sscanf(bounds, "%d-%d", &min, &max)
	check := func(s string) string {
		n := utf8.RuneCountInString(s)
		if n < min || n > max {
			return fmt.Sprintf("must have %d to %d characters, not %d", min, max, n)
		}
		return ""
	}
	return &Rule{Check: check, Min: min, Max: max}
}

// both returns a rule that requires two rules. Its bounds are the bounds of the second.
func both(first, second *Rule) *Rule {
	rule := *second
	rule.Check = func(s string) string {
		problem := first.Check(s)
		if problem != "" {
			return problem
		}
		return second.Check(s)
	}
	return &rule
}

// withMax sets the greatest number of characters that a rule allows by itself.
func withMax(max int, rule *Rule) *Rule {
	rule.Max = max
	return rule
}

// ID returns a rule for the IDs of a kind: usr_… for "usr".
func ID(kind string) *Rule {
	return Match(kind+`_[A-Za-z0-9_-]{1,64}`, "must be "+kind+"_ and 1 to 64 of A-Z a-z 0-9 _ -")
}

// Title is the rule for a title: 1 to 255 characters, not only white space.
var Title = both(
	ruleFunc(func(s string) bool { return strings.TrimSpace(s) != "" },
		"must have 1 to 255 characters, not only white space"),
	Chars("1-255"))

// Email is the rule for an email address: one @ with something on both sides, no white space or
// control characters, and at most 254 characters.
var Email = both(
	Match(`[^@\pZ\p{Cc}]+@[^@\pZ\p{Cc}]+`,
		"must be an address with one @ and no white space, such as ada@example.com"),
	Chars("3-254"))

const maxURL = 2048 // characters, all of which are ASCII

// URL is the rule for a web address of at most 2,048 characters; see [strict.URL].
var URL = withMax(maxURL, ruleFunc(func(s string) bool { return len(s) <= maxURL && strict.URL(s) },
	"must be an http or https URL with a host, such as https://example.com/x: at most 2048 characters, "+
		"no user info, and what a URL cannot hold percent-encoded, a space as %20"))

// Zone is the rule for a time zone name; see [strict.Zone].
var Zone = ruleFunc(strict.Zone, "must be a time zone name of the form Area/City from the IANA list "+
	"in its exact case, such as Europe/Paris, or UTC")

const maxSlug = 100 // characters

// Slug is the rule for a slug that the server didn't create.
var Slug = withMax(maxSlug, ruleFunc(func(s string) bool { return len(s) <= maxSlug && hyphenated(s) },
	"must be at most 100 of a-z 0-9 with single hyphens between them"))

var hyphenated = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString
