package strict_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"example.com/events/internal/strict"
)

// show formats a value in one line: a literal as it is, a string quoted.
func show(v strict.Value) string {
	switch v.Kind {
	case strict.Null:
		return "null"
	case strict.Bool:
		return fmt.Sprint(v.Bool)
	case strict.Number:
		return v.Text
	case strict.String:
		return fmt.Sprintf("%+q", v.Text)
	case strict.Array:
		var items []string
		for _, m := range v.Members {
			items = append(items, m.Name+show(m.Value))
		}
		return "[" + strings.Join(items, " ") + "]"
	case strict.Object:
		var members []string
		for _, m := range v.Members {
			members = append(members, fmt.Sprintf("%+q:%s", m.Name, show(m.Value)))
		}
		return "{" + strings.Join(members, " ") + "}"
	}
	return "a value of kind " + v.Kind.String()
}

// deep returns n nested arrays.
func deep(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"null", `null`, `null`},
		{"true", `true`, `true`},
		{"false", `false`, `false`},
		{"white space of all four kinds",
			" \t\r\n[ \t\r\n1 \t\r\n, \t\r\n{ \t\r\n} \t\r\n] \t\r\n", `[1 {}]`},
		{"empty string", `""`, `""`},
		{"empty array", `[]`, `[]`},
		{"empty object", `{}`, `{}`},
		{"empty name", `{"":0}`, `{"":0}`},
		{"nested", `{"a":[{"b":[[],{}]},null],"c":{"d":"e"}}`, `{"a":[{"b":[[] {}]} null] "c":{"d":"e"}}`},
		{"container after container", `[[1,[2]],[3],{"a":[4]},5]`, `[[1 [2]] [3] {"a":[4]} 5]`},
		{"duplicates kept in order", `{"a":1,"b":2,"a":3}`, `{"a":1 "b":2 "a":3}`},
		{"duplicate after unescaping", `{"a":1,"\u0061":2}`, `{"a":1 "a":2}`},
		{"composed and decomposed names differ", "{\"\u00e9\":1,\"e\u0301\":2}", `{"\u00e9":1 "e\u0301":2}`},

		{"zero", `0`, `0`},
		{"minus zero", `-0`, `-0`},
		{"minus zero with all parts", `-0.0e-0`, `-0.0e-0`},
		{"zero with exponent", `0E+00`, `0E+00`},
		{"exponent with leading zeros", `1e007`, `1e007`},
		{"more digits than a float has",
			`[1.00000000000000000001, 12345678901234567890123]`,
			`[1.00000000000000000001 12345678901234567890123]`},
		{"out of a float's range", `[1e99999,-1E-99999]`, `[1e99999 -1E-99999]`},

		{"simple escapes", `"\"\\\/\b\f\n\r\t"`, `"\"\\/\b\f\n\r\t"`},
		{"text around escapes", `"ab\ncd\tef"`, `"ab\ncd\tef"`},
		{"hex digits in both cases", `"\u00e9\u00C9\uABCD\uabcd"`, `"\u00e9\u00c9\uabcd\uabcd"`},
		{"escaped NUL", `"\u0000"`, `"\x00"`},
		{"escaped quote and backslash", `"\u0022\u005c"`, `"\"\\"`},
		{"escaped backslash before u", `"\\u0041"`, `"\\u0041"`},
		{"surrogate pair", `"\ud83d\uDE00"`, `"\U0001f600"`},
		{"first and last pair", `"\ud800\udc00\udbff\udfff"`, `"\U00010000\U0010ffff"`},
		{"escaped noncharacters", `"\ufffe\uffff\ufdd0\ufffd"`, `"\ufffe\uffff\ufdd0\ufffd"`},
		{"DEL and C1 controls", "\"\x7f\u0080\u009f\"", `"\x7f\u0080\u009f"`},
		{"line separators", "\"\u2028\u2029\"", `"\u2028\u2029"`},
		{"byte order mark inside", "\"\ufeff\"", `"\ufeff"`},
		{"replacement character itself", "\"\ufffd\"", `"\ufffd"`},
		{"four-byte characters", "\"\U0001f600\U0010ffff\"", `"\U0001f600\U0010ffff"`},
		{"comment in a string", `"/* no */ // no # no"`, `"/* no */ // no # no"`},
		{"brackets in a string", `"[{]},:"`, `"[{]},:"`},

		{"as many as allowed", "[" + strings.Repeat("0,", strict.MaxValues-2) + "0]",
			"[" + strings.Repeat("0 ", strict.MaxValues-2) + "0]"},
		{"as deep as allowed", deep(strict.MaxDepth), deep(strict.MaxDepth)},
		{"depth is given back", "[" + strings.Repeat("[[]],", 100) + "{}]",
			"[" + strings.Repeat("[[]] ", 100) + "{}]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			data := []byte(tt.in)
			v, err := strict.Parse(data)
			if err != nil {
				t.Fatalf("Parse(%q): got %v, want %s", tt.in, err, tt.want)
			}
			clear(data) // a Value shares no memory with its text
			if got := show(v); got != tt.want {
				t.Errorf("Parse(%q): got %s, want %s", tt.in, got, tt.want)
			}
		})
	}
}

func TestTooManyValues(t *testing.T) {
	t.Parallel()
	// list returns an array of n values.
	list := func(n int, value string) string { return "[" + strings.Repeat(value+",", n-1) + value + "]" }
	refused := func(err error) bool { return err != nil && strings.Contains(err.Error(), "send fewer") }
	most := "[" + list(strict.MaxValues-1, "0") + "]"
	for _, err := range strict.ParseArray([]byte(most)) {
		if err != nil {
			t.Errorf("ParseArray of an element with %d values: got %v, want no error", strict.MaxValues, err)
		}
	}
	for _, value := range []string{`0`, `"x"`, `{}`, `[]`, `true`, `-1`} {
		text := list(strict.MaxValues, value) // the array itself is one value more
		_, err := strict.Parse([]byte(text))
		if !refused(err) {
			t.Errorf("Parse of an array of %d times %s: got %v, want an error", strict.MaxValues, value, err)
		}
		for _, err := range strict.ParseArray([]byte(text)) {
			if err != nil {
				t.Errorf("ParseArray of an array of %d times %s: got %v, want no error",
					strict.MaxValues, value, err)
			}
		}
		for _, err := range strict.ParseArray([]byte("[" + text + "]")) {
			if !refused(err) {
				t.Errorf("ParseArray of an element with %d times %s: got %v, want an error",
					strict.MaxValues, value, err)
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	const (
		value, comma            = "expected a value", "expected a comma or ]"
		name, colon, after, end = "name in double quotes", "a colon", "unexpected text after", "a comma or }"
		open, control, escape   = "unclosed string", "control character", "invalid escape"
		notUTF8, number, deeply = "invalid UTF-8", "invalid number", "32 levels deep"
	)
	for _, tt := range []struct {
		in           string
		line, column int
		problem      string
	}{
		{"", 1, 1, value},
		{" \n ", 2, 2, value},
		{"\x00", 1, 1, value},
		{"\ufeff{}", 1, 1, value},
		{"\ufeff", 1, 1, value},
		{"[\ufeff]", 1, 2, value},
		{"\u00a0[]", 1, 1, value},
		{"\v1", 1, 1, value},
		{"[\f]", 1, 2, value},
		{"[\u2060]", 1, 2, value},

		{"nul", 1, 1, value},
		{"nulll", 1, 5, after},
		{"[nullnull]", 1, 6, comma},
		{"True", 1, 1, value},
		{"[tru]", 1, 2, value},
		{"[FALSE]", 1, 2, value},
		{"undefined", 1, 1, value},
		{"NaN", 1, 1, value},
		{"[-NaN]", 1, 2, number},
		{"Infinity", 1, 1, value},
		{"-Infinity", 1, 1, number},
		{"'a'", 1, 1, value},
		{"{'a':1}", 1, 2, name},
		{"\u201ca\u201d", 1, 1, value},
		{"`a`", 1, 1, value},

		{"/* x */ 1", 1, 1, value},
		{"// x\n1", 1, 1, value},
		{"# x\n1", 1, 1, value},
		{"[1 /* x */]", 1, 4, comma},
		{"[1, // x\n2]", 1, 5, value},
		{"{} // x", 1, 4, after},

		{"1 2", 1, 3, after},
		{"{}{}", 1, 3, after},
		{"{},", 1, 3, after},
		{"[]]", 1, 3, after},
		{"{}\n\n  x", 3, 3, after},
		{"{}\x00", 1, 3, after},
		{`"a" "b"`, 1, 5, after},
		{`""""`, 1, 3, after},

		{"[", 1, 2, value},
		{"[1", 1, 3, comma},
		{"[1,", 1, 4, value},
		{"[[1]", 1, 5, comma},
		{"]", 1, 1, value},
		{"[}", 1, 2, value},
		{"[1}", 1, 3, comma},
		{"[1 2]", 1, 4, comma},
		{"[1:2]", 1, 3, comma},
		{"[,1]", 1, 2, value},
		{"[1,,2]", 1, 4, value},
		{"[1,\n]", 2, 1, value},
		{"[1,,]", 1, 4, value},
		{"[,]", 1, 2, value},
		{`["a" "b"]`, 1, 6, comma},
		{`["a"b"]`, 1, 5, comma},

		{"{", 1, 2, name},
		{`{"a"`, 1, 5, colon},
		{`{"a":`, 1, 6, value},
		{`{"a":1`, 1, 7, end},
		{`{"a":1,`, 1, 8, name},
		{`{"a":1,}`, 1, 8, name},
		{`{"a":1,,"b":2}`, 1, 8, name},
		{`{,}`, 1, 2, name},
		{`{"a"}`, 1, 5, colon},
		{`{"a",1}`, 1, 5, colon},
		{`{"a"::1}`, 1, 6, value},
		{`{"a":1 "b":2}`, 1, 8, end},
		{`{"a":1]`, 1, 7, end},
		{`{"a":1;"b":2}`, 1, 7, end},
		{`{"a" "b"}`, 1, 6, colon},
		{`{a:1}`, 1, 2, name},
		{`{1:1}`, 1, 2, name},
		{`{null:1}`, 1, 2, name},
		{`{[]:1}`, 1, 2, name},
		{`{"a":}`, 1, 6, value},
		{"{\n  \"a\": 1,\n  \"b\": tru\n}", 3, 8, value},
		{"{\r\n\"a\": x}", 2, 6, value},

		{"-", 1, 1, number},
		{"[-]", 1, 2, number},
		{"--1", 1, 1, number},
		{"- 1", 1, 1, number},
		{"+1", 1, 1, number},
		{"00", 1, 1, number},
		{"-01", 1, 1, number},
		{"[012]", 1, 2, number},
		{"0x1F", 1, 2, after},
		{".5", 1, 1, number},
		{"-.5", 1, 1, number},
		{"1.", 1, 1, number},
		{"[1.]", 1, 2, number},
		{"1.e5", 1, 1, number},
		{"1e", 1, 1, number},
		{"1E+", 1, 1, number},
		{"[1e-]", 1, 2, number},
		{"1e+-2", 1, 1, number},
		{"1e1.5", 1, 1, number},
		{"1.2.3", 1, 1, number},
		{"1_000", 1, 2, after},
		{"1,5", 1, 2, after},
		{"\uff11", 1, 1, value},

		{`"`, 1, 1, open},
		{`"abc`, 1, 1, open},
		{"[1,\n \"abc]", 2, 2, open},
		{`"\"`, 1, 1, open},
		{`{"a`, 1, 2, open},
		{"\"a\nb\"", 1, 3, control},
		{"\"a\tb\"", 1, 3, control},
		{"\"\x00\"", 1, 2, control},
		{"\"12345678\x1f\"", 1, 10, control},
		{`"\`, 1, 2, escape},
		{`"ab\`, 1, 4, escape},
		{`"\a"`, 1, 2, escape},
		{`"\'"`, 1, 2, escape},
		{`"\x41"`, 1, 2, escape},
		{`"\0"`, 1, 2, escape},
		{`"\U0041"`, 1, 2, escape},
		{"\"\\\n\"", 1, 2, escape},
		{"\"\\\u00e9\"", 1, 2, escape},
		{`"\u"`, 1, 2, escape},
		{`"\u12`, 1, 2, escape},
		{`"\u123"`, 1, 2, escape},
		{`"\u1234`, 1, 1, open},
		{`"\u12G4"`, 1, 2, escape},
		{`"\u+123"`, 1, 2, escape},
		{`"\u-123"`, 1, 2, escape},
		{`"\u1_23"`, 1, 2, escape},
		{`"\u{41}"`, 1, 2, escape},

		{`"\ud800"`, 1, 2, escape},
		{`"\udfff"`, 1, 2, escape},
		{`"ab\uD834"`, 1, 4, escape},
		{`"\ud834\ud834\udd1e"`, 1, 2, escape},
		{`"\udd1e\ud834"`, 1, 2, escape},
		{`"\ud834x\udd1e"`, 1, 2, escape},
		{`"\ud834\n"`, 1, 2, escape},
		{`"\ud834\u0041"`, 1, 2, escape},
		{`"\ud834\\udd1e"`, 1, 2, escape},
		{`"\ud834\udd1`, 1, 2, escape},
		{`"\ud834\uzzzz"`, 1, 2, escape},
		{`{"\ud800":1}`, 1, 3, escape},

		{"\xff", 1, 1, value},
		{"[\"\xff\"]", 1, 2, notUTF8},
		{"\"\xc3\"", 1, 1, notUTF8},
		{"\"\u00e9\xe9\"", 1, 1, notUTF8},
		{"\"\x80\"", 1, 1, notUTF8},
		{"\"\xc0\xaf\"", 1, 1, notUTF8},
		{"\"\xed\xa0\x80\"", 1, 1, notUTF8},
		{"\"\xf4\x90\x80\x80\"", 1, 1, notUTF8},
		{"\"\xf8\x88\x80\x80\x80\"", 1, 1, notUTF8},
		{"{}\n\xe2\x82", 2, 1, after},
		{"\xff\xfe[\x00]\x00", 1, 1, value},
		{"\x00[\x00]", 1, 1, value},
		{"\"\ufffd\xff\"", 1, 1, notUTF8},

		{deep(strict.MaxDepth + 1), 1, strict.MaxDepth + 1, deeply},
		{strings.Repeat(`{"a":`, strict.MaxDepth+1), 1, 5*strict.MaxDepth + 1, deeply},
		{strings.Repeat("[", 1<<20), 1, strict.MaxDepth + 1, deeply},
	} {
		t.Run(fmt.Sprintf("%.30q", tt.in), func(t *testing.T) {
			t.Parallel()
			_, err := strict.Parse([]byte(tt.in))
			got, position := fmt.Sprint(err), fmt.Sprintf("line %d, column %d: ", tt.line, tt.column)
			if !strings.HasPrefix(got, position) {
				t.Errorf("Parse(%.60q): got %s, want the position %s", tt.in, got, position)
			}
			if !strings.Contains(got, tt.problem) {
				t.Errorf("Parse(%.60q): got %s, want the problem %s", tt.in, got, tt.problem)
			}
			checkParseArray(t, []byte(tt.in))
		})
	}
}

// TestParseBytes tests every byte between characters of one byte and of two.
func TestParseBytes(t *testing.T) {
	t.Parallel()
	for before := range 3 {
		for c := range 256 {
			for _, filler := range []string{"x", "\u00e9"} {
				in := []byte(`"` + strings.Repeat(filler, before) + "?" + strings.Repeat(filler, 9) + `"`)
				in[bytes.IndexByte(in, '?')] = byte(c)
				checkParse(t, in)
			}
		}
	}
}

// TestParseEscapes tests every UTF-16 code unit as an escape.
func TestParseEscapes(t *testing.T) {
	t.Parallel()
	for unit := range 1 << 16 {
		in := fmt.Sprintf(`"\u%04x"`, unit)
		v, err := strict.Parse([]byte(in))
		half := 0xd800 <= unit && unit <= 0xdfff
		if half != (err != nil) {
			t.Fatalf("Parse(%s): got %s, %v, want an error only for half a pair", in, show(v), err)
		}
		if !half && v.Text != string(rune(unit)) {
			t.Fatalf("Parse(%s): got %s, want the character", in, show(v))
		}
	}
	for c := range 256 {
		checkParse(t, []byte{'"', '\\', byte(c), '"'})
	}
}

func TestParseArray(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want, problem string }{
		{"empty", ` [ ] `, ``, ""},
		{"values of every kind", `[null,true,1,"a",[2],{"b":3}]`, `null true 1 "a" [2] {"b":3}`, ""},
		{"invalid UTF-8 after two", "[1,2,\"\xff\"]", `1 2`, "line 1, column 6: invalid UTF-8"},
		{"mistake after two", `[1,2,x,4]`, `1 2`, "line 1, column 6: expected a value"},
		{"mistake inside the third", `[1,[2],[3,x],4]`, `1 [2]`, "line 1, column 11: expected a value"},
		{"not closed", `[1,2`, `1 2`, "line 1, column 5: expected a comma or ]"},
		{"comma at the end", `[1,2,]`, `1 2`, "line 1, column 6: expected a value"},
		{"text after it", `[1] 2`, `1`, "line 1, column 5: unexpected text"},
		{"an object", `{"a":1}`, ``, "line 1, column 1: expected a JSON array"},
		{"a string", ` "[1]"`, ``, "line 1, column 2: expected a JSON array"},
		{"nothing", ``, ``, "line 1, column 1: expected a JSON array"},
		{"as deep as allowed", deep(strict.MaxDepth), deep(strict.MaxDepth - 1), ""},
		{"the array is a level too", `[0,` + deep(strict.MaxDepth) + `]`,
			`0`, "line 1, column 35: nested more than 32 levels"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			var failed error
			for v, err := range strict.ParseArray([]byte(tt.in)) {
				if failed != nil {
					t.Fatalf("ParseArray(%s): got %s, %v after the error %v, want its end",
						tt.in, show(v), err, failed)
				}
				if failed = err; err == nil {
					got = append(got, show(v))
				}
			}
			if got := strings.Join(got, " "); got != tt.want {
				t.Errorf("ParseArray(%s): got %s, want %s", tt.in, got, tt.want)
			}
			if !strings.HasPrefix(fmt.Sprint(failed), cmp.Or(tt.problem, "<nil>")) {
				t.Errorf("end of ParseArray(%s): got %v, want %s", tt.in, failed, tt.problem)
			}
		})
	}
	t.Run("a caller that stops", func(t *testing.T) {
		t.Parallel()
		n := 0
		for range strict.ParseArray([]byte(`[1,2,x`)) {
			if n++; n == 2 {
				break
			}
		}
		if n != 2 {
			t.Errorf("values of ParseArray before the break: got %d, want 2", n)
		}
	})
}

func TestKindString(t *testing.T) {
	t.Parallel()
	names := []string{"null", "a boolean", "a number", "a string", "an array", "an object"}
	for i, want := range names {
		if got := strict.Kind(i).String(); got != want {
			t.Errorf("Kind(%d).String(): got %q, want %q", i, got, want)
		}
	}
}

// checkParse compares Parse with encoding/json. Parse accepts the same texts, except invalid UTF-8,
// half of a surrogate pair, and more than MaxDepth levels or MaxValues values, and returns the same
// values.
func checkParse(t *testing.T, data []byte) {
	t.Helper()
	v, err := strict.Parse(data)
	valid := json.Valid(data) && utf8.Valid(data)
	if err != nil {
		checkError(t, data, err, valid)
		return
	}
	if !valid {
		t.Fatalf("Parse(%q): got %s, want an error", data, show(v))
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if want := decoded(t, d); show(v) != show(want) {
		t.Fatalf("Parse(%q): got %s, want %s", data, show(v), show(want))
	}
}

// checkError tests that an error of Parse has a position in the text and, if the text is valid JSON,
// that it has one of the reasons for which Parse refuses such a text.
func checkError(t *testing.T, data []byte, err error, valid bool) {
	t.Helper()
	var line, column int
	_, scanErr := fmt.Sscanf(err.Error(), "line %d, column %d: ", &line, &column)
	lines := bytes.SplitAfter(data, []byte("\n"))
	if scanErr != nil || line < 1 || line > len(lines) {
		t.Fatalf("Parse(%q): got %v, want a line of the text", data, err)
	}
	if column < 1 || column > len(lines[line-1])+1 {
		t.Fatalf("Parse(%q): got %v, want a column of the line", data, err)
	}
	if !valid {
		return
	}
	brackets := bytes.Count(data, []byte("[")) + bytes.Count(data, []byte("{"))
	for problem, possible := range map[string]bool{
		"surrogate":  bytes.HasPrefix(lines[line-1][column-1:], []byte(`\u`)),
		"deep":       brackets > strict.MaxDepth,
		"send fewer": len(data) > strict.MaxValues,
	} {
		if possible && strings.Contains(err.Error(), problem) {
			return
		}
	}
	t.Fatalf("Parse(%q): got %v, want a value", data, err)
}

// decoded decodes the next value with encoding/json, token by token.
func decoded(t *testing.T, d *json.Decoder) (v strict.Value) {
	t.Helper()
	token, err := d.Token()
	if err != nil {
		t.Fatalf("Token(): got %v, want no error", err)
	}
	switch token := token.(type) {
	case nil:
		return v
	case bool:
		return strict.Value{Kind: strict.Bool, Bool: token}
	case json.Number:
		return strict.Value{Kind: strict.Number, Text: string(token)}
	case string:
		return strict.Value{Kind: strict.String, Text: token}
	case json.Delim:
		if v.Kind = strict.Array; token == '{' {
			v.Kind = strict.Object
		}
	}
	for d.More() {
		if v.Kind == strict.Object {
			name := decoded(t, d).Text
			v.Members = append(v.Members, strict.Member{Name: name, Value: decoded(t, d)})
		} else {
			v.Members = append(v.Members, strict.Member{Value: decoded(t, d)})
		}
	}
	d.Token()
	return v
}

// checkParseArray compares ParseArray with Parse.
func checkParseArray(t *testing.T, data []byte) {
	t.Helper()
	var got strict.Value
	got.Kind = strict.Array
	var err error
	for element, elementErr := range strict.ParseArray(data) {
		if err != nil {
			t.Fatalf("ParseArray(%q): got more after %v, want its end", data, err)
		}
		err = elementErr
		if err == nil {
			got.Members = append(got.Members, strict.Member{Value: element})
		}
	}
	want, wantErr := strict.Parse(data)
	switch {
	case wantErr == nil && want.Kind == strict.Array:
		if err != nil {
			t.Fatalf("end of ParseArray(%q): got %v, want no error", data, err)
		}
		if show(got) != show(want) {
			t.Fatalf("ParseArray(%q): got %s, want %s", data, show(got), show(want))
		}
	case err == nil:
		t.Fatalf("ParseArray(%q): got %s, want an error", data, show(got))
	case bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("[")):
		if err.Error() != wantErr.Error() {
			t.Fatalf("end of ParseArray(%q): got %v, want %v", data, err, wantErr)
		}
	case len(got.Members) > 0:
		t.Fatalf("ParseArray(%q): got %s, want no elements", data, show(got))
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	const text = "<\x00\x1b\n\x7f\u0080\u009f\u00a0é日>&"
	got := string(strict.Encode([]string{text}))
	if want := `["<\u0000\u001b\n` + "\x7f\u0080\u009f\u00a0é日" + `>&"]`; got != want {
		t.Errorf("Encode(%q): got %s, want %s", text, got, want)
	}
	v, err := strict.Parse([]byte(got))
	if err != nil {
		t.Fatalf("Parse(%s): got %v, want no error", got, err)
	}
	if got := v.Members[0].Value.Text; got != text {
		t.Errorf("Parse(Encode(%q)): got %q, want the same", text, got)
	}
}

func FuzzParse(f *testing.F) {
	const event = `{"title": "Engines\nand notes", "timezone": "Europe/London", "meeting_url": null}`
	for _, seed := range []string{
		event, "[" + event + "," + event + "]", deep(40),
		`[null,true,false,-0.5e+10,"\ud83d\ude00\u0000\/",{"a":1,"a":{}}]`,
		`"\ud800"`, "\"\xff\"", "\ufeff1", "[1,]", "01", `{"a" 1}`, `"abcdefgh\"ijklmnop\\"`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		checkParse(t, data)
		checkParseArray(t, data)
	})
}
