// These tests compare openapi.json with the server. The requests of all other tests do so as well: describe
// reports what a response has that the document lacks.
package events_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"example.com/events"
	"example.com/events/internal/httpapi"
	"example.com/events/internal/strict"
)

type object = map[string]any

// openAPI returns openapi.json.
var openAPI = sync.OnceValue(func() object {
	text, err := os.ReadFile("openapi.json")
	var document object
	if err == nil {
		err = json.Unmarshal(text, &document)
	}
	if err != nil {
		panic(err)
	}
	return document
})

// lookup returns the value at a path of names in an object of the document, or nil. It follows references.
func lookup(value any, names ...string) any {
	for _, name := range names {
		o, _ := resolve(value).(object)
		value = o[name]
	}
	return resolve(value)
}

// resolve returns the component that a reference names, or the value itself.
func resolve(value any) any {
	o, _ := value.(object)
	ref, ok := o["$ref"].(string)
	if !ok {
		return value
	}
	return lookup(openAPI(), strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
}

// operations returns the operations of the document, such as "GET /events/{id}".
func operations() []string {
	var all []string
	for path, methods := range openAPI()["paths"].(object) {
		for method := range methods.(object) {
			all = append(all, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(all)
	return all
}

// operation returns the description of an operation.
func operation(name string) any {
	method, path, _ := strings.Cut(name, " ")
	return lookup(openAPI(), "paths", path, strings.ToLower(method))
}

// findOperation returns the operation of a request, or "". It takes a HEAD for a GET.
func findOperation(method, target string) string {
	path, _, _ := strings.Cut(target, "?")
	path, found := strings.CutPrefix(path, base)
	if !found {
		return ""
	}
	name := strings.Replace(method, "HEAD", "GET", 1) + " " + path
	if slices.Contains(operations(), name) {
		return name
	}
	for _, operation := range operations() {
		pattern := strings.ReplaceAll(operation, "{id}", "[^/]+")
		if matches("^"+pattern+"$", name) {
			return operation
		}
	}
	return ""
}

// commonHeaders are the headers of every response.
var commonHeaders = map[string]string{
	"Access-Control-Allow-Origin":   "*",
	"Access-Control-Expose-Headers": "location, idempotency-replayed, retry-after, www-authenticate, x-request-id",
	"Cache-Control":                 "no-store",
	"X-Content-Type-Options":        "nosniff",
}

// undescribedHeaders are the headers of responses that the document has in words only: those of net/http, of
// an OPTIONS and of a 405.
const undescribedHeaders = "^(Content-Type|Content-Length|Connection|Date|Allow|" +
	"Access-Control-(Allow-(Methods|Headers)|Max-Age))$"

// describe returns how a response differs from its description.
func describe(method, target string, r response) (problems []string) {
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for name, want := range commonHeaders {
		if got := strings.Join(r.header[name], "; "); got != want {
			add("%s = %q, want %q", name, got, want)
		}
	}
	if r.status == 204 {
		if r.body != "" {
			add("a 204 has a body")
		}
		return problems
	}
	description := descriptionOf(method, target, r.status)
	if description == nil {
		add("the status is not described")
		return problems
	}
	headers, _ := lookup(description, "headers").(object)
	for name, header := range headers {
		value, given := r.header[http.CanonicalHeaderKey(name)]
		if required, _ := lookup(header, "required").(bool); required && !given {
			add("%s is missing", name)
		}
		if given {
			problems = append(problems, validate(lookup(header, "schema"), value[0], name, false)...)
		}
	}
	for name := range r.header {
		described := slices.ContainsFunc(slices.Collect(maps.Keys(headers)), func(known string) bool {
			return strings.EqualFold(known, name)
		})
		if commonHeaders[name] == "" && !described && !matches(undescribedHeaders, name) {
			add("%s is not described", name)
		}
	}
	if got := r.header.Get("Content-Type"); got != "application/json" {
		add("Content-Type = %q, want application/json", got)
	}
	if got := r.header.Get("Content-Length"); got != strconv.Itoa(len(r.body)) && method != "HEAD" {
		add("Content-Length = %s, want %d", got, len(r.body))
	}
	if method == "HEAD" {
		return problems
	}
	var value any
	err := json.Unmarshal([]byte(r.body), &value)
	if err != nil {
		add("%v", err)
	}
	schema := lookup(description, "content", "application/json", "schema")
	problems = append(problems, validate(schema, value, "body", true)...)
	if r.status < 400 {
		return problems
	}
	code, _ := lookup(value, "error", "code").(string)
	text, _ := lookup(description, "description").(string)
	if !strings.HasPrefix(text, "`"+code+"`:") {
		add("code = %s, want the one that its description begins with: %s", code, text)
	}
	if !matches(`^([^A-Z]|Content-|Idempotency-|"|[\w-]+ is not known).*[^.]$`, r.message()) {
		add("the message must be in lower case, without a full stop")
	}
	return problems
}

// descriptionOf returns the description of a response, or nil. A request without an operation has the
// errors of those that exist. A 405 is described in words only.
func descriptionOf(method, target string, status int) any {
	name := findOperation(method, target)
	if name != "" && status != 405 {
		return lookup(operation(name), "responses", strconv.Itoa(status))
	}
	for _, name := range operations() {
		description := lookup(operation(name), "responses", strconv.Itoa(status))
		if status >= 400 && description != nil {
			return description
		}
	}
	if status == 405 {
		schema := object{"schema": lookup(openAPI(), "components", "schemas", "Error")}
		return object{"description": "`method_not_allowed`:", "content": object{"application/json": schema}}
	}
	return nil
}

// patternsInWords are rules that a schema has in its description only, because the pattern would break the
// clients that are generated from it.
var patternsInWords = map[string]string{
	"Title":   `[^\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]`,
	"Email":   `^[^\pZ\p{Cc}]*$`,
	"Instant": `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,8}[1-9])?Z$`,
	"WebUrl":  `^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@:][^/?#@]*([/?#]|$)`,
}

// validate returns what is wrong with a value by a JSON Schema, in the part of that language that openapi.json
// uses. If closed, an object must not have fields that its schema doesn't have.
func validate(schema, value any, place string, closed bool) (problems []string) {
	add := func(format string, args ...any) {
		problems = append(problems, place+" "+fmt.Sprintf(format, args...))
	}
	valid := func(schema any) bool { return validate(schema, value, place, closed) == nil }
	text, isText := value.(string)
	number, isNumber := value.(float64)
	list, _ := value.([]any)
	fields, isObject := value.(object)
	length := float64(utf8.RuneCountInString(text))
	keywords := schema.(object)
	for keyword, argument := range keywords {
		bound, _ := argument.(float64)
		words, _ := argument.(string)
		switch keyword {
		case "description", "default", "additionalProperties":
		case "$ref":
			problems = append(problems, validate(resolve(schema), value, place, closed)...)
			if pattern := patternsInWords[path.Base(words)]; isText && !matches(pattern, text) {
				add("doesn't match %s", pattern)
			}
		case "type":
			if typeOf(value) != words {
				add("is of type %s, want %s", typeOf(value), words)
			}
		case "const":
			if value != argument {
				add("= %v, want %v", value, argument)
			}
		case "enum":
			if !slices.Contains(argument.([]any), value) {
				add("= %v, want one of %v", value, argument)
			}
		case "anyOf":
			if !slices.ContainsFunc(argument.([]any), valid) {
				add("= %v is none of the alternatives", value)
			}
		case "not":
			if validate(argument, value, place, false) == nil {
				add("is excluded")
			}
		case "format":
			if isText && !formats[words](text) {
				add("= %q is no %s", text, words)
			}
		case "pattern":
			if isText && !matches(words, text) {
				add("= %q doesn't match %s", text, words)
			}
		case "minLength":
			if isText && length < bound {
				add("has %v characters, want at least %v", length, bound)
			}
		case "maxLength":
			if isText && length > bound {
				add("has %v characters, want at most %v", length, bound)
			}
		case "minimum":
			if isNumber && number < bound {
				add("= %v, want at least %v", number, bound)
			}
		case "maximum":
			if isNumber && number > bound {
				add("= %v, want at most %v", number, bound)
			}
		case "maxItems":
			if float64(len(list)) > bound {
				add("has %d items, want at most %v", len(list), bound)
			}
		case "items":
			for i, item := range list {
				problems = append(problems, validate(argument, item, fmt.Sprint(place, "/", i), closed)...)
			}
		case "required":
			for _, name := range argument.([]any) {
				if _, given := fields[name.(string)]; isObject && !given {
					add("lacks %s", name)
				}
			}
		case "properties":
			open, isSet := keywords["additionalProperties"].(bool)
			for name, field := range fields {
				part := argument.(object)[name]
				switch {
				case part != nil:
					problems = append(problems, validate(part, field, place+"/"+name, closed)...)
				case isSet && !open, !isSet && closed:
					add("has the field %s, which is not described", name)
				}
			}
		default:
			add("has a schema with the unknown keyword %s", keyword)
		}
	}
	return problems
}

func typeOf(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case float64:
		if value == float64(int64(value)) {
			return "integer"
		}
		return "number"
	}
	return "object"
}

var formats = map[string]func(string) bool{
	"date-time": isDateTime,
	"uri":       strict.URL,
}

// isDateTime reports whether s is a date-time of RFC 3339. The server also accepts shorter forms, and not all
// years. Package time knows no leap seconds.
func isDateTime(s string) bool {
	_, err := time.Parse(time.RFC3339, strings.ToUpper(s))
	if err != nil {
		_, err = strict.Time(s)
	}
	return err == nil && matches(`^.{10}[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):\d\d)$`, s)
}

var patterns sync.Map // compiled regular expressions

func matches(pattern, s string) bool {
	compiled, ok := patterns.Load(pattern)
	if !ok {
		compiled, _ = patterns.LoadOrStore(pattern, regexp.MustCompile(pattern))
	}
	return compiled.(*regexp.Regexp).MatchString(s)
}

// newDescribedService returns a service whose records have every value that a response can have.
func newDescribedService(t *testing.T) *service {
	t.Helper()
	records, err := os.ReadFile("testdata/openapi/seed.json")
	if err != nil {
		t.Fatal(err)
	}
	s := &service{t, &testStore{mode: inMemory}}
	s.use(events.NewStore(nil))
	s.apply(string(records))
	return s
}

// concrete returns the path of an operation that can be requested.
func concrete(path string) string { return strings.ReplaceAll(path, "{id}", "evt_1") }

// The document has the operations of the server, which serves it.
func TestOpenAPIOperations(t *testing.T) {
	t.Parallel()
	for _, name := range operations() {
		method, path, _ := strings.Cut(name, " ")
		r := newDescribedService(t).do(method, concrete(path), "")
		if r.status == 404 || r.status == 405 {
			t.Errorf("%s, but it is described", r)
		}
	}
	s := newDescribedService(t)
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		for path := range openAPI()["paths"].(object) {
			r := s.do(method, concrete(path), "")
			if findOperation(method, base+concrete(path)) == "" && r.status != 405 {
				t.Errorf("%s, but it is not described", r)
			}
		}
	}
	file, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if got := s.get("/openapi").body; got != string(file) {
		t.Errorf("GET /openapi = %.100s…, want openapi.json", got)
	}
}

// The limits of pages are as described.
func TestOpenAPILimits(t *testing.T) {
	t.Parallel()
	s := newDescribedService(t)
	event := `{"event":{"host_id":"usr_ada","title":"T",` + onMayDay + `}},`
	guest := `{"guest":{"event_id":"evt_1","name":"G"}},`
	s.apply("[" + strings.Repeat(event+guest, 200) + `{"delete":{"user":"usr_none"}}]`)
	for path, limit := range map[string]string{"/events": "EventLimit", "/events/evt_1/guests": "GuestLimit"} {
		schema := lookup(openAPI(), "components", "parameters", limit, "schema")
		for query, want := range map[string]any{
			"": lookup(schema, "default"),
			fmt.Sprint("?limit=", lookup(schema, "maximum")): lookup(schema, "maximum"),
		} {
			got := float64(len(strings.Fields(s.get(path + query).ids())))
			if got != want {
				t.Errorf("GET %s has %v items, want %v", path+query, got, want)
			}
		}
	}
}

// examples returns the examples of a media type: one, or several by name.
func examples(media any) map[string]any {
	all := map[string]any{}
	if example := lookup(media, "example"); example != nil {
		all[""] = example
	}
	named, _ := lookup(media, "examples").(object)
	for name, example := range named {
		all[name] = lookup(example, "value")
	}
	return all
}

func jsonOf(message any) any { return lookup(message, "content", "application/json") }

// Every described status is a response to some request, and every example of an error is one, character for
// character.
func TestOpenAPIResponses(t *testing.T) {
	t.Parallel()
	s, broken := newDescribedService(t), newDescribedService(t)
	broken.handler.Mux().Intercept = func(http.ResponseWriter, httpapi.Request, http.HandlerFunc) {
		panic("broken")
	}
	seen := map[string]bool{}
	see := func(r response) {
		method, target, _ := strings.Cut(r.request, " ")
		name := fmt.Sprint(findOperation(method, target), " ", r.status)
		seen[name] = true
		seen[name+" "+r.body] = true
	}
	try := func(method, path, body string, headers ...string) { see(s.do(method, path, body, headers...)) }
	for _, name := range operations() {
		s = newDescribedService(t) // the operation may delete the event
		method, path, _ := strings.Cut(name, " ")
		body := ""
		if method == "POST" {
			body = newEvent
		}
		target := concrete(path)
		try(method, target, body)
		try(method, target, body, keyless)
		try(method, target, body, keyless, "Authorization: Bearer ")
		try(method, target, body, "x-service-api-key: svc_live_nobody")
		try(method, target+"?nope=1", body)
		try(method, strings.ReplaceAll(path, "{id}", "evt_none"), body)
		see(broken.do(method, target, body))
	}
	for _, path := range []string{
		"/users/me?fields=id", "/events/evt_1?fields=id", "/openapi?format=yaml", "/events?page=2",
		"/events?limit=101", "/events?status=cancelled", "/events?cursor=x", "/events/evt_1/guests?cursor=x",
		"/events/evt_1/guests?status=approved", "/events/evt_1/guests?limit=201",
	} {
		try("GET", path, "")
	}
	const create = "/events/create"
	for _, example := range examples(jsonOf(lookup(operation("POST "+create), "requestBody"))) {
		try("POST", create, string(strict.Encode(example)))
	}
	for _, body := range []string{
		`{"title": "T",}`, `{"start_at":"2027-03-01T10:00:00Z","end_at":"2027-03-01T10:00:00Z"}`,
		`{"timezone":"Berlin",` + newEvent[1:], strings.Repeat(" ", 1<<20) + newEvent,
	} {
		try("POST", create, body)
	}
	try("POST", create+"?draft=true", newEvent)
	try("POST", create, newEvent, "Content-Type: text/plain")
	try("POST", create, newEvent, "Content-Encoding: gzip")
	try("POST", create, newEvent, "Idempotency-Key: launch party")
	try("POST", create, newEvent, "Idempotency-Key: k")
	try("POST", create, newEvent+" ", "Idempotency-Key: k")
	see(s.send("POST", base+create, iotest.ErrReader(io.ErrUnexpectedEOF)))

	for _, name := range operations() {
		for status, description := range lookup(operation(name), "responses").(object) {
			if !seen[name+" "+status] {
				t.Errorf("%s %s is described, but was no response", name, status)
			}
			for _, example := range examples(jsonOf(description)) {
				text := string(strict.Encode(example))
				if status >= "400" && !seen[name+" "+status+" "+text] {
					t.Errorf("%s %s has the example %s, which was no response", name, status, text)
				}
			}
		}
	}
}

// samples are texts for a schema.
type samples struct {
	Taken, Refused []string // by the schema and the server
	OnlyServer     []string `json:"only_server"`
	OnlySchema     []string `json:"only_schema"`
}

// readSamples returns samples by the place of their schema, such as "schemas/Title".
func readSamples(t *testing.T) map[string]samples {
	t.Helper()
	file, err := os.ReadFile("testdata/openapi/texts.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]samples
	err = json.Unmarshal(file, &all)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The server accepts a value of a field exactly if its schema does, or as texts.json says otherwise.
func TestOpenAPIRequestBody(t *testing.T) {
	t.Parallel()
	texts := readSamples(t)
	s := newDescribedService(t)
	fields := lookup(openAPI(), "components", "schemas", "NewEvent", "properties").(object)
	long := strings.Repeat("é", 50_000)
	for name, field := range fields {
		check := func(value any, byServer, bySchema bool) {
			t.Helper()
			body := object{"title": "T", "start_at": "0001-01-01T00:00:00Z", "end_at": "9999-12-31T23:59:59Z"}
			body[name] = value
			r := s.create(string(strict.Encode(body)))
			if byServer != (r.status == 201) {
				t.Errorf("%s = %.100q: %s, want accepted: %v", name, value, r, byServer)
			}
			problems := validate(field, value, name, true)
			if bySchema != (problems == nil) {
				t.Errorf("%s = %.100q: by the schema %q, want accepted: %v", name, value, problems, bySchema)
			}
		}
		for place, samples := range texts {
			if !bytes.Contains(strict.Encode(field), []byte("#/components/"+place+`"`)) {
				continue
			}
			for _, text := range samples.Taken {
				check(text, true, true)
			}
			for _, text := range samples.Refused {
				check(text, text == "" && slices.Contains(emptyIsNull, name), false)
			}
			for _, text := range samples.OnlyServer {
				check(text, true, false)
			}
			for _, text := range samples.OnlySchema {
				check(text, false, true)
			}
		}
		for _, value := range []any{nil, true, 1.0, "x", "", "virtual", "private", []any{}, object{}} {
			valid := validate(field, value, name, true) == nil
			check(value, valid || value == "" && slices.Contains(emptyIsNull, name), valid)
		}
		for _, n := range []int{0, 1, 100, 101, 255, 256, 50_000, 50_001} {
			text := (long + "é")[:n*len("é")]
			valid := validate(field, text, name, true) == nil
			check(text, valid || n == 0 && slices.Contains(emptyIsNull, name), valid)
		}
	}
	for _, name := range []string{"", "id", "slug", "status", "Title", "title "} {
		wantStatus(t, s.create(`{`+string(strict.Encode(name))+`:"x",`+newEvent[1:]), 400)
	}
}

func TestOpenAPISchemas(t *testing.T) {
	t.Parallel()
	texts := readSamples(t)
	zones, err := os.ReadFile("internal/strict/zones.txt")
	if err != nil {
		t.Fatal(err)
	}
	texts["schemas/Timezone"] = samples{Taken: strings.Fields(string(zones))}
	for place, samples := range texts {
		schema := any(object{"$ref": "#/components/" + place})
		if strings.HasPrefix(place, "parameters/") {
			schema = lookup(schema, "schema")
		}
		check := func(text string, want bool) {
			value := any(text)
			if number, err := strconv.ParseUint(text, 10, 64); err == nil && lookup(schema, "minimum") != nil {
				value = float64(number)
			}
			problems := validate(schema, value, place, true)
			if want != (problems == nil) {
				t.Errorf("%s = %q: %q, want accepted: %v", place, text, problems, want)
			}
		}
		for _, text := range slices.Concat(samples.Taken, samples.OnlySchema) {
			check(text, true)
		}
		for _, text := range slices.Concat(samples.Refused, samples.OnlyServer) {
			check(text, false)
		}
	}
}

// The examples of openapi.json that show a user, an event or a guest are what a server with the records of the
// demo sends. UPDATE=1 writes them again.
func TestGoldenExamples(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	demo, err := os.ReadFile("internal/demo/seed.json")
	if err != nil {
		t.Fatal(err)
	}
	made := []string{"n4tz7hk2wqd5xvb3yjf6mrpcea", "b5w3t7hn", "k5rw3tq7ynb2hd6zxm4jfvcaue", "x7k2m4qz"}
	cfg := &events.Config{
		Now: func() time.Time { return time.Date(2026, 1, 15, 9, 31, 0, 123456000, time.UTC) },
		NewID: func(string, string) string {
			id := made[0]
			made = made[1:]
			return id
		},
	}
	s := &service{t, &testStore{mode: inMemory}}
	s.use(events.NewStore(cfg))
	s.apply(string(demo))

	// golden compares an example, which is the text after some others in the file, with a JSON text.
	golden := func(want string, path ...string) {
		t.Helper()
		at := 0
		for _, name := range path {
			i := bytes.Index(file[at:], []byte(strconv.Quote(name)+":"))
			if i < 0 {
				t.Fatalf("openapi.json has no %q", path)
			}
			at += i + len(name) + len(`"":`)
		}
		at += bytes.IndexAny(file[at:], `{"`)
		line := file[bytes.LastIndexByte(file[:at], '\n')+1 : at]
		indent := line[:bytes.IndexByte(line, '"')]
		var text bytes.Buffer
		err := json.Indent(&text, []byte(want), string(indent), "  ")
		if err != nil {
			t.Fatal(err)
		}
		if bytes.HasPrefix(file[at:], text.Bytes()) {
			return
		}
		if os.Getenv("UPDATE") == "" {
			t.Errorf("the example %q is\n%.1000s…\nwant\n%s\nUPDATE=1 go test -run TestGolden . writes it",
				path, file[at:], &text)
			return
		}
		var old json.RawMessage
		err = json.NewDecoder(bytes.NewReader(file[at:])).Decode(&old)
		if err != nil {
			t.Fatal(err)
		}
		file = slices.Concat(file[:at], text.Bytes(), file[at+len(old):])
	}
	const asGrace = "x-service-api-key: svc_live_demo_2"
	const asAda = "x-service-api-key: svc_live_demo"
	engines := s.get("/events/evt_engines", asAda)
	all := requestOf(t, engines.body)
	least := string(strict.Encode(examples(jsonOf(lookup(operation("POST /events/create"), "requestBody")))["least"]))

	golden(s.get("/users/me", asAda).body, "/users/me", "200", "example")
	golden(s.get("/events?status=published&limit=1", asAda).body, "/events", "200", "more", "value")
	golden(s.get("/events?status=draft", asGrace).body, "/events", "200", "none", "value")
	golden(engines.body, "/events/{id}", "200", "example")
	golden(s.get("/events/evt_engines/guests", asAda).body, "/events/{id}/guests", "200", "example")
	golden(all, "/events/create", "requestBody", "all", "value")
	for _, create := range []struct{ name, body string }{{"least", least}, {"all", all}} {
		r := s.create(create.body, asAda)
		golden(r.body, "/events/create", "201", create.name, "value")
		golden(strconv.Quote(r.header.Get("Location")),
			"CreateEventServerError", "example", "headers", "Location", create.name, "value")
	}
	if os.Getenv("UPDATE") != "" {
		err := os.WriteFile("openapi.json", file, 0o644)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// requestOf returns the body that creates an event, with all its fields in their order.
func requestOf(t *testing.T, event string) string {
	t.Helper()
	fields := lookup(openAPI(), "components", "schemas", "NewEvent", "properties").(object)
	parsed, err := strict.Parse([]byte(event))
	var values map[string]json.RawMessage
	err = errors.Join(err, json.Unmarshal([]byte(event), &values))
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, field := range parsed.Members {
		if fields[field.Name] != nil {
			parts = append(parts, strconv.Quote(field.Name)+":"+string(values[field.Name]))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}
