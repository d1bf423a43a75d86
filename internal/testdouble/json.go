package testdouble

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"example.com/events/internal/httpapi"
	"example.com/events/internal/schema"
	"example.com/events/internal/strict"
)

// faultJSON is a fault in the control API, which ignores ID and Hits in a request. The other fields replace
// those of Fault, which package schema can't decode.
type faultJSON struct {
	ID        string `json:"id"`
	Operation string `json:"operation"`
	Status    number `json:"status"`
	Fault
	Header header   `json:"header"`
	Patch  object   `json:"patch"`
	Delay  duration `json:"delay"`
	Skip   number   `json:"skip"`
	Times  number   `json:"times"`
	Hits   number   `json:"hits"`
}

var faultSchema = schema.For(faultJSON{}, nil)

// MarshalJSON implements [json.Marshaler].
func (f *InjectedFault) MarshalJSON() ([]byte, error) {
	return strict.Encode(faultJSON{
		f.id, f.operation, number(f.Status), f.Fault, header(f.Header), object(f.Patch),
		duration(f.Delay), number(f.Skip), number(f.Times), number(f.Hits()),
	}), nil
}

// decodeFault creates the fault that a request describes. p has the problems of its fields.
func (d *Double) decodeFault(in *faultJSON, p *schema.FieldProblems) (*InjectedFault, error) {
	err := toError(p)
	if err != nil {
		return nil, err
	}
	f := in.Fault
	f.Header, f.Patch, f.Delay = http.Header(in.Header), string(in.Patch), time.Duration(in.Delay)
	f.Status, f.Skip, f.Times = int(in.Status), int(in.Skip), int(in.Times)
	return d.newFault(in.Operation, f)
}

// toError returns a 400 with all problems, or nil.
func toError(p *schema.FieldProblems) error {
	problems := p.All()
	if problems == nil {
		return nil
	}
	return httpapi.BadRequest(strings.Join(problems, "; "))
}

// number is a whole number of at most 31 bits and a sign.
type number int

// DecodeJSON implements [schema.Decoder].
func (n *number) DecodeJSON(v strict.Value) string {
	parsed, err := strconv.ParseInt(v.Text, 10, 32)
	*n = number(parsed)
	if v.Kind != strict.Number || err != nil {
		return "must be a whole number of at most 9 digits"
	}
	return ""
}

// duration is a [time.Duration] that is a string such as "200ms" in JSON.
type duration time.Duration

// MarshalText implements [encoding.TextMarshaler].
func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// DecodeJSON implements [schema.Decoder].
func (d *duration) DecodeJSON(v strict.Value) string {
	parsed, err := time.ParseDuration(v.Text)
	*d = duration(parsed)
	if v.Kind != strict.String || err != nil {
		return `must be a string with a duration of at most 2562047h, such as "200ms", "1.5s" or "2h"`
	}
	return ""
}

// header is an [http.Header] that is an object with lists of strings in JSON.
type header http.Header

// DecodeJSON implements [schema.Decoder].
func (h *header) DecodeJSON(v strict.Value) string {
	const problem = `must map each name once to a list of strings: {"X-A":["b"]}`
	if v.Kind != strict.Object {
		return problem
	}
	*h = header{}
	for _, field := range v.Members {
		_, repeated := (*h)[field.Name]
		if repeated || field.Value.Kind != strict.Array {
			return problem
		}
		values := []string{}
		for _, value := range field.Value.Members {
			if value.Value.Kind != strict.String {
				return problem
			}
			values = append(values, value.Value.Text)
		}
		(*h)[field.Name] = values
	}
	return ""
}

// object is the text of a JSON object, or "".
type object string

// MarshalJSON implements [json.Marshaler].
func (o object) MarshalJSON() ([]byte, error) {
	if o == "" {
		return []byte("null"), nil
	}
	return []byte(o), nil
}

// DecodeJSON implements [schema.Decoder]. Any value is valid here; see [Fault.problems].
func (o *object) DecodeJSON(v strict.Value) string {
	*o = object(encode(v))
	return ""
}

// encode returns the JSON of a value, with all members of objects, even if their names are repeated.
func encode(v strict.Value) string {
	var members []string
	for _, m := range v.Members {
		text := encode(m.Value)
		if v.Kind == strict.Object {
			text = string(strict.Encode(m.Name)) + ":" + text
		}
		members = append(members, text)
	}
	switch v.Kind {
	case strict.Object:
		return "{" + strings.Join(members, ",") + "}"
	case strict.Array:
		return "[" + strings.Join(members, ",") + "]"
	case strict.String:
		return string(strict.Encode(v.Text))
	case strict.Bool:
		return strconv.FormatBool(v.Bool)
	case strict.Number:
		return v.Text
	}
	return "null"
}
