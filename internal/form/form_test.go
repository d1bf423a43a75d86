package form

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"example.com/events/internal/strict"
)

// thing has a member of every kind, and every rule of members once.
type thing struct {
	ID     string        `json:"id" form:"id=thg fixed server"`
	Owner  string        `json:"owner" form:"required fixed server"`
	Made   time.Time     `json:"made" form:"fixed"`
	Seen   time.Time     `json:"seen" form:"server"`
	Title  string        `json:"title" form:"title required"`
	Secret string        `json:"secret"`
	From   time.Time     `json:"from" form:"required"`
	Size   *string       `json:"size" form:"one_of=s|m|l empty_is_null"`
	Note   *string       `json:"note"`
	Open   bool          `json:"open"`
	Count  int           `json:"count"`
	Wait   time.Duration `json:"wait"`
	Till   *time.Time    `json:"till"`
	Zone   string        `json:"zone" form:"zone empty_is_null"`
}

var things = NewTable(thing{}, Rules{"title": Title, "zone": Zone})

func (x *thing) form() Form { return things.Form(x) }

// known ends the problem of the last unknown member.
const known = " (the members are id, owner, made, seen, title, secret, " +
	"from, size, note, open, count, wait, till, zone)"

var noon = time.Date(2027, 1, 2, 12, 0, 0, 500, time.UTC)

// full has every member set.
func full() thing {
	size, note, till := "m", "", noon.Add(time.Hour)
	return thing{"thg_1", "own_1", noon, noon, "Tea", "s3cret", noon,
		&size, &note, true, -7, 90 * time.Second, &till, "UTC"}
}

// client is New for a thing that a client gives.
const client Mode = -1

// fill fills a thing, a full one in mode Merge and else a new one, and returns its
// problems, and its JSON as it is then.
func fill(t *testing.T, mode Mode, in string) (*Problems, string) {
	t.Helper()
	v, err := strict.Parse([]byte(in))
	if err != nil {
		t.Fatalf("Parse(%s) = %v", in, err)
	}
	var x thing
	if mode == Merge {
		x = full()
	}
	f := x.form()
	if mode == client {
		f, mode = f.ByClient(), New
	}
	p := f.Fill(v, mode)
	return p, encoded(t, x)
}

func TestFill(t *testing.T) {
	t.Parallel()
	const (
		at    = `"2027-01-02T12:00:00.0000005Z"`
		never = `"0001-01-01T00:00:00Z"`
		least = `"title":"Tea","secret":"s3cret","from":` + at + `,`
		ids   = `{"id":"thg_1","owner":"own_1","made":` + at + `,`
		all   = ids + `"seen":` + at + `,` + least +
			`"size":"m","note":"","open":true,"count":-7,"wait":"1m30s",` +
			`"till":"2027-01-02T13:00:00.0000005Z","zone":"UTC"}`
		nothing = `"size":null,"note":null,"open":false,"count":0,"wait":"0s","till":null,"zone":""}`
		nulls   = `"size":null,"note":null,"open":null,"count":null,"wait":null,"till":null,"zone":null}`
		empty   = `{"id":"","owner":"own_1","made":` + never + `,"seen":` + never + `,` + least + nothing
		clients = `{"id":"","owner":"","made":` + never + `,"seen":` + never + `,` + least + nothing
	)
	for _, tt := range []struct {
		name     string
		mode     Mode
		in, want string
	}{
		{"all", New, `{"till":"2027-01-02T14:00:00.0000005+01:00","wait":"1m30s","count":-7,"open":true,
			"note":"","size":"m","from":"2027-01-02t12:00:00.0000005z","secret":"s3cret","zone":"UTC",
			"title":"Tea","seen":` + at + `,"made":` + at + `,"owner":"own_1","id":"thg_1"}`, all},
		{"the least", New, `{"owner":"own_1",` + least[:len(least)-1] + `}`, empty},
		{"null is left out", New,
			`{"owner":"own_1","id":null,"made":null,"seen":null,` + least + nulls, empty},
		{"a client's least", client, `{"made":null,` + least[:len(least)-1] + `}`, clients},
		{"nothing given", Merge, `{}`, all},
		{"fixed as they are", Merge,
			`{"id":"thg_1","owner":"own_1","made":"2027-01-02T11:00:00.0000005-01:00"}`, all},
		{"null where fixed", Merge, `{"id":null,"owner":null,"made":null}`, all},
		{"null where not", Merge, `{"seen":null,"secret":null,` + nulls,
			ids + `"seen":` + never + `,` + strings.Replace(least, "s3cret", "", 1) + nothing},
		{"changes", Merge, `{"note":"\u0000","open":false,"count":-0,"wait":"1.5h","secret":"é"}`,
			ids + `"seen":` + at + `,` + strings.Replace(least, "s3cret", "é", 1) +
				`"size":"m","note":"\u0000","open":false,"count":0,"wait":"1h30m0s",` +
				`"till":"2027-01-02T13:00:00.0000005Z","zone":"UTC"}`},

		{"empty is null in a new one", New, `{"owner":"own_1","size":"",` + least + `"zone":""}`, empty},
		{"empty is null in a client's", client, `{"size":"",` + least + `"zone":""}`, clients},
		{"empty is null in a merge", Merge, `{"size":"","zone":""}`,
			strings.NewReplacer(`"m"`, `null`, `"UTC"`, `""`).Replace(all)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if p, got := fill(t, tt.mode, tt.in); p.All() != nil || got != tt.want {
				t.Errorf("Fill(%s): %q,\n got %s\nwant %s", tt.in, p.All(), got, tt.want)
			}
		})
	}
}

func TestFillProblems(t *testing.T) {
	t.Parallel()
	const (
		date = "must be a date-time such as 2027-03-01T18:00:00Z or 2027-03-01T18:00:00+02:00: " +
			"a day and time that exist, with a T between them and Z or an offset from UTC at the end"
		span  = "must be a string with a duration, such as 200ms, 1.5s or 2h"
		count = "count must be a whole number in digits"
		open  = "open must be true or false, not a number"
		least = `"title":"Tea","from":"2027-01-02T12:00:00Z"`
	)
	var many, each []string // unknown members
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
		{"array", New, `[{}]`, []string{"must be a JSON object, not an array"}},
		{"null", Merge, `null`, []string{"must be a JSON object, not null"}},
		{"string", client, `"{}"`, []string{"must be a JSON object, not a string"}},
		{"wrong types, in the order of the form", Merge, `{"till":true,"wait":0,"count":"5","open":0,"note":1,
			"size":[],"from":5,"secret":{},"title":false,"seen":0,"made":{},"owner":1,"id":[]}`, []string{
			"id must be a string, not an array",
			"owner must be a string, not a number",
			"made " + date,
			"seen " + date,
			"title must be a string, not a boolean",
			"secret must be a string, not an object",
			"from " + date,
			"size must be a string, not an array",
			"note must be a string, not a number",
			open, count, "wait " + span, "till " + date,
		}},
		{"wrong values", Merge, `{"id":"thg","seen":"2027-03-01T24:00Z","title":" ","size":"xl","count":1.0,
			"wait":"5","till":"2027-02-30T00:00:00Z","zone":"Paris"}`, []string{
			"id must be thg_ and 1 to 64 of A-Z a-z 0-9 _ -",
			"seen " + date,
			"title must have 1 to 255 characters, not only white space",
			"size must be s, m or l",
			count, "wait " + span,
			"till " + date,
			"zone must be a time zone name of the form Area/City from the IANA list in its exact case, " +
				"such as Europe/Paris, or UTC",
		}},
		{"too large", Merge, `{"count":92233720368547758080}`, []string{count}},
		{"required", New, `{}`, []string{"owner is required", "title is required", "from is required"}},
		{"required and null", New, `{"from":null,"title":null,"owner":null}`, []string{
			"owner is required and must not be null",
			"title is required and must not be null",
			"from is required and must not be null",
		}},
		{"required of an object that exists", Merge, `{"from":null,"title":null,"owner":null}`, []string{
			"title is required and must not be null",
			"from is required and must not be null",
		}},
		{"fixed", Merge, `{"made":"2027-01-02T12:00:00Z","owner":"","id":"thg_2"}`, []string{
			"id never changes: it is thg_1",
			"owner never changes: it is own_1",
			"made never changes: it is 2027-01-02T12:00:00.0000005Z",
		}},
		{"the server's", client, `{"seen":1,"owner":null,"id":"","seen":2,"open":1}`, []string{
			"seen is given more than once: send it once",
			"title is required",
			"from is required",
			open,
			"seen is set by the server, so leave it out",
			"owner is set by the server, so leave it out",
			"id is set by the server, so leave it out",
		}},
		{"twice", Merge, `{"note":null,"count":1,"count":1,"note":"x","note":"y","open":1,"open":true,
			"wait":null,"wait":"1s"}`, []string{
			"note is given more than once: send it once",
			open,
			"count is given more than once: send it once",
			"wait is given more than once: send it once",
		}},
		{"unknown", Merge, `{"Title":1,"open":1,"a b":2}`, []string{
			open, "Title is not known", `"a b" is not known` + known,
		}},
		{"unknown to a client", client, `{"x":1,"id":1,` + least + `}`, []string{
			"id is set by the server, so leave it out",
			"x is not known (the members are made, title, secret, " +
				"from, size, note, open, count, wait, till, zone)",
		}},
		{"20 unknown", Merge, `{` + strings.Join(many[:20], ",") + `}`, append(each[:19:19], each[19]+known)},
		{"23 unknown", Merge, `{` + strings.Join(many, ",") + `}`,
			append(each[:19:19], each[19]+", nor are 3 more"+known)},
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
			if p, _ := fill(t, tt.mode, tt.in); !slices.Equal(p.All(), tt.want) {
				t.Errorf("Fill(%s):\n%s\nwant\n%s",
					tt.in, strings.Join(p.All(), "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

func TestAdd(t *testing.T) {
	t.Parallel()
	p, _ := fill(t, Merge, `{"count":"x","nope":1}`)
	p.Add("till", "is late")
	p.Add("count", "has one already")
	p.Add("title", "is odd")
	p.Add("nope", "is no member")
	p.Add("wait", "")
	want := "title is odd\ncount must be a whole number in digits\ntill is late\nnope is not known" + known
	if got := strings.Join(p.All(), "\n"); got != want {
		t.Errorf("All() =\n%s\nwant\n%s", got, want)
	}
	if !p.Has("title") || !p.Has("count") || p.Has("nope") || p.Has("open") {
		t.Errorf("Has(title, count, nope, open) = %t, %t, %t, %t, want true, true, false, false",
			p.Has("title"), p.Has("count"), p.Has("nope"), p.Has("open"))
	}
	p, _ = fill(t, Merge, `[]`)
	p.Add("title", "is beside the point")
	if got := p.All(); len(got) != 1 || p.Has("title") {
		t.Errorf("All() of an array = %q, want one problem", got)
	}
}

// encoded is x as encoding/json has it, but for the duration, which is in the form of Fill.
func encoded(t *testing.T, x thing) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(x); err != nil {
		t.Fatalf("Encode(%+v) = %v", x, err)
	}
	number, duration := fmt.Sprintf(`"wait":%d`, x.Wait), fmt.Sprintf(`"wait":%q`, x.Wait)
	return strings.Replace(strings.TrimSuffix(b.String(), "\n"), number, duration, 1)
}

// checkWays holds what Fill reads from the text of encoding/json and from JSON against x,
// which passes the rules.
func checkWays(t *testing.T, x thing) {
	t.Helper()
	text, err := strict.Parse([]byte(encoded(t, x)))
	if err != nil {
		t.Fatalf("Parse(%s) = %v", encoded(t, x), err)
	}
	for _, way := range []struct {
		name string
		v    strict.Value
	}{
		{"what encoding/json wrote", text},
		{"what JSON returned", x.form().JSON()},
	} {
		var again thing
		problems := again.form().Fill(way.v, New).All()
		if problems != nil || !reflect.DeepEqual(again, x) {
			t.Errorf("Fill of %s = %q\n got %s\nwant %s",
				way.name, problems, encoded(t, again), encoded(t, x))
		}
	}
}

func TestWays(t *testing.T) {
	t.Parallel()
	for _, s := range odd {
		x := full()
		x.Title, x.Secret, x.Note = "x"+s, s, &s
		checkWays(t, x)
	}
	x, least := thing{}, thing{Owner: "own_1", Title: "Tea", From: noon}
	problems := x.form().Fill(least.form().JSON(), New).All()
	if problems != nil || !reflect.DeepEqual(x, least) {
		t.Errorf("Fill of the JSON of the least = %q, %s", problems, encoded(t, x))
	}
	bad := "\xff"
	x = thing{Owner: bad, Title: bad, From: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), Note: &bad}
	got := new(thing).form().Fill(x.form().JSON(), New).All()
	if len(got) != 4 || got[0] != "owner must be valid UTF-8" || got[3] != "note must be valid UTF-8" ||
		!strings.HasPrefix(got[2], "from must be a date-time") {
		t.Errorf("Fill of strings that are not UTF-8 and the year 10000 = %q, want four problems", got)
	}
}

// odd are strings that an encoder may stumble over.
var odd = []string{
	"", `say "hi"`, `a \ b`, "a\x1f", "\x00\x01\b\f\n\r\t", "a\u2028b\u2029c", "… “” \u20ac \u2027\u202a",
	"<a> & 'b' \x7f\u0080\ufffd", "\U0001f600 e\u0301 \U0010ffff",
}

func FuzzWays(f *testing.F) {
	for _, s := range odd {
		f.Add(s, s, true, false, 5, int64(-1), int64(1800000000), int64(120))
	}
	f.Add("…", "", false, true, math.MinInt, int64(1<<62), int64(-62135596800), int64(0))
	f.Fuzz(func(t *testing.T, owner, note string, set, open bool, count int, wait, sec, nsec int64) {
		at := time.Unix(sec%(1<<38), nsec).UTC()
		if !utf8.ValidString(owner) || !utf8.ValidString(note) || at.Year() < 1 || at.Year() > 9999 {
			return // Fill lets none of it in
		}
		x := full()
		x.Owner, x.Secret, x.Note, x.Open, x.Count = "own_"+owner, note, &note, open, count
		x.Wait, x.Made, x.Till = time.Duration(wait), at, &at
		if !set || at.IsZero() {
			x.Size, x.Note, x.Till = nil, nil, nil
		}
		checkWays(t, x)
	})
}

func TestRules(t *testing.T) {
	t.Parallel()
	rep := strings.Repeat
	visible := check(Visible, "is not visible")
	for _, tt := range []struct {
		name string
		rule *Rule
		good []string
		want string // how the problem of the bad begins
		bad  []string
	}{
		{"Chars 2-3", Chars("2-3"), []string{"ab", "éèê", "\U0001f600\U0001f600"},
			"must have 2 to 3 characters, not 1", []string{"a", "\U0001f600"}},
		{"Chars 2-3", Chars("2-3"), nil, "must have 2 to 3 characters, not 4", []string{"abcd", "éééé"}},
		{"Chars 0-3", Chars("0-3"), []string{"", "abc"},
			"must have 0 to 3 characters, not 4", []string{"abcd"}},
		{"OneOf", OneOf("a|b|c"), []string{"a", "b", "c"},
			"must be a, b or c", []string{"", "A", "ab", "a ", "a, b, c"}},
		{"ID", ID("usr"), []string{"usr_1", "usr__-", "usr_usr_aZ09", "usr_" + rep("a", 64)},
			"must be usr_ and 1 to 64 of A-Z a-z 0-9 _ -",
			[]string{"", "usr", "usr_", "usr1", "usr_" + rep("a", 65), "evt_1", " usr_1", "USR_1", "usr_a.b",
				"usr_a b", "usr_é", "usr_a\n", "usr_\x00"}},
		{"Title", Title, []string{"a", " a", rep("é", 255)},
			"must have 1 to 255 characters, not only white space",
			[]string{"", " ", "\t\r\n\u00a0\u2003\u3000"}},
		{"Title", Title, nil, "must have 1 to 255 characters, not 256", []string{rep("é", 256)}},
		{"Email", Email, []string{"a@b", "é@ü", rep("a", 252) + "@b", rep("é", 252) + "@b"},
			"must be an address with one @", []string{"", "@", "a", "a@", "@b", "a@b@c", "a@@b",
				"a@b\n", "a\r\n@b", "a b@c", "a@\x00b", "a\u0085@b", "a@b\u00a0", "a@b\x7f", "\u2028a@b"}},
		{"Email", Email, nil, "must have 3 to 254 characters, not 255", []string{rep("a", 253) + "@b"}},
		{"URL", URL, []string{"HTTP://a", "https://example.com/" + rep("a", 2028)},
			"must be an http or https URL with a host",
			[]string{"", "ftp://a", "a", "https://", "https://example.com/" + rep("a", 2029)}},
		{"Zone", Zone, []string{"UTC", "Europe/Paris", "America/Argentina/Ushuaia"},
			"must be a time zone name",
			[]string{"", "utc", "europe/paris", "Paris", "Europe/", "+02:00", "Europe/Paris "}},
		{"Slug", Slug, []string{"a", "0", "a-b-9", "creates", "create-1", rep("a", 100)},
			"must be at most 100 of a-z 0-9 with single hyphens",
			[]string{"", "create", "-", "-a", "a-", "a--b", "A", "a_b", "a b", "aéb", rep("a", 101)}},
		{"Visible", visible, []string{"", "!~", "a-Z_0.9"},
			"is not visible", []string{" ", "a b", "\x7f", "a\n", "\x00", "é"}},
	} {
		for i, s := range append(tt.good, tt.bad...) {
			got, good := tt.rule.Of(s), i < len(tt.good)
			if good && got != "" || !good && !strings.HasPrefix(got, tt.want) {
				t.Errorf("%s(%q) = %q, want %q only where it is bad", tt.name, s, got, tt.want)
			}
		}
	}
}

// TestTable: the tags of a struct make the members that a literal would have.
func TestTable(t *testing.T) {
	t.Parallel()
	type Clay struct {
		Lid  *string   `json:"lid,omitempty" form:"empty_is_null lid"`
		Made time.Time `json:"made" form:"required"`
	}
	type pot struct {
		ID     string `json:"id" form:"fixed id=pot server"`
		Secret string `json:"-" form:"required"`
		Clay
		weight int // no member
	}
	got := NewTable(&pot{}, Rules{"lid": OneOf("glass|tin")})
	for i, good := range map[int]string{0: "pot_1", 2: "tin"} {
		if rule := got[i].Rule; rule == nil || rule.Of(good) != "" || rule.Of("pan_1") == "" {
			t.Errorf("the rule of %s is not the one that its tag has", got[i].Name)
		}
		got[i].Rule = nil // functions cannot be compared
	}
	want := Table{
		{Name: "id", Flags: Fixed | Server, field: []int{0}, prefix: `"id":`},
		{Name: "secret", Flags: Required, field: []int{1}},
		{Name: "lid", Flags: EmptyIsNull, field: []int{2, 0}, prefix: `"lid":`},
		{Name: "made", Flags: Required, field: []int{2, 1}, prefix: `"made":`},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("NewTable = %+v\nwant %+v", got, want)
	}
	defer func() {
		if problem := recover(); problem != "form: the member lid has the unknown rule lid" {
			t.Errorf("NewTable without the rule panics with %v", problem)
		}
	}()
	NewTable(pot{weight: 1}, Rules{})
}

func TestUnknownType(t *testing.T) {
	t.Parallel()
	defer func() {
		if want := "form: the member half has the type float64"; recover() != want {
			t.Errorf("Fill of a float64 does not panic with %q", want)
		}
	}()
	half, _ := strict.Parse([]byte(`{"half":0.5}`))
	object := new(struct {
		Half float64 `json:"half"`
	})
	NewTable(object, nil).Form(object).Fill(half, New)
}
