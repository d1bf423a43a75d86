package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"example.com/events/internal/strict"
)

// thing has a field of every type, and every flag.
type thing struct {
	ID     string     `json:"id" schema:"id=thg fixed server"`
	Owner  string     `json:"owner" schema:"required fixed server"`
	Made   time.Time  `json:"made" schema:"fixed"`
	Seen   time.Time  `json:"seen" schema:"server"`
	Title  string     `json:"title" schema:"title required"`
	Secret string     `json:"secret"`
	From   time.Time  `json:"from" schema:"required"`
	Size   *string    `json:"size" schema:"one_of=s|m|l empty_is_null"`
	Note   *string    `json:"note"`
	Open   bool       `json:"open"`
	Till   *time.Time `json:"till"`
	Zone   string     `json:"zone" schema:"zone empty_is_null"`
}

var thingSchema = For(thing{}, nil)

// known is the end of the problem of the last unknown field.
const known = " (the fields are id, owner, made, seen, title, secret, " +
	"from, size, note, open, till, zone)"

var noon = time.Date(2027, 1, 2, 12, 0, 0, 500, time.UTC)

// fullThing returns a thing with all fields set.
func fullThing() thing {
	return thing{"thg_1", "own_1", noon, noon, "Tea", "s3cret", noon,
		new("m"), new(""), true, new(noon.Add(time.Hour)), "UTC"}
}

// decode decodes a JSON text into a full thing in the mode Merge, and into an empty one otherwise.
func decode(t *testing.T, mode Mode, text string) (thing, *FieldProblems) {
	t.Helper()
	v, err := strict.Parse([]byte(text))
	if err != nil {
		t.Fatalf("Parse(%s): got %v, want no error", text, err)
	}
	var x thing
	if mode == Merge {
		x = fullThing()
	}
	p := thingSchema.Decode(&x, v, mode)
	return x, p
}

// format returns x as encoding/json writes it.
func format(x thing) string { return string(strict.Encode(x)) }

func TestDecode(t *testing.T) {
	t.Parallel()
	const (
		at      = `"2027-01-02T12:00:00.0000005Z"`
		zero    = `"0001-01-01T00:00:00Z"`
		least   = `"title":"Tea","secret":"s3cret","from":` + at + `,`
		fixed   = `{"id":"thg_1","owner":"own_1","made":` + at + `,`
		nothing = `"size":null,"note":null,"open":false,"till":null,"zone":""}`
		nulls   = `"size":null,"note":null,"open":null,"till":null,"zone":null}`
		empty   = `{"id":"","owner":"own_1","made":` + zero + `,"seen":` + zero + `,` + least + nothing
		client  = `{"id":"","owner":"","made":` + zero + `,"seen":` + zero + `,` + least + nothing
	)
	full := format(fullThing())
	for _, tt := range []struct {
		name     string
		mode     Mode
		in, want string
	}{
		{"all fields in another order", Create, `{"till":"2027-01-02T14:00:00.0000005+01:00","open":true,
			"note":"","size":"m","from":"2027-01-02t12:00:00.0000005z","secret":"s3cret",
			"zone":"UTC","title":"Tea","seen":` + at + `,"made":` + at + `,
			"owner":"own_1","id":"thg_1"}`, full},
		{"the required fields", Create, `{"owner":"own_1",` + strings.TrimSuffix(least, ",") + `}`, empty},
		{"null means absent", Create,
			`{"owner":"own_1","id":null,"made":null,"seen":null,` + least + nulls, empty},
		{"the required fields of a client", FromClient,
			`{"made":null,` + strings.TrimSuffix(least, ",") + `}`, client},
		{"no changes", Merge, `{}`, full},
		{"fixed fields with their values", Merge,
			`{"id":"thg_1","owner":"own_1","made":"2027-01-02T11:00:00.0000005-01:00"}`, full},
		{"null in fixed fields", Merge, `{"id":null,"owner":null,"made":null}`, full},
		{"null in other fields", Merge, `{"seen":null,"secret":null,` + nulls,
			fixed + `"seen":` + zero + `,` + strings.Replace(least, "s3cret", "", 1) + nothing},
		{"changes", Merge, `{"note":"\u0000","open":false,"secret":"é"}`,
			strings.NewReplacer(`"note":""`, `"note":"\u0000"`, "true", "false", "s3cret", "é").
				Replace(full)},

		{"empty means null in a new object", Create,
			`{"owner":"own_1","size":"",` + least + `"zone":""}`, empty},
		{"empty means null from a client", FromClient, `{"size":"",` + least + `"zone":""}`, client},
		{"empty means null in a change", Merge, `{"size":"","zone":""}`,
			strings.NewReplacer(`"m"`, `null`, `"UTC"`, `""`).Replace(full)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x, p := decode(t, tt.mode, tt.in)
			if problems := p.All(); problems != nil {
				t.Errorf("Decode(%s): got %q, want no problems", tt.in, problems)
			}
			if got := format(x); got != tt.want {
				t.Errorf("Decode(%s):\n got %s\nwant %s", tt.in, got, tt.want)
			}
		})
	}
}

func TestDecodeProblems(t *testing.T) {
	t.Parallel()
	const (
		date = "must be a valid date-time such as 2027-03-01T18:00:00Z or " +
			"2027-03-01T18:00:00+02:00, with Z or an offset"
		open  = "open must be true or false, not a number"
		least = `"title":"Tea","from":"2027-01-02T12:00:00Z"`
	)
	var many, each []string // unknown fields and their problems
	for i := range 23 {
		many = append(many, fmt.Sprintf(`"x%d":%d`, i, i))
		each = append(each, fmt.Sprintf("x%d is not known", i))
	}
	long, wide := strings.Repeat("a-_Z9", 8), strings.Repeat("é", 40)
	for _, tt := range []struct {
		name string
		mode Mode
		in   string
		want []string
	}{
		{"array", Create, `[{}]`, []string{"must be a JSON object, not an array"}},
		{"null", Merge, `null`, []string{"must be a JSON object, not null"}},
		{"string", FromClient, `"{}"`, []string{"must be a JSON object, not a string"}},
		{"wrong types, in the order of the schema", Merge, `{"till":true,"open":0,
			"note":1,"size":[],"from":5,"secret":{},"title":false,"seen":0,"made":{},"owner":1,
			"id":[]}`, []string{
			"id must be a string, not an array",
			"owner must be a string, not a number",
			"made " + date,
			"seen " + date,
			"title must be a string, not a boolean",
			"secret must be a string, not an object",
			"from " + date,
			"size must be a string, not an array",
			"note must be a string, not a number",
			open, "till " + date,
		}},
		{"wrong values", Merge, `{"id":"thg","seen":"2027-03-01T24:00Z","title":" ","size":"xl",
			"till":"2027-02-30T00:00:00Z","zone":"Paris"}`, []string{
			"id must be thg_ followed by 1 to 64 letters, digits, \"_\" or \"-\"",
			"seen " + date,
			"title must have 1 to 255 characters, not only white space",
			"size must be s, m or l",
			"till " + date,
			"zone must be an IANA time zone name such as Europe/Paris, with the exact capitalization, or UTC",
		}},
		{"required", Create, `{}`, []string{"owner is required", "title is required", "from is required"}},
		{"required and null", Create, `{"from":null,"title":null,"owner":null}`, []string{
			"owner is required and must not be null",
			"title is required and must not be null",
			"from is required and must not be null",
		}},
		{"required and null in a change", Merge, `{"from":null,"title":null,"owner":null}`, []string{
			"title is required and must not be null",
			"from is required and must not be null",
		}},
		{"fixed", Merge, `{"made":"2027-01-02T12:00:00Z","owner":"","id":"thg_2"}`, []string{
			"id can't be changed: it is thg_1",
			"owner can't be changed: it is own_1",
			"made can't be changed: it is 2027-01-02T12:00:00.0000005Z",
		}},
		{"set by the server", FromClient, `{"seen":1,"owner":null,"id":"","seen":2,"open":1}`, []string{
			"title is required",
			"from is required",
			open,
			"id is set by the server, so leave it out",
			"owner is set by the server, so leave it out",
			"seen is set by the server, so leave it out",
		}},
		{"repeated", Merge, `{"note":null,"secret":"a","secret":"a","note":"x","note":"y","open":1,
			"open":true,"till":null,"till":null}`, []string{
			"secret is given more than once: send it once",
			"note is given more than once: send it once",
			open, "open is given more than once: send it once",
			"till is given more than once: send it once",
		}},
		{"unknown", Merge, `{"Title":1,"open":1,"a b":2,"Title":3}`, []string{
			open, "Title is not known", `"a b" is not known` + known,
		}},
		{"unknown, from a client", FromClient, `{"x":1,"id":1,` + least + `}`, []string{
			"id is set by the server, so leave it out",
			"x is not known (the fields are made, title, secret, " +
				"from, size, note, open, till, zone)",
		}},
		{"many unknown", Merge, `{` + strings.Join(many, ",") + `}`, append(each[:22:22], each[22]+known)},
		{"odd names", Merge, `{"":1,"a\"\n\u202e":1,"` + wide + `":1,"` + wide + `é":1,"` +
			long + `":1,"` + long + `a":1}`,
			[]string{
				`"" is not known`,
				`"a\"\n\u202e" is not known`,
				`"` + wide + `" is not known`,
				`"` + wide + `" is not known`,
				long + ` is not known`,
				`"` + long + `" is not known` + known,
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, p := decode(t, tt.mode, tt.in)
			if got := p.All(); !slices.Equal(got, tt.want) {
				t.Errorf("Decode(%s): got\n%s\nwant\n%s",
					tt.in, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

func TestUnmarshal(t *testing.T) {
	t.Parallel()
	type point struct {
		X string `json:"x" schema:"required"`
	}
	points := For(point{}, nil)
	for _, tt := range []struct {
		text string
		x    string
		want string // problems
	}{
		{`{"x":"a"}`, "a", ``},
		{`{}`, "", "x is required"},
		{``, "", "the body is empty: send a JSON object"},
		{`[7]`, "", "the body must be a JSON object, not an array"},
		{`{"x":7,}`, "", "the body is not a JSON object: line 1, column 8: expected a field name in " +
			"double quotes: remove a trailing comma"},
	} {
		var p point
		got := strings.Join(points.Unmarshal([]byte(tt.text), &p, Create).All(), "; ")
		if got != tt.want {
			t.Errorf("Unmarshal(%s): got %s, want %s", tt.text, got, tt.want)
		}
		if p.X != tt.x {
			t.Errorf("Unmarshal(%s): got %s, want %s", tt.text, p.X, tt.x)
		}
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	_, p := decode(t, Merge, `{"open":"x","nope":1}`)
	p.Add("till", "is late")
	p.Add("open", "has one already")
	p.Add("title", "is odd")
	p.Add("note", "")
	want := "title is odd\nopen must be true or false, not a string\ntill is late\nnope is not known" + known
	if got := strings.Join(p.All(), "\n"); got != want {
		t.Errorf("All(): got\n%s\nwant\n%s", got, want)
	}
	for name, want := range map[string]bool{"title": true, "open": true, "note": false} {
		if got := p.Has(name); got != want {
			t.Errorf("Has(%s): got %t, want %t", name, got, want)
		}
	}
}

// checkRoundTrip tests that x is decoded from its JSON text and from Value.
func checkRoundTrip(t *testing.T, x thing) {
	t.Helper()
	text, err := strict.Parse([]byte(format(x)))
	if err != nil {
		t.Fatalf("Parse(%s): got %v, want no error", format(x), err)
	}
	for name, v := range map[string]strict.Value{"the text": text, "Value": thingSchema.Value(&x)} {
		var got thing
		problems := thingSchema.Decode(&got, v, Create).All()
		if problems != nil {
			t.Errorf("Decode of %s: got %q, want no problems", name, problems)
		}
		if !reflect.DeepEqual(got, x) {
			t.Errorf("Decode of %s:\n got %s\nwant %s", name, format(got), format(x))
		}
	}
}

// oddStrings are difficult for encoders.
var oddStrings = []string{
	"", `say "hi"`, `a \ b`, "a\x1f", "\x00\x01\b\f\n\r\t", "a\u2028b\u2029c",
	"… “” \u20ac \u2027\u202a", "<a> & 'b' \x7f\u0080\ufffd", "\U0001f600 e\u0301 \U0010ffff",
}

func TestValue(t *testing.T) {
	t.Parallel()
	for _, s := range oddStrings {
		x := fullThing()
		x.Title = "x" + s
		x.Secret = s
		x.Note = &s
		checkRoundTrip(t, x)
	}
	least := thing{Owner: "own_1", Title: "Tea", From: noon}
	var x thing
	problems := thingSchema.Decode(&x, thingSchema.Value(&least), Create).All()
	if problems != nil {
		t.Errorf("Decode of the required fields: got %q, want no problems", problems)
	}
	if !reflect.DeepEqual(x, least) {
		t.Errorf("Decode of the required fields:\n got %s\nwant %s", format(x), format(least))
	}
	zero := thing{Seen: time.Time{}.In(time.FixedZone("", 3600))}
	got, want := fullThing(), fullThing()
	want.Size, want.Note, want.Open, want.Till = nil, nil, false, nil
	problems = thingSchema.Decode(&got, thingSchema.Value(&zero), Merge).All()
	if problems != nil {
		t.Errorf("Decode of zero fields: got %q, want no problems", problems)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Decode of zero fields:\n got %s\nwant %s", format(got), format(want))
	}
}

// TestValueNotJSON tests a struct whose values have no form in JSON.
func TestValueNotJSON(t *testing.T) {
	t.Parallel()
	const bad = "\xff"
	x := thing{Owner: bad, Title: bad, From: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), Note: new(bad)}
	problems := thingSchema.Decode(new(thing), thingSchema.Value(&x), Create)
	for name, want := range map[string]string{
		"owner": "owner must be valid UTF-8",
		"title": "title must be valid UTF-8",
		"from":  "from must be in the years 0001 to 9999",
		"note":  "note must be valid UTF-8",
	} {
		if got := strings.Join(problems.fields[name], "; "); !strings.HasPrefix(got, want) {
			t.Errorf("problem of %s: got %q, want %s", name, got, want)
		}
	}
}

func FuzzValue(f *testing.F) {
	for _, s := range oddStrings {
		f.Add(s, s, true, false, int64(1800000000), int64(120))
	}
	f.Add("…", "", false, true, int64(-62135596800), int64(0))
	f.Fuzz(func(t *testing.T, owner, note string, set, open bool, sec, nsec int64) {
		at := time.Unix(sec%(1<<38), nsec).UTC()
		validTime := !at.IsZero() && at.Year() >= 1 && at.Year() <= 9999
		if !utf8.ValidString(owner) || !utf8.ValidString(note) || !validTime {
			return // refused by Decode
		}
		x := fullThing()
		x.Owner, x.Secret, x.Note, x.Open = "own_"+owner, note, &note, open
		x.Made, x.Till = at, &at
		if !set {
			x.Size, x.Note, x.Till = nil, nil, nil
		}
		checkRoundTrip(t, x)
	})
}

func TestRules(t *testing.T) {
	t.Parallel()
	rep := strings.Repeat
	for _, tt := range []struct {
		tag     string
		valid   []string
		problem string // beginning of the problem of the invalid strings
		invalid []string
	}{
		{"chars=2-3", []string{"ab", "éèê", "\U0001f600\U0001f600"},
			"must have 2 to 3 characters, not 1", []string{"a", "\U0001f600"}},
		{"chars=2-3", nil, "must have 2 to 3 characters, not 4", []string{"abcd", "éééé"}},
		{"chars=0-3", []string{"", "abc"},
			"must have 0 to 3 characters, not 4", []string{"abcd"}},
		{"one_of=a|b|c", []string{"a", "b", "c"},
			"must be a, b or c", []string{"", "A", "ab", "a ", "a, b, c"}},
		{"id=usr", []string{"usr_1", "usr__-", "usr_usr_aZ09", "usr_" + rep("a", 64)},
			"must be usr_ followed by 1 to 64 letters, digits, \"_\" or \"-\"",
			[]string{"", "usr", "usr_", "usr1", "usr_" + rep("a", 65), "evt_1", " usr_1", "USR_1", "usr_a.b",
				"usr_a b", "usr_é", "usr_a\n", "usr_\x00"}},
		{"title", []string{"a", " a", rep("é", 255)},
			"must have 1 to 255 characters, not only white space",
			[]string{"", " ", "\t\r\n\u00a0\u2003\u3000"}},
		{"title", nil, "must have 1 to 255 characters, not 256", []string{rep("é", 256)}},
		{"email", []string{"a@b", "é@ü", rep("a", 252) + "@b", rep("é", 252) + "@b"},
			"must be an address with one @", []string{"", "@", "a", "a@", "@b", "a@b@c", "a@@b",
				"a@b\n", "a\r\n@b", "a b@c", "a@\x00b", "a\u0085@b", "a@b\u00a0", "a@b\x7f", "\u2028a@b"}},
		{"email", nil, "must have 3 to 254 characters, not 255", []string{rep("a", 253) + "@b"}},
		{"url", []string{"HTTP://a", "https://example.com/" + rep("a", 2028)},
			"must be an http or https URL",
			[]string{"", "ftp://a", "a", "https://", "https://example.com/" + rep("a", 2029)}},
		{"zone", []string{"UTC", "Europe/Paris", "America/Argentina/Ushuaia"},
			"must be an IANA time zone name",
			[]string{"", "utc", "europe/paris", "Paris", "Europe/", "+02:00", "Europe/Paris "}},
		{"slug", []string{"a", "0", "a-b-9", "create", rep("a", 100)},
			"must be at most 100 lower-case letters and digits",
			[]string{"", "-", "-a", "a-", "a--b", "A", "a_b", "a b", "aéb", rep("a", 101)}},
	} {
		var f field
		f.addWord(tt.tag, nil)
		for _, s := range tt.valid {
			if got := f.rule(s); got != "" {
				t.Errorf("%s(%q): got %q, want no problem", tt.tag, s, got)
			}
		}
		for _, s := range tt.invalid {
			if got := f.rule(s); !strings.HasPrefix(got, tt.problem) {
				t.Errorf("%s(%q): got %q, want %q", tt.tag, s, got, tt.problem)
			}
		}
	}
}

// TestFor tests the fields that a struct gives a schema.
func TestFor(t *testing.T) {
	t.Parallel()
	type Clay struct {
		Lid  *string `json:"lid,omitempty" schema:"empty_is_null lid"`
		Made bool    `json:"made"`
	}
	type pot struct {
		Secret string `json:"-"`
		Clay
		weight int // unexported, so it is no field of the object
	}
	_ = pot{}.weight
	pots := For(&pot{}, Rules{"lid": oneOf("glass|tin")})
	const text = `{"secret":1,"lid":"wood","made":1,"hidden":"","weight":1}`
	want := []string{
		"secret must be a string, not a number",
		"lid must be glass or tin",
		"made must be true or false, not a number",
		"hidden is not known",
		"weight is not known (the fields are secret, lid, made)",
	}
	var p pot
	got := pots.Unmarshal([]byte(text), &p, Create).All()
	if !slices.Equal(got, want) {
		t.Errorf("Unmarshal(%s): got\n%s\nwant\n%s", text, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// pair is a type of its own: two characters.
type pair [2]byte

func (p *pair) DecodeJSON(v strict.Value) string {
	if len(v.Text) != 2 {
		return "must have two characters"
	}
	copy(p[:], v.Text)
	return ""
}

func TestDecoder(t *testing.T) {
	t.Parallel()
	type pot struct {
		Pair pair `json:"pair" schema:"required"`
	}
	for _, tt := range []struct {
		text string
		want pot
		all  []string // problems
	}{
		{`{"pair":"ab"}`, pot{pair{'a', 'b'}}, nil},
		{`{"pair":"abc"}`, pot{}, []string{"pair must have two characters"}},
		{`{"pair":null}`, pot{}, []string{"pair is required and must not be null"}},
		{`{}`, pot{}, []string{"pair is required"}},
	} {
		var p pot
		got := For(&p, nil).Unmarshal([]byte(tt.text), &p, Create).All()
		if !slices.Equal(got, tt.all) {
			t.Errorf("Unmarshal(%s): got problems %q, want %q", tt.text, got, tt.all)
		}
		if got == nil && p != tt.want {
			t.Errorf("Unmarshal(%s): got %v, want %v", tt.text, p, tt.want)
		}
	}
}

func TestForPanics(t *testing.T) {
	t.Parallel()
	type pot struct {
		Lid string `json:"lid" schema:"lid"`
	}
	type half struct {
		Half *int `json:"half"`
	}
	type cups struct {
		Cups bool `json:"cups" schema:"chars=1-3"`
	}
	for _, tt := range []struct {
		name, want string
		call       func()
	}{
		{"an unknown rule", "schema: field lid has the unknown rule lid", func() { For(pot{}, nil) }},
		{"a rule for a bool", "schema: field cups has a rule, and is not a string",
			func() { For(cups{}, nil) }},
		{"a number", "schema: field half has the type int, which isn't supported: see CONTRIBUTING.md",
			func() { For(half{}, nil) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if got := recover(); got != tt.want {
					t.Errorf("panic: got %v, want %s", got, tt.want)
				}
			}()
			tt.call()
		})
	}
}

// TestDecodeFixedZero tests that a fixed field with its zero value can be set, once.
func TestDecodeFixedZero(t *testing.T) {
	var object struct {
		Made time.Time `json:"made" schema:"fixed"`
		Size string    `json:"size" schema:"fixed"`
	}
	s := For(&object, nil)
	got := s.Unmarshal([]byte(`{"made":"2027-03-01T18:00:00Z","size":"s"}`), &object, Merge).All()
	if got != nil {
		t.Errorf("Unmarshal into zero fields: got %q, want no problems", got)
	}
	got = s.Unmarshal([]byte(`{"size":"m"}`), &object, Merge).All()
	want := []string{"size can't be changed: it is s"}
	if !slices.Equal(got, want) {
		t.Errorf("Unmarshal into fields with values: got %q, want %q", got, want)
	}
}
