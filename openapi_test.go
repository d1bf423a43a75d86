package events_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"example.com/events"
	"example.com/events/internal/strict"
)

// object is a JSON object of openapi.json.
type object = map[string]any

// description is openapi.json as the tests read it.
type description struct {
	root       object
	operations []string // such as "GET /events/{id}", in the order of the file
}

// describe loads openapi.json once.
var describe = sync.OnceValue(func() *description {
	data, err := os.ReadFile("openapi.json")
	if err != nil {
		panic(err)
	}
	d := &description{}
	if err := json.Unmarshal(data, &d.root); err != nil {
		panic(err)
	}
	for path, methods := range d.root["paths"].(object) {
		for method := range methods.(object) {
			d.operations = append(d.operations, strings.ToUpper(method)+" "+path)
		}
	}
	place := func(operation string) int {
		_, path, _ := strings.Cut(operation, " ")
		return strings.Index(string(data), strconv.Quote(path)+":")
	}
	slices.SortFunc(d.operations, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	return d
})

// at returns the node that a pointer such as #/components/schemas/Event names,
// nil where there is none.
func (d *description) at(pointer string) any {
	var node any = d.root
	for _, name := range strings.Split(pointer, "/")[1:] {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		switch parent := node.(type) {
		case object:
			node = parent[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(parent) {
				return nil
			}
			node = parent[i]
		default:
			return nil
		}
	}
	return node
}

// resolve returns what a node stands for where it is a reference, and the
// pointer to it.
func (d *description) resolve(at string, node any) (string, object) {
	o, _ := node.(object)
	if ref, ok := o["$ref"].(string); ok {
		return d.resolve(ref, d.at(ref))
	}
	return at, o
}

// operation returns one operation, such as that of "GET /events/{id}".
func (d *description) operation(name string) (at string, op object) {
	method, path, _ := strings.Cut(name, " ")
	at = "#/paths/" + strings.ReplaceAll(path, "/", "~1") + "/" + strings.ToLower(method)
	op, _ = d.at(at).(object)
	return at, op
}

// parameters yields the parameters of an operation.
func (d *description) parameters(name string) func(yield func(at string, parameter object) bool) {
	return func(yield func(string, object) bool) {
		at, op := d.operation(name)
		list, _ := op["parameters"].([]any)
		for i, p := range list {
			if !yield(d.resolve(fmt.Sprintf("%s/parameters/%d", at, i), p)) {
				return
			}
		}
	}
}

// find returns the name of the operation that a request is for, "" where there
// is none. HEAD is GET.
func (d *description) find(method, path string) string {
	if method == "HEAD" {
		method = "GET"
	}
	path, _, _ = strings.Cut(path, "?")
	path, under := strings.CutPrefix(path, events.BasePath)
	_, literal := d.root["paths"].(object)[path]
	for _, name := range d.operations {
		of, pattern, _ := strings.Cut(name, " ")
		fits := pattern == path
		if !literal {
			fits = compile("^" + strings.ReplaceAll(pattern, "{id}", "[^/]+") + "$").MatchString(path)
		}
		if under && of == method && fits {
			return name
		}
	}
	return ""
}

// response returns where the answer of a status is described: by the operation,
// or by any other where there is none.
func (d *description) response(name string, status int) string {
	for _, other := range d.operations {
		_, op := d.operation(other)
		if response, ok := op["responses"].(object)[strconv.Itoa(status)]; ok && (name == "" || name == other) {
			at, _ := d.resolve("", response)
			return at
		}
	}
	return ""
}

// checkAnswer tells how an answer differs from what openapi.json says of it: the
// status, the headers, and the body, which must have no member that is not
// described. What the description has only in its text (405, an unknown path)
// must have the error form; OPTIONS has no body.
func checkAnswer(method, path string, status int, header http.Header, body []byte) error {
	return describe().check(method, path, status, header, body, func(string) {})
}

// check is checkAnswer that also notes which of the alternatives of the schemas
// the body takes.
func (d *description) check(method, path string, status int, header http.Header, body []byte, note func(string)) error {
	name := d.find(method, path)
	at := d.response(name, status)
	schema := at + "/content/application~1json/schema"
	options := method == "OPTIONS" && status == http.StatusNoContent
	switch {
	case at != "" && (name != "" || status >= 400):
	case status == http.StatusMethodNotAllowed || options:
		at, schema = "#/components/responses/NotFound", "#/components/schemas/Error" // it has the headers that all have
	default:
		return fmt.Errorf("%s %s: the status %d is not described", method, path, status)
	}
	var problems []string
	described, _ := d.at(at + "/headers").(object)
	for name, h := range described {
		at, h := d.resolve("", h)
		switch values := header[http.CanonicalHeaderKey(name)]; len(values) {
		case 0:
			if h["required"] == true {
				problems = append(problems, "the header "+name+" is missing")
			}
		case 1:
			problems = append(problems, validator{d: d}.check(at+"/schema", h["schema"], name, values[0])...)
		default:
			problems = append(problems, "the header "+name+" comes more than once")
		}
	}
	for name := range header {
		known := slices.ContainsFunc(slices.Collect(maps.Keys(described)), func(s string) bool { return http.CanonicalHeaderKey(s) == name })
		switch {
		case known, slices.Contains([]string{"Content-Type", "Content-Length", "Connection", "Date"}, name): // of every HTTP answer
		case name == "Allow" && (options || status == http.StatusMethodNotAllowed):
		case strings.HasPrefix(name, "Access-Control-") && options:
		default:
			problems = append(problems, "the header "+name+" is not described")
		}
	}
	if method != "HEAD" && !options {
		if got := header.Get("Content-Type"); got != "application/json" {
			problems = append(problems, fmt.Sprintf("Content-Type is %q", got))
		}
		if got := header.Get("Content-Length"); got != "" && got != strconv.Itoa(len(body)) {
			problems = append(problems, fmt.Sprintf("Content-Length is %s of %d", got, len(body)))
		}
		var value any
		if err := json.Unmarshal(body, &value); err != nil {
			problems = append(problems, err.Error())
		} else {
			v := validator{d: d, closed: true, note: note}
			problems = append(problems, v.check(schema, d.at(schema), "", value)...)
		}
	}
	if problems != nil {
		slices.Sort(problems)
		return fmt.Errorf("%s %s: %d: %s", method, path, status, strings.Join(problems, "; "))
	}
	return nil
}

// validator holds values against schemas. It knows the words of JSON Schema that
// openapi.json uses, takes format as a rule, and refuses every other word.
type validator struct {
	d      *description
	closed bool         // whether an object has only the members that its schema names
	note   func(string) // is told each alternative that was taken; may be nil
}

// check returns what is wrong with the value, which stands at place, by the
// schema, which stands at at.
func (v validator) check(at string, schema any, place string, value any) (problems []string) {
	say := func(format string, args ...any) {
		problems = append(problems, cmp.Or(place, "the body")+" "+fmt.Sprintf(format, args...))
	}
	note := func(alternative string) {
		if v.note != nil {
			v.note(at + " " + alternative)
		}
	}
	text, isText := value.(string)
	number, isNumber := value.(float64)
	members, isObject := value.(object)
	items, isArray := value.([]any)
	length := float64(utf8.RuneCountInString(text))
	words, ok := schema.(object)
	if !ok {
		say("has no schema at %s", at)
	}
	for _, word := range slices.Sorted(maps.Keys(words)) {
		switch arg := words[word]; word {
		case "description", "default":
		case "$ref":
			to, schema := v.d.resolve(at, object{"$ref": arg})
			problems = append(problems, v.check(to, schema, place, value)...)
		case "type":
			types, several := arg.([]any)
			if !several {
				types = []any{arg}
			}
			i := slices.IndexFunc(types, func(t any) bool { return isOfType(value, t.(string)) })
			if i < 0 {
				say("is not of type %v", arg)
			} else if several {
				note("type " + types[i].(string))
			}
		case "const":
			if value != arg {
				say("is not %v", arg)
			}
		case "enum":
			if i := slices.Index(arg.([]any), value); i < 0 {
				say("is not one of %v", arg)
			} else {
				note(fmt.Sprint("enum ", value))
			}
		case "anyOf":
			i := -1
			for j, alternative := range arg.([]any) {
				if i < 0 && v.check(fmt.Sprintf("%s/anyOf/%d", at, j), alternative, place, value) == nil {
					i = j
				}
			}
			if i < 0 {
				say("is none of the alternatives of %s", at)
			} else {
				note(fmt.Sprint("anyOf ", i))
			}
		case "not":
			if (validator{d: v.d}).check(at+"/not", arg, place, value) == nil {
				say("is what %s excludes", at)
			}
		case "minLength":
			if isText && length < arg.(float64) {
				say("has fewer than %v characters", arg)
			}
		case "maxLength":
			if isText && length > arg.(float64) {
				say("has more than %v characters", arg)
			}
		case "pattern":
			if isText && !compile(arg.(string)).MatchString(text) {
				say("does not match %s", arg)
			}
		case "format":
			if isText && !formats[arg.(string)](text) {
				say("is no %s", arg)
			}
		case "minimum":
			if isNumber && number < arg.(float64) {
				say("is below %v", arg)
			}
		case "maximum":
			if isNumber && number > arg.(float64) {
				say("is above %v", arg)
			}
		case "items":
			for i, item := range items {
				problems = append(problems, v.check(at+"/items", arg, fmt.Sprintf("%s/%d", place, i), item)...)
			}
		case "maxItems":
			if isArray && float64(len(items)) > arg.(float64) {
				say("has more than %v items", arg)
			}
		case "required":
			for _, name := range arg.([]any) {
				if _, has := members[name.(string)]; isObject && !has {
					say("lacks %s", name)
				}
			}
		case "properties":
			for name, value := range members {
				if schema, known := arg.(object)[name]; known {
					problems = append(problems, v.check(at+"/properties/"+name, schema, place+"/"+name, value)...)
				} else if open, said := words["additionalProperties"]; open == false || v.closed && !said && words["type"] == "object" {
					say("has the member %s, which is not described", name)
				}
			}
		case "additionalProperties":
			if _, ok := arg.(bool); !ok {
				say("has a schema with additionalProperties that are not true or false")
			}
		default:
			say("has a schema with the %s %s at %s", unknownWord, word, at)
		}
	}
	return problems
}

const unknownWord = "unknown word"

func isOfType(value any, name string) bool {
	switch value := value.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case int: // of a sample that was made in Go
		return name == "integer"
	case float64:
		return name == "integer" && value == float64(int64(value))
	case []any:
		return name == "array"
	}
	return name == "object"
}

var (
	patterns sync.Map
	formats  = map[string]func(string) bool{
		"date-time": func(s string) bool { _, err := strict.Time(s); return err == nil },
		"uri":       isURI,
	}
)

func compile(pattern string) *regexp.Regexp {
	if re, ok := patterns.Load(pattern); ok {
		return re.(*regexp.Regexp)
	}
	re := regexp.MustCompile(pattern)
	patterns.Store(pattern, re)
	return re
}

// The grammar of RFC 3986, appendix A, but for IP addresses in brackets.
var uriShape = func() *regexp.Regexp {
	escape, plain := `%[0-9A-Fa-f]{2}`, `A-Za-z0-9._~!$&'()*+,;=\-`
	char := `(?:[` + plain + `:@]|` + escape + `)`
	more := `(?:[` + plain + `:@/?]|` + escape + `)*`
	authority := `(?:(?:[` + plain + `:]|` + escape + `)*@)?(?:\[([^\]]*)\]|(?:[` + plain + `]|` + escape + `)*)(?::[0-9]*)?`
	path := `(?:/` + char + `*)*`
	return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:(?://` + authority + path + `|/?(?:` + char + `+` + path + `)?)(?:\?` + more + `)?(?:#` + more + `)?$`)
}()

func isURI(s string) bool {
	m := uriShape.FindStringSubmatch(s)
	if m == nil || strings.Contains(s, "[]") {
		return false
	}
	address, err := netip.ParseAddr(m[1])
	return m[1] == "" || err == nil && address.Is6() && address.Zone() == "" ||
		compile(`^[vV][0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+$`).MatchString(m[1])
}

// walk visits every object of the description but those in examples.
func walk(at string, node any, visit func(at string, node object)) {
	switch node := node.(type) {
	case object:
		visit(at, node)
		for name, kid := range node {
			if name != "example" && name != "value" {
				walk(at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), kid, visit)
			}
		}
	case []any:
		for i, kid := range node {
			walk(fmt.Sprintf("%s/%d", at, i), kid, visit)
		}
	}
}

// schemas visits a schema and every schema in it or that it refers to, once.
func (d *description) schemas(at string, node any, visit func(at string, schema object)) {
	seen := map[string]bool{}
	var down func(at string, node any)
	down = func(at string, node any) {
		if seen[at] {
			return
		}
		seen[at] = true
		schema := node.(object)
		visit(at, schema)
		if ref, ok := schema["$ref"].(string); ok {
			down(ref, d.at(ref))
		}
		properties, _ := schema["properties"].(object)
		for name, kid := range properties {
			down(at+"/properties/"+name, kid)
		}
		alternatives, _ := schema["anyOf"].([]any)
		for i, kid := range alternatives {
			down(fmt.Sprintf("%s/anyOf/%d", at, i), kid)
		}
		for _, word := range []string{"items", "not"} {
			if kid, ok := schema[word]; ok {
				down(at+"/"+word, kid)
			}
		}
	}
	down(at, node)
}

func TestOpenAPIReferences(t *testing.T) {
	t.Parallel()
	d := describe()
	used := map[string]bool{}
	walk("#", d.root, func(at string, node object) {
		if ref, ok := node["$ref"].(string); ok {
			used[ref] = true
			if d.at(ref) == nil {
				t.Errorf("%s refers to %s, which is not there", at, ref)
			}
		}
	})
	for _, one := range d.root["security"].([]any) {
		for name := range one.(object) {
			used["#/components/securitySchemes/"+name] = true
		}
	}
	for kind, components := range d.root["components"].(object) {
		for name := range components.(object) {
			if at := "#/components/" + kind + "/" + name; !used[at] {
				t.Errorf("%s is not used", at)
			}
		}
	}
}

// Every schema uses words that the validator knows, says its type, and leaves no
// member of an answer open.
func TestOpenAPISchemas(t *testing.T) {
	t.Parallel()
	d, n := describe(), 0
	walk("#", d.root, func(at string, node object) {
		if !strings.HasSuffix(at, "/schema") {
			return
		}
		d.schemas(at, node, func(at string, schema object) {
			n++
			for _, problem := range (validator{d: d}).check(at, schema, at, nil) {
				if strings.Contains(problem, unknownWord) {
					t.Error(problem)
				}
			}
			_, typed := schema["type"]
			_, refers := schema["$ref"]
			_, chooses := schema["anyOf"]
			narrows := strings.Contains(at, "/schema/properties/error") || strings.Contains(at, "/not")
			if !typed && !refers && !chooses && !narrows {
				t.Errorf("%s does not say its type", at)
			}
			properties, _ := schema["properties"].(object)
			required, _ := schema["required"].([]any)
			if _, said := schema["additionalProperties"]; typed && !said && len(required) != len(properties) {
				t.Errorf("%s requires %v, want all of its members", at, required)
			}
			for _, name := range required {
				if properties[name.(string)] == nil {
					t.Errorf("%s requires %s, which it does not describe", at, name)
				}
			}
		})
	})
	if n < 100 {
		t.Errorf("looked at %d schemas only", n)
	}
}

// Each error status has one code.
func TestOpenAPICodes(t *testing.T) {
	t.Parallel()
	d := describe()
	codes := d.at("#/components/schemas/ErrorCode/enum").([]any)
	for name, response := range d.root["components"].(object)["responses"].(object) {
		at := "#/components/responses/" + name + "/content/application~1json/schema"
		if schema := d.at(at).(object); schema["$ref"] == "#/components/schemas/Error" {
			var taken []any
			for _, code := range codes {
				if (validator{d: d}).check(at, schema, "", object{"error": object{"code": code, "message": "x"}}) == nil {
					taken = append(taken, code)
				}
			}
			if len(taken) != 1 {
				t.Errorf("%s, %s, has the codes %v, want one", name, response.(object)["description"], taken)
			}
		}
	}
}

// Every header is there always, but for two, and its schema is more than a type.
func TestOpenAPIHeaders(t *testing.T) {
	t.Parallel()
	d := describe()
	for name, header := range d.root["components"].(object)["headers"].(object) {
		header := header.(object)
		if optional := name == "Idempotency-Replayed" || name == "Connection"; optional == (header["required"] == true) {
			t.Errorf("%s is required: %v", name, header["required"])
		}
		if kind := header["schema"].(object)["type"]; kind != "string" {
			t.Errorf("%s is of type %v", name, kind)
		}
		open := name == "X-Request-Id" || name == "Access-Control-Expose-Headers"
		at := "#/components/headers/" + name + "/schema"
		for _, value := range []string{"", header["example"].(string) + "/"} {
			if valid := (validator{d: d}).check(at, header["schema"], name, value) == nil; valid && !(open && value != "") {
				t.Errorf("the schema of %s takes %q", name, value)
			}
		}
	}
}

func TestOpenAPIExamples(t *testing.T) {
	t.Parallel()
	d := describe()
	walk("#", d.root, func(at string, node object) {
		schema, ok := node["schema"]
		if !ok {
			return
		}
		values := map[string]any{}
		if one, ok := node["example"]; ok {
			values[at+"/example"] = one
		}
		several, _ := node["examples"].(object)
		for name, example := range several {
			_, resolved := d.resolve("", example)
			values[at+"/examples/"+name] = resolved["value"]
		}
		if len(values) == 0 {
			t.Errorf("%s has no example", at)
		}
		for place, value := range values {
			for _, problem := range (validator{d: d, closed: true}).check(at+"/schema", schema, place, value) {
				t.Error(problem)
			}
		}
	})
}

func TestOpenAPIGeneral(t *testing.T) {
	t.Parallel()
	d := describe()
	for at, want := range map[string]any{
		"#/openapi":       "3.1.0",
		"#/info/version":  "1.0.0",
		"#/servers/0/url": events.BasePath,
		"#/servers/1":     nil,
	} {
		if got := d.at(at); got != want {
			t.Errorf("%s is %v, want %v", at, got, want)
		}
	}
	tags, ids := map[any]bool{}, map[any]bool{}
	for _, tag := range d.root["tags"].([]any) {
		tags[tag.(object)["name"]] = true
	}
	if got := len(d.root["security"].([]any)); got != 2 {
		t.Errorf("%d security schemes are for every operation, want 2", got)
	}
	for _, name := range d.operations {
		_, op := d.operation(name)
		if _, ok := op["security"]; ok {
			t.Errorf("%s has a security of its own: all need the same key", name)
		}
		if id := op["operationId"]; id == nil || ids[id] {
			t.Errorf("%s has no operationId of its own", name)
		}
		ids[op["operationId"]] = true
		if list, _ := op["tags"].([]any); len(list) != 1 || !tags[list[0]] {
			t.Errorf("%s has the tags %v, want one of those that are described", name, list)
		}
		if op["summary"] == nil || op["description"] == nil {
			t.Errorf("%s has no summary or no description", name)
		}
		rest := map[string]bool{}
		for _, template := range compile(`\{.*?\}`).FindAllString(name, -1) {
			rest[template] = true
		}
		for at, parameter := range d.parameters(name) {
			if parameter["description"] == nil {
				t.Errorf("%s has no description", at)
			}
			in, required := parameter["in"], parameter["required"] == true
			if path := strings.Contains(name, fmt.Sprintf("{%s}", parameter["name"])); path != (in == "path") || path != required || !path && in != "query" && in != "header" {
				t.Errorf("%s is in %v, required: %v", at, in, required)
			}
			_, schema := d.resolve("", parameter["schema"])
			if kind := schema["type"]; kind != "string" && kind != "integer" {
				t.Errorf("%s is of type %v", at, kind)
			}
			delete(rest, fmt.Sprintf("{%s}", parameter["name"]))
		}
		if len(rest) != 0 {
			t.Errorf("%s has no parameter for %v", name, rest)
		}
	}
}

func TestOpenAPIPatterns(t *testing.T) {
	t.Parallel()
	d := describe()
	takes := func(name, text string) bool {
		at := "#/components/schemas/" + name
		return (validator{d: d}).check(at, d.at(at), "", text) == nil
	}
	names, err := os.ReadFile("internal/strict/zones.txt")
	if err != nil {
		t.Fatal(err)
	}
	for zone := range strings.FieldsSeq(string(names)) {
		if !takes("Timezone", zone) {
			t.Errorf("Timezone excludes %s", zone)
		}
	}
	for text, want := range map[string]bool{
		"2027-03-01T10:00:00Z": true, "2027-03-01T10:00:00.5Z": true, "2027-03-01T10:00:00.123456789Z": true, "0000-01-01T00:00:00.05Z": true,
		"2027-03-01T10:00:00+00:00": false, "2027-03-01T10:00:00+01:00": false, "2027-03-01t10:00:00z": false, "2027-03-01T10:00:00.0Z": false,
		"2027-03-01T10:00:00.50Z": false, "2027-03-01T10:00:00.Z": false, "2027-03-01T10:00:00.1234567891Z": false, "2027-02-30T10:00:00Z": false,
		"2027-03-01": false, "": false,
	} {
		if got := takes("Instant", text); got != want {
			t.Errorf("Instant takes %q: %v, want %v", text, got, want)
		}
	}
	for _, text := range slices.Concat(slices.Collect(maps.Keys(texts["id"])), slices.Collect(maps.Keys(texts["slug"])), d.texts("", object{})) {
		const at = "#/components/parameters/EventIdOrSlug/schema"
		want := takes("EventId", text) || compile(d.at("#/components/schemas/Slug/pattern").(string)).MatchString(text)
		if got := (validator{d: d}).check(at, d.at(at), "", text) == nil; got != want {
			t.Errorf("EventIdOrSlug takes %q: %v, want %v as an id or slug", text, got, want)
		}
	}
	for text, want := range map[string]bool{"MQ": true, "a-_9": true, "": false, "MQ==": false, "a+b": false, "a b": false} {
		if got := takes("Cursor", text); got != want {
			t.Errorf("Cursor takes %q: %v, want %v", text, got, want)
		}
	}
}

func TestCheckAnswer(t *testing.T) {
	t.Parallel()
	const path = events.BasePath + "/events"
	good := func() http.Header {
		return http.Header{
			"Content-Type": {"application/json"}, "Cache-Control": {"no-store"}, "X-Content-Type-Options": {"nosniff"},
			"Access-Control-Allow-Origin": {"*"}, "Access-Control-Expose-Headers": {"location"},
		}
	}
	const empty = `{"data":[],"has_more":false,"next_cursor":null}`
	tests := []struct {
		name   string
		method string
		path   string
		status int
		change func(http.Header)
		body   string
		want   string // part of the error, "" for none
	}{
		{"good", "GET", path, 200, nil, empty, ""},
		{"HEAD", "HEAD", path, 200, nil, "", ""},
		{"unknown path", "GET", path + "/a/b/c", 404, nil, `{"error":{"code":"not_found","message":"x"}}`, ""},
		{"unknown path, answered", "GET", path + "/a/b/c", 200, nil, empty, "status 200"},
		{"other method", "DELETE", path, 405, func(h http.Header) { h.Set("Allow", "GET") }, `{"error":{"code":"method_not_allowed","message":"x"}}`, ""},
		{"literal before template", "GET", path + "/create", 200, nil, empty, "status 200"},
		{"status", "GET", path, 404, nil, `{"error":{"code":"not_found","message":"x"}}`, "status 404"},
		{"code of another status", "GET", path, 400, nil, `{"error":{"code":"not_found","message":"x"}}`, "/error/code is not bad_request"},
		{"third member of an error", "GET", path, 400, nil, `{"error":{"code":"bad_request","message":"x","field":"y"}}`, "field"},
		{"member", "GET", path, 200, nil, `{"data":[],"has_more":false,"next_cursor":null,"total":0}`, "total"},
		{"member left out", "GET", path, 200, nil, `{"data":[],"has_more":false}`, "lacks next_cursor"},
		{"null", "GET", path, 200, nil, `{"data":null,"has_more":false,"next_cursor":null}`, "/data is not of type array"},
		{"in a list", "GET", path, 200, nil, `{"data":[{}],"has_more":false,"next_cursor":null}`, "/data/0 lacks id"},
		{"nobody", "GET", path + "/e/guests", 200, nil, `{"data":[{"name":null,"email":null}],"has_more":false,"next_cursor":null}`, "excludes"},
		{"no JSON", "GET", path, 200, nil, `nope`, "invalid character"},
		{"header missing", "GET", path, 200, func(h http.Header) { h.Del("Cache-Control") }, empty, "Cache-Control is missing"},
		{"header wrong", "GET", path, 200, func(h http.Header) { h.Set("Cache-Control", "no-cache") }, empty, "Cache-Control is not no-store"},
		{"header twice", "GET", path, 200, func(h http.Header) { h.Add("Cache-Control", "no-store") }, empty, "more than once"},
		{"header not described", "GET", path, 200, func(h http.Header) { h.Set("Etag", "x") }, empty, "Etag is not described"},
		{"length", "GET", path, 200, func(h http.Header) { h.Set("Content-Length", "3") }, empty, "Content-Length"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			header := good()
			if test.change != nil {
				test.change(header)
			}
			got := "<nil>"
			if err := checkAnswer(test.method, test.path, test.status, header, []byte(test.body)); err != nil {
				got = err.Error()
			}
			if test.want == "" && got != "<nil>" || !strings.Contains(got, test.want) {
				t.Errorf("checkAnswer = %s, want %q in it", got, test.want)
			}
		})
	}
}

// The rest holds the description against the server.

const describedSeed = `[
{"user":{"id":"usr_ada","name":"Ada Lovelace","email":"ada@example.com","timezone":"Europe/London","avatar_url":"https://example.com/ada.png"}},
{"user":{"id":"usr_bob","name":"Bob","email":"bob@example.com"}},
{"key":{"user_id":"usr_ada","secret":"svc_live_ada"}},
{"key":{"user_id":"usr_bob","secret":"svc_live_bob"}},
{"event":{"id":"evt_1","host_id":"usr_ada","title":"One","start_at":"2027-03-01T10:00:00Z","end_at":"2027-03-01T12:00:00Z","status":"draft"}},
{"event":{"id":"evt_2","host_id":"usr_ada","title":"Two","start_at":"2027-03-01T10:00:00.5Z","end_at":"2027-03-01T12:00:00Z","description":"x","location_type":"in_person","location_city":"x","location_country":"x","visibility":"private","cover_image_url":"https://example.com","meeting_url":"https://example.com"}},
{"event":{"id":"evt_3","host_id":"usr_ada","title":"Three","start_at":"2027-03-01T10:00:00Z","end_at":"2027-03-01T12:00:00Z","location_type":"virtual"}},
{"guest":{"event_id":"evt_1","name":"A","status":"invited"}},
{"guest":{"event_id":"evt_1","email":"b@example.com","status":"pending"}},
{"guest":{"event_id":"evt_1","name":"C","status":"approved","checked_in_at":"2027-03-01T10:00:00Z"}},
{"guest":{"event_id":"evt_1","name":"D","status":"declined"}},
{"guest":{"event_id":"evt_1","name":"E","status":"waitlist"}},
{"guest":{"event_id":"evt_1","name":"F","status":"cancelled"}}
]`

// prober sends requests to a server of its own and holds each answer against the
// description.
type prober struct {
	t       *testing.T
	store   *events.Store
	handler http.Handler
	seen    map[string]bool // operations with their statuses, and alternatives of schemas
}

func newProber(t *testing.T, cfg *events.Config) *prober {
	p := &prober{t: t, store: events.NewStore(cfg), seen: map[string]bool{}}
	if err := p.store.ApplyJSON([]byte(describedSeed)); err != nil {
		t.Fatal(err)
	}
	p.handler = events.New(p.store)
	return p
}

// do sends a request to a path under the base path, with Ada's key. The headers
// are names and values in turn; an empty value takes the header away.
func (p *prober) do(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	p.t.Helper()
	r := httptest.NewRequest(method, events.BasePath+target, strings.NewReader(body))
	r.Header.Set("X-Service-Api-Key", "svc_live_ada")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r)
	d := describe()
	if err := d.check(method, r.URL.Path, w.Code, w.Header(), w.Body.Bytes(), func(s string) { p.seen[s] = true }); err != nil {
		p.t.Error(err)
	}
	p.seen[fmt.Sprint(d.find(method, r.URL.Path), " ", w.Code)] = true
	return w
}

const leastBody = `{"title":"T","start_at":"2027-03-01T10:00:00Z","end_at":"2027-03-01T12:00:00Z"}`

func TestOpenAPIRoutes(t *testing.T) {
	t.Parallel()
	d := describe()
	if !slices.Equal(d.operations, events.Operations()) {
		t.Errorf("described are %q, want those of the server in their order: %q", d.operations, events.Operations())
	}
	p := newProber(t, nil)
	for path := range d.root["paths"].(object) {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "X"} {
			target := strings.ReplaceAll(path, "{id}", "evt_1")
			got := p.do(method, target, "").Code
			if described := d.find(method, events.BasePath+target) != ""; described == (got == http.StatusMethodNotAllowed) {
				t.Errorf("%s %s = %d, described: %v", method, path, got, described)
			}
		}
		p.do("OPTIONS", strings.ReplaceAll(path, "{id}", "evt_1"), "")
	}
}

// A key is taken as each of the security schemes says, and only then.
func TestOpenAPISecurity(t *testing.T) {
	t.Parallel()
	d := describe()
	p := newProber(t, nil)
	for _, one := range d.root["security"].([]any) {
		for name := range one.(object) {
			scheme := d.at("#/components/securitySchemes/" + name).(object)
			var header, value string
			switch {
			case scheme["type"] == "apiKey" && scheme["in"] == "header":
				header, value = scheme["name"].(string), "svc_live_bob"
			case scheme["type"] == "http" && scheme["scheme"] == "bearer":
				header, value = "Authorization", "Bearer svc_live_bob"
			default:
				t.Errorf("%s is %v", name, scheme)
				continue
			}
			for _, operation := range d.operations {
				method, path, _ := strings.Cut(operation, " ")
				target := strings.ReplaceAll(path, "{id}", "evt_1")
				if got := p.do(method, target, "", "X-Service-Api-Key", "", header, value).Code; got == http.StatusUnauthorized {
					t.Errorf("%s with the key by %s = 401", operation, name)
				}
				if got := p.do(method, target, "", "X-Service-Api-Key", "", header, value+"x").Code; got != http.StatusUnauthorized {
					t.Errorf("%s with a wrong key by %s = %d, want 401", operation, name, got)
				}
			}
		}
	}
}

// Without a limit, a page has as many items as its default says; with the
// highest, as many as the schema of the page takes.
func TestOpenAPILimits(t *testing.T) {
	t.Parallel()
	d := describe()
	p := newProber(t, nil)
	var records []string
	for i := range 201 {
		records = append(records, fmt.Sprintf(`{"guest":{"event_id":"evt_1","name":"G%d"}}`, i))
		if i < 101 {
			records = append(records, fmt.Sprintf(`{"event":{"host_id":"usr_ada","title":"E%d","start_at":"2027-03-01T10:00:00Z","end_at":"2027-03-01T12:00:00Z"}}`, i))
		}
	}
	if err := p.store.ApplyJSON([]byte("[" + strings.Join(records, ",") + "]")); err != nil {
		t.Fatal(err)
	}
	for _, operation := range d.operations {
		at, op := d.operation(operation)
		for _, parameter := range d.parameters(operation) {
			if parameter["name"] != "limit" {
				continue
			}
			schema := parameter["schema"].(object)
			_, answer := d.resolve("", op["responses"].(object)["200"])
			_, page := d.resolve("", answer["content"].(object)["application/json"].(object)["schema"])
			if most := page["properties"].(object)["data"].(object)["maxItems"]; most != schema["maximum"] {
				t.Errorf("%s: the page has at most %v items, and limit is at most %v", at, most, schema["maximum"])
			}
			target := strings.ReplaceAll(strings.TrimPrefix(operation, "GET "), "{id}", "evt_1")
			for query, want := range map[string]any{"": schema["default"], fmt.Sprintf("?limit=%v", schema["maximum"]): schema["maximum"]} {
				var got struct{ Data []any }
				if err := json.Unmarshal(p.do("GET", target+query, "").Body.Bytes(), &got); err != nil {
					t.Fatal(err)
				}
				if float64(len(got.Data)) != want {
					t.Errorf("GET %s has %d items, want %v", target+query, len(got.Data), want)
				}
			}
		}
	}
}

// Every status of every operation comes at least once, and so does each of the
// values that a described answer can have where it has a choice.
func TestOpenAPIAnswers(t *testing.T) {
	t.Parallel()
	d := describe()
	p := newProber(t, nil)
	broken := newProber(t, &events.Config{
		Intercept: func(_, _ string, _ http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) { panic("boom") },
	})
	broken.seen = p.seen
	for _, name := range d.operations {
		method, path, _ := strings.Cut(name, " ")
		body := ""
		if method == "POST" {
			body = leastBody
		}
		target := strings.ReplaceAll(path, "{id}", "evt_1")
		p.do(method, target, body)
		p.do(method, target, body, "X-Service-Api-Key", "")
		p.do(method, target, body, "X-Service-Api-Key", "", "Authorization", "Bearer svc_live_ada")
		p.do(method, target+"?nope=1", body)
		broken.do(method, target, body)
		if method == "GET" {
			p.do("HEAD", target, "")
			p.do("HEAD", target+"?nope=1", "")
		}
		if target != path {
			p.do(method, strings.ReplaceAll(path, "{id}", "evt_none"), body)
			p.do(method, target, body, "X-Service-Api-Key", "svc_live_bob")
		}
	}
	p.do("GET", "/users/me", "", "X-Service-Api-Key", "svc_live_bob")
	p.do("GET", "/events?limit=1", "")
	p.do("GET", "/events", "", "X-Service-Api-Key", "svc_live_bob")
	p.do("GET", "/events/evt_1/guests?limit=1", "")
	p.do("PUT", "/events", "")
	p.do("GET", "/unknown", "")
	p.do("POST", "/events/create", `{"title":"T","start_at":"2027-03-01T10:00:00Z","end_at":"2027-03-01T12:00:00Z","requires_approval":true}`)
	p.do("POST", "/events/create", strings.Repeat(" ", 1<<20)+leastBody)
	p.do("POST", "/events/create", leastBody, "Content-Type", "text/plain")

	created := p.do("POST", "/events/create", leastBody, "Idempotency-Key", "k")
	replayed := p.do("POST", "/events/create", leastBody, "Idempotency-Key", "k")
	if got := replayed.Header().Get("Idempotency-Replayed"); got != "true" || replayed.Body.String() != created.Body.String() {
		t.Errorf("the same request again = Idempotency-Replayed %q, %s, want true, %s", got, replayed.Body, created.Body)
	}
	p.do("POST", "/events/create", leastBody+" ", "Idempotency-Key", "k")
	id := strings.TrimPrefix(created.Header().Get("Location"), events.BasePath+"/events/")
	if err := p.store.ApplyJSON([]byte(`[{"delete":{"event":"` + id + `"}}]`)); err != nil {
		t.Fatal(err)
	}
	p.do("POST", "/events/create", leastBody, "Idempotency-Key", "k")

	want := map[string]bool{}
	for _, name := range d.operations {
		_, op := d.operation(name)
		for status, response := range op["responses"].(object) {
			want[name+" "+status] = true
			at, _ := d.resolve("", response)
			at += "/content/application~1json/schema"
			d.schemas(at, d.at(at), func(at string, schema object) {
				types, _ := schema["type"].([]any)
				for _, name := range types {
					want[fmt.Sprint(at, " type ", name)] = true
				}
				values, _ := schema["enum"].([]any)
				for _, value := range values {
					want[fmt.Sprint(at, " enum ", value)] = true
				}
				alternatives, _ := schema["anyOf"].([]any)
				for i := range alternatives {
					want[fmt.Sprint(at, " anyOf ", i)] = true
				}
			})
		}
	}
	for _, s := range slices.Sorted(maps.Keys(want)) {
		if !p.seen[s] {
			t.Errorf("described, but never answered: %s", s)
		}
	}
}

// A query parameter is taken exactly where its schema says so.
func TestOpenAPIParameters(t *testing.T) {
	t.Parallel()
	d := describe()
	p := newProber(t, nil)
	names := map[string]bool{"id": true, "limit": true, "status": true, "cursor": true, "offset": true, "page": true, "sort": true, "Limit": true, "": true}
	for _, operation := range d.operations {
		for _, parameter := range d.parameters(operation) {
			names[parameter["name"].(string)] = true
		}
	}
	for _, operation := range d.operations {
		method, path, _ := strings.Cut(operation, " ")
		target := strings.ReplaceAll(path, "{id}", "evt_1")
		body, good := "", http.StatusOK
		if method == "POST" {
			body, good = leastBody, http.StatusCreated
		}
		described := map[string]bool{}
		for at, parameter := range d.parameters(operation) {
			if parameter["in"] != "query" {
				continue
			}
			name := parameter["name"].(string)
			described[name] = true
			at, schema := d.resolve(at+"/schema", parameter["schema"])
			for _, s := range p.samples(target, name, schema) {
				want := http.StatusBadRequest
				if (validator{d: d}).check(at, schema, name, parameterValue(schema, s)) == nil {
					want = good
				}
				if got := p.do(method, target+"?"+url.Values{name: {s}}.Encode(), body).Code; got != want {
					t.Errorf("%s with %s=%q = %d, want %d by its schema", operation, name, s, got, want)
				}
				if got := p.do(method, target+"?"+url.Values{name: {s, s}}.Encode(), body).Code; got != http.StatusBadRequest {
					t.Errorf("%s with %s=%q twice = %d, want 400", operation, name, s, got)
				}
			}
		}
		for name := range names {
			for _, s := range p.samples(target, name, object{"enum": []any{"draft"}, "minimum": 1.0, "maximum": 2.0}) {
				if got := p.do(method, target+"?"+url.Values{name: {s}}.Encode(), body).Code; !described[name] && got != http.StatusBadRequest {
					t.Errorf("%s with %s=%q, which is not described = %d, want 400", operation, name, s, got)
				}
			}
		}
	}
}

// samples returns values on both sides of each bound of a query parameter.
func (p *prober) samples(target, name string, schema object) []string {
	samples := []string{"", " ", "x", "1.5", "+1", "1e1", "-1", "0", "true", "null"}
	if least, ok := schema["minimum"].(float64); ok {
		most := schema["maximum"].(float64)
		for _, n := range []float64{least - 1, least, least + 1, most - 1, most, most + 1} {
			samples = append(samples, fmt.Sprint(n))
		}
	}
	values, _ := schema["enum"].([]any)
	for _, value := range values {
		s := value.(string)
		samples = append(samples, s, s+" ", strings.ToUpper(s), s+","+s)
	}
	if name == "cursor" { // any other that the schema has belongs to no list: its description says so
		var page struct {
			Next string `json:"next_cursor"`
		}
		json.Unmarshal(p.do("GET", target+"?limit=1", "").Body.Bytes(), &page) // no list: no cursor
		samples = []string{"", page.Next, page.Next + "=", page.Next + "!", " " + page.Next}
	}
	return samples
}

// parameterValue is a parameter's text as the value that its schema is about.
func parameterValue(schema object, s string) any {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && schema["type"] == "integer" && s[0] != '+' {
		return float64(n)
	}
	return s
}

func TestOpenAPIIdempotencyKey(t *testing.T) {
	t.Parallel()
	d := describe()
	p := newProber(t, nil)
	const at = "#/components/parameters/IdempotencyKey/schema"
	x255 := strings.Repeat("x", 255)
	for _, s := range []string{
		"k", "2f1c6f0e-8f7a-4a53-9d0e-5f6f2f8a7c11", "!", "~", x255, x255 + "x", `"k"`, `"` + x255 + `"`, `"` + x255 + `x"`,
		`"`, `""`, `"k`, `k"`, `"k\"k"`, `"k\\"`, `"k"k"`, `"k\k"`, `"\"k"`, " ", "k k", `"k k"`, "k\tk", "k\x7f", "ké", `k,k`, `k\`,
	} {
		want := http.StatusBadRequest
		if (validator{d: d}).check(at, d.at(at), "Idempotency-Key", s) == nil {
			want = http.StatusCreated
		}
		if got := p.do("POST", "/events/create", leastBody, "Idempotency-Key", s).Code; got != want {
			t.Errorf("create with Idempotency-Key %q = %d, want %d by its schema", s, got, want)
		}
	}
}

// The schema of the body of POST /events/create and the server agree on what is
// valid.
func TestOpenAPIRequestBody(t *testing.T) {
	t.Parallel()
	d := describe()
	p := newProber(t, nil)
	const at = "#/components/requestBodies/NewEvent/content/application~1json"
	try := func(body string) (valid bool) {
		t.Helper()
		var value any
		if err := json.Unmarshal([]byte(body), &value); err != nil {
			t.Fatal(err)
		}
		problems := (validator{d: d}).check(at+"/schema", d.at(at+"/schema"), "", value)
		want := http.StatusCreated
		if problems != nil {
			want = http.StatusBadRequest
		}
		if w := p.do("POST", "/events/create", body); w.Code != want {
			t.Errorf("create %.200s = %d %.200s, want %d by the schema: %q", body, w.Code, w.Body, want, problems)
		}
		return problems == nil
	}
	encode := func(value any) string {
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	least := func() object {
		return object{"title": "T", "start_at": "0000-01-01T00:00:00Z", "end_at": "9999-12-31T23:59:59Z"}
	}

	for _, example := range d.at(at + "/examples").(object) {
		if !try(encode(example.(object)["value"])) {
			t.Error("an example is not valid")
		}
	}
	for _, body := range []string{"null", "true", "1", `"x"`, "[]", "[" + leastBody + "]", "{}"} {
		if try(body) {
			t.Errorf("the schema takes %s", body)
		}
	}
	_, schema := d.resolve("", d.at(at+"/schema"))
	for _, name := range []string{"", "id", "slug", "status", "host_id", "created_at", "updated_at", "Title", "title ", "startAt"} {
		body := least()
		body[name] = "x"
		if try(encode(body)) {
			t.Errorf("the schema takes the member %q", name)
		}
	}
	for name, member := range schema["properties"].(object) {
		body := least()
		delete(body, name)
		required := slices.Contains(schema["required"].([]any), any(name))
		if try(encode(body)) == required {
			t.Errorf("the schema does not require %s as it should", name)
		}
		for _, value := range []any{nil, true, false, 0, 1, -1.5, []any{}, []any{"x"}, object{}} {
			body[name] = value
			try(encode(body))
		}
		for _, text := range d.texts(name, member) {
			if text == "" && emptyIsNull[name] {
				continue
			}
			body[name] = text
			try(encode(body))
		}
		for text, want := range texts[name] {
			body[name] = text
			if got := try(encode(body)); got != want {
				t.Errorf("the schema takes the %s %q: %v, want %v", name, text, got, want)
			}
		}
	}
	if _, body := d.resolve("", d.at("#/paths/~1events~1create/post/requestBody")); body["required"] != true || p.do("POST", "/events/create", "").Code != http.StatusBadRequest {
		t.Error("the body is not required")
	}
	if w := p.do("POST", "/events/create", `{"title":"T","start_at":"2027-03-01T10:00:00Z","end_at":"2027-03-01T10:00:00Z"}`); w.Code != http.StatusBadRequest {
		t.Errorf("an event that ends as it starts = %d, want 400: the description of end_at says so", w.Code)
	}
	if w := p.do("POST", "/events/create", strings.Replace(leastBody, "{", `{"timezone":"Europe/Atlantis",`, 1)); w.Code != http.StatusBadRequest {
		t.Errorf("a zone that is not on the list = %d, want 400: the description of timezone says so", w.Code)
	}
}

// What an operator may put into the store and what the schemas of the answers
// take is the same.
func TestOpenAPIRecords(t *testing.T) {
	t.Parallel()
	d := describe()
	for kind, least := range map[string]object{
		"User":  {"name": "N", "email": "n@example.com"},
		"Event": {"host_id": "usr_ada", "title": "T", "start_at": "2027-03-01T10:00:00Z", "end_at": "2027-03-01T12:00:00Z"},
		"Guest": {"event_id": "evt_1", "name": "N"},
	} {
		for name, member := range d.at("#/components/schemas/" + kind + "/properties").(object) {
			if name == "host_id" || name == "event_id" || strings.HasSuffix(name, "_at") {
				continue // must be there; may have an offset
			}
			at := "#/components/schemas/" + kind + "/properties/" + name
			values := []any{true, 1, object{}}
			for _, text := range d.texts(name, member) {
				values = append(values, text)
			}
			for text := range texts[name] {
				values = append(values, text)
			}
			for _, value := range values {
				if value == "" && emptyIsNull[name] {
					continue
				}
				record := maps.Clone(least)
				record[name] = value
				data, err := json.Marshal([]any{object{strings.ToLower(kind): record}})
				if err != nil {
					t.Fatal(err)
				}
				problems := (validator{d: d}).check(at, member, name, value)
				err = newProber(t, nil).store.ApplyJSON(data)
				if (err == nil) != (problems == nil) {
					t.Errorf("ApplyJSON(%.200s) = %.200v, want by the schema: %q", data, err, problems)
				}
			}
		}
	}
}

// emptyIsNull are the members of which the server takes an empty string, which
// their descriptions say and their schemas do not.
var emptyIsNull = map[string]bool{"timezone": true, "location_type": true, "visibility": true,
	"cover_image_url": true, "meeting_url": true, "avatar_url": true}

// texts returns texts for a member, on both sides of every length that counts
// somewhere, and the words that its schema lists.
func (d *description) texts(name string, schema any) []string {
	texts := []string{"null", "true", "x", " "}
	for _, begin := range []string{"", "https://example.com/", "usr_", "evt_", "gst_", "a@", "a-"} {
		for _, n := range []int{0, 1, 2, 3, 4, 5, 67, 68, 69, 99, 100, 101, 253, 254, 255, 256, 2047, 2048, 2049} {
			if n >= len(begin) {
				texts = append(texts, begin+strings.Repeat("x", n-len(begin)))
			}
		}
	}
	for _, char := range []string{"é", "\U0001F600", "\x00"} {
		for _, n := range []int{1, 100, 101, 254, 255, 256} {
			texts = append(texts, strings.Repeat(char, n))
		}
	}
	if name == "description" {
		for _, n := range []int{50_000, 50_001} {
			texts = append(texts, strings.Repeat("x", n), strings.Repeat("\U0001F600", n))
		}
	}
	d.schemas("#", schema, func(_ string, schema object) {
		values, _ := schema["enum"].([]any)
		for _, value := range values {
			s := value.(string)
			texts = append(texts, s, s+"s", " "+s, strings.ToUpper(s))
		}
	})
	return texts
}

// texts are what members take and refuse beyond lengths and listed words.
var texts = map[string]map[string]bool{
	"title": titles, "start_at": dateTimes, "end_at": dateTimes, "timezone": zones,
	"cover_image_url": webURLs, "meeting_url": webURLs, "avatar_url": webURLs,
	"email": {"a@b": true, "a b@c\n": true, "a@": false, "@b": false, "a@b@c": false, "ab": false},
	"slug":  {"a": true, "a-1-b": true, "-a": false, "a-": false, "a--b": false, "A": false, "a_b": false, "ä": false, "a\n": false},
	"id":    {"usr_": false, "evt_": false, "gst_": false, "evt_a-Z_9": true, "usr_a.b": false, "evt_ä": false, "gst_a\n": false},
}

var (
	titles = map[string]bool{
		"T": true, " T ": true, "\u200b": true, "\ufeff": true, "\u180e": true, "\u00ad": true, "\x00": true, "\u001f": true, "🎉": true,
		"": false, " ": false, "\t\n\v\f\r ": false, "\u0085": false, "\u00a0": false, "\u1680": false, "\u2000": false, "\u2005\u200a": false,
		"\u2028": false, "\u2029": false, "\u202f": false, "\u205f": false, "\u3000\u3000": false,
	}
	zones = map[string]bool{
		"UTC": true, "Europe/Paris": true, "America/Argentina/Buenos_Aires": true, "Etc/GMT+1": true, "America/Port-au-Prince": true,
		"utc": false, "Paris": false, "EST5EDT": false, "Europe/": false, "/Paris": false, "Europe/Paris ": false, "Europe/Zürich": false,
		"+02:00": false, "../etc/passwd": false,
	}
	webURLs = map[string]bool{
		"https://example.com": true, "http://example.com/": true, "HTTPS://EXAMPLE.COM/A": true, "https://example.com:8443/a?b=c#d": true,
		"https://example.com?a@b": true, "https://example.com:": true, "https://[2001:db8::1]:80/": true, "https://[v1.x]/": true,
		"https://a%20b/": true, "https://xn--bcher-kva.example/%C3%A9": true, "https://example.com//a//": true, "https://1.2.3.4.5": true,
		"https://": false, "https:///a": false, "https://:80/": false, "https:example.com": false, "//example.com": false, "example.com": false,
		"ftp://example.com": false, "mailto:ada@example.com": false, "https://ada@example.com": false, "https://ada:pw@example.com/": false,
		"https://@example.com": false, "https://example.com/a b": false, "https://exa mple.com": false, "https://example.com/é": false,
		"https://example.com/%": false, "https://example.com/%zz": false, "https://example.com:x/": false, "https://example.com/[a]": false,
		"https://[::1": false, "https://::1/": false, "https://[]/": false, "https://[fe80::1%25eth0]/": false, "https://[1.2.3.4]/": false,
		"https://example.com/a#b#c": false, "https://example.com/<a>": false, "https://example.com\\a": false, " https://example.com": false,
		"https://example.com\n": false, "https://example.com/\x00": false, "https://example.com/{a}": false, "https://?a": false, "https://#a": false,
	}
	dateTimes = map[string]bool{
		"2027-03-01T10:00:00Z": true, "2027-03-01t10:00:00z": true, "2027-03-01T10:00:00.5Z": true, "2027-03-01T10:00:00.123456789123Z": true,
		"2027-03-01T10:00:00+05:30": true, "2027-03-01T10:00:00-00:00": true, "2028-02-29T00:00:00Z": true, "2027-03-01T23:59:60Z": true,
		"2027-03-01T10:00:00+23:59": true, "0001-01-01T00:00:00+14:00": true, "2027-03-01T18:59:60-05:00": true,
		"2027-03-01": false, "2027-03-01T10:00Z": true, "2027-03-01T10:00:00": false, "2027-03-01 10:00:00Z": false, "2027-03-01T10:00:00,5Z": false,
		"2027-03-01T10:00:00.Z": false, "2027-3-1T10:00:00Z": false, "2027-03-01T9:00:00Z": false, "2027-02-29T10:00:00Z": false, "2027-13-01T10:00:00Z": false,
		"2027-00-01T10:00:00Z": false, "2027-03-00T10:00:00Z": false, "2027-03-01T24:00:00Z": false, "2027-03-01T10:60:00Z": false, "2027-03-01T10:00:60Z": false,
		"2027-03-01T10:00:61Z": false, "2027-03-01T10:00:00+24:00": false, "2027-03-01T10:00:00+02": true, "2027-03-01T10:00:00+0200": true,
		"2027-03-01T10:00:00 Z": false, " 2027-03-01T10:00:00Z": false, "2027-03-01T10:00:00Z ": false, "20270301T100000Z": false, "1772359200": false,
		"12027-03-01T10:00:00Z": false, "-001-03-01T10:00:00Z": false, "0000-01-01T00:00:00+00:01": false, "9999-12-31T23:59:59-00:01": false, "tomorrow": false,
	}
)
