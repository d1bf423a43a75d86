package schema

import (
	"cmp"
	"strings"
	"sync"
	"unicode"
)

// MaxSlug is the most characters that [Slugify] returns.
const MaxSlug = 48

// Slugify returns the title as lower-case words of [a-z0-9] with one hyphen
// between them, at most [MaxSlug] characters: Latin letters lose their accents,
// combining marks are dropped, and everything else separates words. It returns
// "event" if the title has no letter or digit that can be kept.
func Slugify(title string) string {
	var b strings.Builder
	b.Grow(len(title))
	for _, r := range strings.ToLower(title) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteByte(byte(r))
		case ascii()[r] != "":
			b.WriteString(ascii()[r])
		case !unicode.Is(unicode.M, r):
			b.WriteByte(' ')
		}
	}
	s := strings.Join(strings.Fields(b.String()), "-")
	s = strings.Trim(s[:min(len(s), MaxSlug)], "-")
	return cmp.Or(s, "event")
}

// ascii maps each letter of folds to its letters without the accent.
var ascii = sync.OnceValue(func() map[rune]string {
	m := map[rune]string{}
	for entry := range strings.FieldsSeq(folds) {
		plain, letters, _ := strings.Cut(entry, "=")
		for _, r := range letters {
			m[r] = plain
		}
	}
	return m
})

// folds are the Latin letters with accents of ISO 8859, of Vietnamese and of the
// transcriptions in common use, after what they are without them.
const folds = `a=àáâãäåāăąǎǟǡǻȁȃȧḁạảấầẩẫậắằẳẵặ ae=æǣǽ
b=ḃḅḇ c=çćĉċčḉ d=ďđðḋḍḏḑḓ e=èéêëēĕėęěȅȇȩḕḗḙḛḝẹẻẽếề
e=ểễệə f=ḟ g=ĝğġģǧǵḡ h=ĥħȟḣḥḧḩḫẖ i=ìíîïĩīĭįıǐȉȋḭḯỉị
j=ĵǰ k=ķĸǩḱḳḵ l=ĺļľŀłḷḹḻḽ m=ḿṁṃ n=ñńņňŉŋǹṅṇṉṋ o=òóôõöøō
o=ŏőơǒǫǭǿȍȏȫȭȯȱṍṏṑṓọỏốồổỗộớờởỡợ oe=œ p=ṕṗ r=ŕŗřȑȓṙ
r=ṛṝṟ s=śŝşšșſṡṣṥṧṩ ss=ß t=ţťțŧṫṭṯṱẗ th=þ u=ùúûüũūŭůűųưǔǖ
u=ǘǚǜȕȗṳṵṷṹṻụủứừửữự v=ṽṿ w=ŵẁẃẅẇẉẘ x=ẋẍ y=ýÿŷȳẏẙ
y=ỳỵỷỹ z=źżžẑẓẕ`
