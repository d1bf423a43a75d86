package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"example.com/events/internal/strict"
)

// Duration is a [time.Duration] that is a string such as "200ms" in JSON.
type Duration time.Duration

// MarshalText implements [encoding.TextMarshaler].
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Duration(parsed)
	return err
}

// problemsByKind are the problems of values that don't fit a field. They follow the field name in messages.
var problemsByKind = map[reflect.Kind]string{
	reflect.Bool:   "must be true or false",
	reflect.Int:    "must be a whole number in digits",
	reflect.Int64:  `must be a string with a duration, such as "200ms", "1.5s" or "2h"`,
	reflect.Map:    `must map each name to a list of strings: {"X-A":["b"]}`,
	reflect.String: "must be a string",
}

// Decode decodes a JSON object into the struct that in points to. The error is a 400 that names every wrong
// or unknown field. Each struct field is embedded or has a json tag with only its name. Its type is a string,
// a bool, an int, a [Duration], an [http.Header], a pointer to one of these, or a [json.RawMessage].
func Decode(text []byte, in any) error {
	if len(text) == 0 {
		return BadRequest("the body is empty: send a JSON object")
	}
	v, err := strict.Parse(text) // for its errors, which have positions
	if err != nil {
		return BadRequest("the body is not a JSON object: " + err.Error())
	}
	if v.Kind != strict.Object {
		return BadRequest("the body must be a JSON object, not " + v.Kind.String())
	}
	var members map[string]json.RawMessage
	err = json.Unmarshal(text, &members)
	if err != nil {
		return err
	}
	var names, problems []string
	seen := map[string]bool{}
	for _, member := range v.Members {
		name := member.Name
		if seen[name] {
			problems = append(problems, fmt.Sprintf("%.40q is given more than once: send it once", name))
		}
		seen[name] = true
	}
	target := reflect.ValueOf(in).Elem()
	for _, field := range reflect.VisibleFields(target.Type()) {
		name := field.Tag.Get("json")
		if name == "" { // an embedded struct
			continue
		}
		names = append(names, name)
		kind := field.Type.Kind()
		if kind == reflect.Pointer {
			kind = field.Type.Elem().Kind()
		}
		value := target.FieldByIndex(field.Index).Addr().Interface()
		if members[name] != nil && json.Unmarshal(members[name], value) != nil {
			problems = append(problems, name+" "+problemsByKind[kind])
		}
		delete(members, name)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		problems = append(problems, fmt.Sprintf("%.40q is not known: the fields are %s",
			name, strings.Join(names, ", ")))
	}
	if problems != nil {
		return BadRequest(strings.Join(problems, "; "))
	}
	return nil
}
