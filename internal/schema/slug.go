package schema

import (
	"strings"
	"sync"
	"unicode"
)

const maxSlugified = 48 // characters

// Slugify converts a title to at most 48 lower-case letters and digits with single hyphens between words. It
// removes accents from Latin letters and drops combining marks. Everything else separates words, so a title
// without usable letters gives an empty string.
func Slugify(title string) string {
	var b strings.Builder
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
	return strings.Trim(s[:min(len(s), maxSlugified)], "-")
}

// ascii maps each letter of folds to its ASCII form.
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

// folds lists ASCII letters, each with its accented forms: the Latin letters of ISO 8859, of
// Vietnamese and of common transcriptions.
const folds = `a=àáâãäåāăąǎǟǡǻȁȃȧḁạảấầẩẫậắằẳẵặ ae=æǣǽ
b=ḃḅḇ c=çćĉċčḉ d=ďđðḋḍḏḑḓ e=èéêëēĕėęěȅȇȩḕḗḙḛḝẹẻẽếề
e=ểễệə f=ḟ g=ĝğġģǧǵḡ h=ĥħȟḣḥḧḩḫẖ i=ìíîïĩīĭįıǐȉȋḭḯỉị
j=ĵǰ k=ķĸǩḱḳḵ l=ĺļľŀłḷḹḻḽ m=ḿṁṃ n=ñńņňŉŋǹṅṇṉṋ o=òóôõöøō
o=ŏőơǒǫǭǿȍȏȫȭȯȱṍṏṑṓọỏốồổỗộớờởỡợ oe=œ p=ṕṗ r=ŕŗřȑȓṙ
r=ṛṝṟ s=śŝşšșſṡṣṥṧṩ ss=ß t=ţťțŧṫṭṯṱẗ th=þ u=ùúûüũūŭůűųưǔǖ
u=ǘǚǜȕȗṳṵṷṹṻụủứừửữự v=ṽṿ w=ŵẁẃẅẇẉẘ x=ẋẍ y=ýÿŷȳẏẙ
y=ỳỵỷỹ z=źżžẑẓẕ`
