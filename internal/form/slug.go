// Package slug makes the readable part of an event's slug from its title.
package slug

import (
	"strings"
	"unicode"
)

// MaxLength is the most characters that [Make] returns.
const MaxLength = 48

// Make returns title as lower-case words of [a-z0-9] with one hyphen between
// them, at most [MaxLength] characters: Latin letters lose their accents,
// combining marks go, and everything else separates words. It is "event" where
// the title has no letter or digit that can be kept.
func Make(title string) string {
	var b strings.Builder
	gap := false
	for _, r := range title {
		s := fold(unicode.ToLower(r))
		switch {
		case s != "":
			if gap && b.Len() > 0 {
				b.WriteByte('-')
			}
			gap = false
			b.WriteString(s)
		case !unicode.Is(unicode.M, r):
			gap = true
		}
		if b.Len() > MaxLength {
			break
		}
	}
	s := b.String()
	s = strings.Trim(s[:min(len(s), MaxLength)], "-")
	if s == "" {
		return "event"
	}
	return s
}

// fold is the ASCII of a lower-case letter or digit, or "".
func fold(r rune) string {
	if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
		return string(r)
	}
	if r < 0x80 {
		return ""
	}
	for _, f := range folds {
		if strings.ContainsRune(f.letters, r) {
			return f.ascii
		}
	}
	return ""
}

// folds are the Latin letters with accents of ISO 8859, of Vietnamese and of
// the transcriptions in common use.
var folds = [...]struct{ ascii, letters string }{
	{"a", "àáâãäåāăąǎǟǡǻȁȃȧḁạảấầẩẫậắằẳẵặ"},
	{"ae", "æǣǽ"},
	{"b", "ḃḅḇ"},
	{"c", "çćĉċčḉ"},
	{"d", "ďđðḋḍḏḑḓ"},
	{"e", "èéêëēĕėęěȅȇȩḕḗḙḛḝẹẻẽếềểễệə"},
	{"f", "ḟ"},
	{"g", "ĝğġģǧǵḡ"},
	{"h", "ĥħȟḣḥḧḩḫẖ"},
	{"i", "ìíîïĩīĭįıǐȉȋḭḯỉị"},
	{"j", "ĵǰ"},
	{"k", "ķĸǩḱḳḵ"},
	{"l", "ĺļľŀłḷḹḻḽ"},
	{"m", "ḿṁṃ"},
	{"n", "ñńņňŉŋǹṅṇṉṋ"},
	{"o", "òóôõöøōŏőơǒǫǭǿȍȏȫȭȯȱṍṏṑṓọỏốồổỗộớờởỡợ"},
	{"oe", "œ"},
	{"p", "ṕṗ"},
	{"r", "ŕŗřȑȓṙṛṝṟ"},
	{"s", "śŝşšșſṡṣṥṧṩ"},
	{"ss", "ß"},
	{"t", "ţťțŧṫṭṯṱẗ"},
	{"th", "þ"},
	{"u", "ùúûüũūŭůűųưǔǖǘǚǜȕȗṳṵṷṹṻụủứừửữự"},
	{"v", "ṽṿ"},
	{"w", "ŵẁẃẅẇẉẘ"},
	{"x", "ẋẍ"},
	{"y", "ýÿŷȳẏẙỳỵỷỹ"},
	{"z", "źżžẑẓẕ"},
}
