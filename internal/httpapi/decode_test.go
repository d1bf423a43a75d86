package httpapi

import (
	"encoding/json"
	"net/http"
	"testing"

	"example.com/events/internal/strict"
)

type part struct {
	Count  int             `json:"count"`
	Header http.Header     `json:"header"`
	Any    json.RawMessage `json:"any"`
}

type whole struct {
	Name string `json:"name"`
	part
	Open bool     `json:"open"`
	Wait Duration `json:"wait"`
	Till *string  `json:"till"`
}

func TestDecode(t *testing.T) {
	t.Parallel()
	const (
		fields = ": the fields are name, count, header, any, open, wait, till"
		count  = "count must be a whole number in digits"
		header = `header must map each name to a list of strings: {"X-A":["b"]}`
		wait   = `wait must be a string with a duration, such as "200ms", "1.5s" or "2h"`
	)
	for _, tt := range []struct{ text, want string }{
		{`{}`, `{"name":"","count":0,"header":null,"any":null,"open":false,"wait":"0s","till":null}`},
		{`{"wait":"1.5h","open":true,"any":{"a":[1.50,"<"]},"header":{"X-A":["b"],"C":[]},"count":-7,
			"name":"é","till":""}`,
			`{"name":"é","count":-7,"header":{"C":[],"X-A":["b"]},"any":{"a":[1.50,"<"]},"open":true,` +
				`"wait":"1h30m0s","till":""}`},
		{`{"name":null,"count":null,"header":null,"open":null,"wait":null,"till":null}`,
			`{"name":"","count":0,"header":null,"any":null,"open":false,"wait":"0s","till":null}`},

		{``, "the body is empty: send a JSON object"},
		{`{"name":"x",}`, "the body is not a JSON object: line 1, column 13: expected a field name in " +
			"double quotes: remove a trailing comma"},
		{`null`, "the body must be a JSON object, not null"},
		{`[{}]`, "the body must be a JSON object, not an array"},
		{`{"name":1}`, "name must be a string"},
		{`{"count":1.0}`, count},
		{`{"count":"5"}`, count},
		{`{"count":92233720368547758080}`, count},
		{`{"header":[]}`, header},
		{`{"header":{"X-A":"b"}}`, header},
		{`{"till":1}`, "till must be a string"},
		{`{"open":1}`, "open must be true or false"},
		{`{"wait":5}`, wait},
		{`{"wait":"5"}`, wait},
		{`{"Name":"x"}`, `"Name" is not known` + fields},
		{`{"y":1,"open":0,"x":1,"count":"a"}`,
			count + `; open must be true or false; "x" is not known` + fields +
				`; "y" is not known` + fields},
	} {
		var x whole
		err := Decode([]byte(tt.text), &x)
		got := string(strict.Encode(x))
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("Decode(%s): got %s\nwant %s", tt.text, got, tt.want)
		}
	}
}
