// Package openapi compares openapi.json with the server. The requests of the tests at the top level do so as
// well, because package apitest reports what a response has that the document lacks.
package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"example.com/events"
	"example.com/events/internal/apitest"
	"example.com/events/internal/httpapi"
	"example.com/events/internal/strict"
	"example.com/events/internal/testdouble"
)

const base = events.BasePath

type object = map[string]any

// newService returns a service whose records have every value that a response can have.
func newService(t *testing.T) *apitest.Service {
	t.Helper()
	records, err := os.ReadFile("testdata/seed.json")
	if err != nil {
		t.Fatal(err)
	}
	s := apitest.NewWithStore(t, events.NewStore(nil))
	s.Apply(string(records))
	return s
}

// The document has the operations of the server, which serves it.
func TestOperations(t *testing.T) {
	t.Parallel()
	served := events.New(events.NewStore(nil)).(testdouble.API).Mux().Operations()
	for _, name := range apitest.Operations() {
		if !slices.Contains(served, name) {
			t.Errorf("openapi.json has %s: got no route in api.go, want one", name)
		}
	}
	for _, name := range served {
		if !slices.Contains(apitest.Operations(), name) {
			t.Errorf("api.go has a route for %s: got no operation in openapi.json, want one", name)
		}
	}
	s := newService(t)
	file, err := os.ReadFile("../../openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Get("/openapi").Body; got != string(file) {
		t.Errorf("GET /openapi: got %.100s…, want openapi.json", got)
	}
}

// The document has the version of the API, and says how to send a key.
func TestInfo(t *testing.T) {
	t.Parallel()
	if got := apitest.Lookup(apitest.Document(), "info", "version"); got != "1.0.0" {
		t.Errorf("info.version: got %v, want 1.0.0", got)
	}
	s := newService(t)
	for name, scheme := range apitest.Lookup(apitest.Document(), "components", "securitySchemes").(object) {
		header := fmt.Sprint("Authorization: ", apitest.Lookup(scheme, "scheme"), " svc_live_ada")
		if apitest.Lookup(scheme, "type") == "apiKey" {
			header = fmt.Sprint(apitest.Lookup(scheme, "name"), ": svc_live_ada")
		}
		if got := s.Get("/users/me", apitest.Keyless, header).Status; got != 200 {
			t.Errorf("GET /users/me with %s, as the scheme %s says: got %d, want 200", header, name, got)
		}
	}
}

// The document has the query parameters that each operation takes. The response to another one names them.
func TestQueryParameters(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for _, name := range apitest.Operations() {
		method, path, _ := strings.Cut(name, " ")
		if method != "GET" {
			continue
		}
		r := s.Get(apitest.Paths(t, path)[0].Text + "?nope=1")
		_, names, _ := strings.Cut(r.Body, " takes ")
		served := queryName.FindAllString(names, -1)
		slices.Sort(served)
		described := []string{}
		parameters, _ := apitest.Lookup(apitest.Operation(name), "parameters").([]any)
		for _, parameter := range parameters {
			if apitest.Lookup(parameter, "in") == "query" {
				described = append(described, apitest.Lookup(parameter, "name").(string))
			}
		}
		slices.Sort(described)
		if len(described) == 0 {
			described = []string{"none"}
		}
		if !slices.Equal(described, served) {
			t.Errorf("query parameters of %s: got %q in openapi.json, want %q", name, described, served)
		}
	}
}

var queryName = regexp.MustCompile(`\w+`)

// README.md has each operation with its query parameters and their values in a row of a table, the default
// size of a page and the lifetime of an idempotency key.
func TestReadme(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range apitest.Operations() {
		_, row, found := strings.Cut(string(readme), "| `"+name+"` |")
		if !found {
			t.Errorf("README.md: got no row for %s in the table, want one", name)
		}
		row, _, _ = strings.Cut(row, "\n")
		parameters, _ := apitest.Lookup(apitest.Operation(name), "parameters").([]any)
		for _, parameter := range parameters {
			if want := readmeText(parameter); !strings.Contains(row, want) {
				t.Errorf("README.md: the row of %s: got %s, want %s", name, row, want)
			}
		}
	}
	parameters := apitest.Lookup(apitest.Document(), "components", "parameters")
	lifetime, _ := apitest.Lookup(parameters, "IdempotencyKey", "description").(string)
	for pattern, want := range map[string]string{
		`\d+ items`: fmt.Sprint(apitest.Lookup(parameters, "EventLimit", "schema", "default"), " items"),
		`\d+ hours`: regexp.MustCompile(`\d+ hours`).FindString(lifetime),
	} {
		found := regexp.MustCompile(pattern).FindAllString(string(readme), -1)
		if got := slices.Compact(found); !slices.Equal(got, []string{want}) {
			t.Errorf("README.md: got %q, want %s as in openapi.json", got, want)
		}
	}
}

// Each operation has a name and describes each wildcard in its path. Request limits are those of the server.
func TestCompleteness(t *testing.T) {
	t.Parallel()
	for _, name := range apitest.Operations() {
		if id, _ := apitest.Lookup(apitest.Operation(name), "operationId").(string); id == "" {
			t.Errorf("%s: got no operationId, want one", name)
		}
		var described []string
		parameters, _ := apitest.Lookup(apitest.Operation(name), "parameters").([]any)
		for _, parameter := range parameters {
			if apitest.Lookup(parameter, "in") == "path" {
				described = append(described, fmt.Sprintf("{%s}", apitest.Lookup(parameter, "name")))
			}
		}
		if want := regexp.MustCompile(`\{\w+\}`).FindAllString(name, -1); !slices.Equal(described, want) {
			t.Errorf("%s: got the path parameters %s, want %s", name, described, want)
		}
	}
	for field := range reflect.TypeFor[events.Event]().Fields() {
		_, rule, _ := strings.Cut(field.Tag.Get("schema"), "chars=")
		var shortest, longest int
		if n, _ := fmt.Sscanf(rule, "%d-%d", &shortest, &longest); n != 2 {
			continue
		}
		name := field.Tag.Get("json")
		schema := apitest.Lookup(apitest.Document(), "components", "schemas", "NewEvent", "properties", name)
		if got := lengths(schema); !slices.Contains(got, longest+1) {
			t.Errorf("NewEvent.%s: got lengths to try %d, want %d because of the server's limit",
				name, got, longest+1)
		}
	}
}

// readmeText returns a query parameter with its values as in README.md, or "".
func readmeText(parameter any) string {
	if apitest.Lookup(parameter, "in") != "query" {
		return ""
	}
	text := fmt.Sprintf("`%s`", apitest.Lookup(parameter, "name"))
	schema := apitest.Lookup(parameter, "schema")
	if most := apitest.Lookup(schema, "maximum"); most != nil {
		return fmt.Sprintf("%s (%v to %v)", text, apitest.Lookup(schema, "minimum"), most)
	}
	if values, found := apitest.Lookup(schema, "enum").([]any); found {
		var words []string
		for _, value := range values {
			words = append(words, fmt.Sprintf("`%v`", value))
		}
		return fmt.Sprintf("%s (%s)", text, strings.Join(words, ", "))
	}
	return text
}

// Every field of a response is always there.
func TestRequiredFields(t *testing.T) {
	t.Parallel()
	for name, schema := range apitest.Lookup(apitest.Document(), "components", "schemas").(object) {
		fields, _ := apitest.Lookup(schema, "properties").(object)
		required, _ := apitest.Lookup(schema, "required").([]any)
		for field := range fields {
			if name != "NewEvent" && !slices.Contains(required, any(field)) {
				t.Errorf("the required fields of %s: got no %s, want it", name, field)
			}
		}
	}
}

// The schemas of responses are open, so that generated clients accept new values: they list no values and
// have no limits.
func TestOpenResponses(t *testing.T) {
	t.Parallel()
	allowed := strings.Fields("$ref anyOf description format items properties required type")
	var check func(place string, schema any)
	check = func(place string, schema any) {
		for keyword, argument := range schema.(object) {
			open := keyword == "additionalProperties" && argument == true
			if !open && !slices.Contains(allowed, keyword) {
				t.Errorf("%s in openapi.json: got %s %v, want an open schema", place, keyword, argument)
			}
			switch keyword {
			case "$ref":
				check(place, apitest.Lookup(schema))
			case "items":
				check(place+"[]", argument)
			case "anyOf":
				for _, alternative := range argument.([]any) {
					check(place, alternative)
				}
			case "properties":
				for name, field := range argument.(object) {
					check(place+"."+name, field)
				}
			}
		}
	}
	for _, name := range apitest.Operations() {
		for status, response := range apitest.Lookup(apitest.Operation(name), "responses").(object) {
			place := name + " " + status
			check(place, jsonOf(response).(object)["schema"])
			headers, _ := apitest.Lookup(response, "headers").(object)
			for header, description := range headers {
				check(place+" "+header, apitest.Lookup(description).(object)["schema"])
			}
		}
	}
}

// The limits of pages are as described.
func TestPageLimits(t *testing.T) {
	t.Parallel()
	s := newService(t)
	event := `{"event":{"host_id":"usr_ada","title":"T",` + apitest.EventTimes + `}},`
	guest := `{"guest":{"event_id":"evt_1","name":"G"}},`
	s.Apply("[" + strings.Repeat(event+guest, 200) + `{"delete":{"user":"usr_none"}}]`)
	for path, limit := range map[string]string{
		"/events": "EventLimit", "/events/evt_1/guests": "GuestLimit",
	} {
		schema := apitest.Lookup(apitest.Document(), "components", "parameters", limit, "schema")
		for query, want := range map[string]any{
			"": apitest.Lookup(schema, "default"),
			fmt.Sprint("?limit=", apitest.Lookup(schema, "maximum")): apitest.Lookup(schema, "maximum"),
		} {
			got := float64(len(strings.Fields(s.Get(path + query).IDs())))
			if got != want {
				t.Errorf("GET %s: got %v items, want %v", path+query, got, want)
			}
		}
	}
}

// examples returns the examples of a media type: one, or several by name.
func examples(media any) map[string]any {
	all := map[string]any{}
	if example := apitest.Lookup(media, "example"); example != nil {
		all[""] = example
	}
	named, _ := apitest.Lookup(media, "examples").(object)
	for name, example := range named {
		all[name] = apitest.Lookup(example, "value")
	}
	return all
}

func jsonOf(message any) any { return apitest.Lookup(message, "content", "application/json") }

// createExamples returns the examples of the body of a create.
func createExamples() map[string]any {
	return examples(jsonOf(apitest.Lookup(apitest.Operation("POST /events/create"), "requestBody")))
}

// Every described status is a response to some request, and every example of an error is one, character for
// character.
func TestResponses(t *testing.T) {
	t.Parallel()
	s, broken := newService(t), newService(t)
	broken.Intercept(func(http.ResponseWriter, httpapi.Request, http.HandlerFunc) { panic("broken") })
	seen := map[string]bool{}
	see := func(r apitest.Response) {
		method, target, _ := strings.Cut(r.Request, " ")
		path, _, _ := strings.Cut(target, "?")
		name := fmt.Sprint(apitest.FindOperation(method, path), " ", r.Status)
		seen[name] = true
		seen[name+" "+r.Body] = true
	}
	try := func(method, path, body string, headers ...string) { see(s.Do(method, path, body, headers...)) }
	for _, name := range apitest.Operations() {
		s = newService(t) // the operation may delete the event
		method, path, _ := strings.Cut(name, " ")
		body := ""
		if method == "POST" {
			body = apitest.NewEvent
		}
		paths := apitest.Paths(t, path)
		for _, path := range paths {
			try(method, path.Missing, body)
		}
		target := paths[0].Text
		try(method, target, body, apitest.Keyless)
		try(method, target, body, apitest.Keyless, "Authorization: Bearer ")
		try(method, target, body, "x-service-api-key: svc_live_nobody")
		try(method, target+"?fields=id", body)
		see(broken.Do(method, target, body))
	}
	for _, path := range []string{
		"/openapi?format=yaml", "/events?page=2",
		"/events?limit=101", "/events?status=cancelled", "/events?cursor=x", "/events/evt_1/guests?cursor=x",
		"/events/evt_1/guests?status=approved", "/events/evt_1/guests?limit=201",
	} {
		try("GET", path, "")
	}
	const create = "/events/create"
	for _, example := range createExamples() {
		try("POST", create, string(strict.Encode(example)))
	}
	for _, body := range []string{
		`{"title": "T",}`, `{"start_at":"2027-03-01T10:00:00Z","end_at":"2027-03-01T10:00:00Z"}`,
		`{"timezone":"Berlin",` + apitest.NewEvent[1:], strings.Repeat(" ", 1<<20+1),
	} {
		try("POST", create, body)
	}
	try("POST", create+"?draft=true", apitest.NewEvent)
	try("POST", create, apitest.NewEvent, "Content-Type: text/plain")
	try("POST", create, apitest.NewEvent, "Content-Encoding: gzip")
	try("POST", create, apitest.NewEvent, "Idempotency-Key: launch party")
	try("POST", create, apitest.NewEvent, "Idempotency-Key: k")
	try("POST", create, apitest.NewEvent+" ", "Idempotency-Key: k")
	see(s.Send("POST", base+create, iotest.ErrReader(io.ErrUnexpectedEOF)))
	s.Store.Close()
	try("POST", create, apitest.NewEvent)

	for _, name := range apitest.Operations() {
		for status, description := range apitest.Lookup(apitest.Operation(name), "responses").(object) {
			if !seen[name+" "+status] {
				t.Errorf("%s: got no response %s, want one because it is described", name, status)
			}
			if len(examples(jsonOf(description))) == 0 {
				t.Errorf("%s %s: got no example in openapi.json, want one", name, status)
			}
			if status < "400" {
				continue // TestGoldenExamples has these examples
			}
			for _, example := range examples(jsonOf(description)) {
				text := string(strict.Encode(example))
				if !seen[name+" "+status+" "+text] {
					t.Errorf("%s: got no response %s %s, want one because it is an example",
						name, status, text)
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
	file, err := os.ReadFile("testdata/texts.json")
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

// lengths returns the bounds of a text's length by a schema, and the lengths just outside of them.
func lengths(schema any) (all []int) {
	if shortest, found := apitest.Lookup(schema, "minLength").(float64); found {
		all = append(all, int(shortest)-1, int(shortest))
	}
	if longest, found := apitest.Lookup(schema, "maxLength").(float64); found {
		all = append(all, int(longest), int(longest)+1)
	}
	alternatives, _ := apitest.Lookup(schema, "anyOf").([]any)
	for _, alternative := range alternatives {
		all = append(all, lengths(alternative)...)
	}
	return all
}

// The server accepts a value of a field exactly if its schema does, or as texts.json says otherwise.
func TestRequestBody(t *testing.T) {
	t.Parallel()
	texts := readSamples(t)
	s := newService(t)
	fields := apitest.Lookup(apitest.Document(), "components", "schemas", "NewEvent", "properties").(object)
	for name, field := range fields {
		check := func(value any, byServer, bySchema bool) {
			t.Helper()
			body := object{"title": "T", "start_at": "0001-01-01T00:00:01Z", "end_at": "9999-12-31T23:59:59Z"}
			body[name] = value
			r := s.Create(string(strict.Encode(body)))
			if byServer != (r.Status == 201) {
				t.Errorf("%s %.100q: %s, want accepted: %v", name, value, r, byServer)
			}
			problems := apitest.Validate(field, value, name, true)
			if bySchema != (problems == nil) {
				t.Errorf("%s %.100q: by the schema: got %q, want accepted: %v",
					name, value, problems, bySchema)
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
				check(text, text == "" && slices.Contains(apitest.EmptyIsNull, name), false)
			}
			for _, text := range samples.OnlyServer {
				check(text, true, false)
			}
			for _, text := range samples.OnlySchema {
				check(text, false, true)
			}
		}
		for _, value := range []any{nil, true, 1.0, "x", "", "virtual", "private", []any{}, object{}} {
			valid := apitest.Validate(field, value, name, true) == nil
			check(value, valid || value == "" && slices.Contains(apitest.EmptyIsNull, name), valid)
		}
		for _, n := range lengths(field) {
			for _, text := range []string{strings.Repeat("é", n), ("https://" + strings.Repeat("a", n))[:n]} {
				valid := apitest.Validate(field, text, name, true) == nil
				check(text, valid, valid)
			}
		}
	}
	for _, name := range []string{"", "id", "slug", "status", "Title", "title "} {
		s.Create(`{`+string(strict.Encode(name))+`:"x",`+apitest.NewEvent[1:]).WantStatus(t, 400)
	}
}

func TestSchemas(t *testing.T) {
	t.Parallel()
	texts := readSamples(t)
	zones, err := os.ReadFile("../../internal/strict/zones.txt")
	if err != nil {
		t.Fatal(err)
	}
	texts["schemas/Timezone"] = samples{Taken: strings.Fields(string(zones))}
	for place, samples := range texts {
		schema := any(object{"$ref": "#/components/" + place})
		if strings.HasPrefix(place, "parameters/") {
			schema = apitest.Lookup(schema, "schema")
		}
		check := func(text string, want bool) {
			value := any(text)
			number, err := strconv.ParseUint(text, 10, 64)
			if err == nil && apitest.Lookup(schema, "minimum") != nil {
				value = float64(number)
			}
			problems := apitest.Validate(schema, value, place, true)
			if want != (problems == nil) {
				t.Errorf("%s %q: got %q, want accepted: %v", place, text, problems, want)
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

// The examples of successes in openapi.json are what a server with the records of the demo sends. UPDATE=1
// writes them again.
func TestGoldenExamples(t *testing.T) {
	t.Parallel()
	demo, err := os.ReadFile("../../internal/demo/seed.json")
	if err != nil {
		t.Fatal(err)
	}
	made := []string{"n4tz7hk2wqd5xvb3yjf6mrpcea", "b5w3t7hn", "k5rw3tq7ynb2hd6zxm4jfvcaue", "x7k2m4qz"}
	s := apitest.NewWithStore(t, events.NewStore(&events.Config{
		Now: func() time.Time { return time.Date(2026, 1, 15, 9, 31, 0, 123456000, time.UTC) },
	}))
	events.New(s.Store).(testdouble.API).SetNewID(func(string, string) string {
		id := made[0]
		made = made[1:]
		return id
	})
	s.Apply(string(demo))
	const asAda, asGrace = "x-service-api-key: svc_live_demo", "x-service-api-key: svc_live_demo_2"
	engines := s.Get("/events/evt_engines", asAda)
	requestAll := requestOf(t, engines.Body)
	sent := map[string]apitest.Response{ // by operation and name of the example
		"GET /users/me":           s.Get("/users/me", asAda),
		"GET /events more":        s.Get("/events?status=published&limit=1", asAda),
		"GET /events none":        s.Get("/events?status=draft", asGrace),
		"GET /events/{id}":        engines,
		"GET /events/{id}/guests": s.Get("/events/evt_engines/guests", asAda),
	}
	for _, create := range []struct{ name, body string }{
		{"least", string(strict.Encode(createExamples()["least"]))},
		{"all", requestAll},
	} {
		sent["POST /events/create "+create.name] = s.Create(create.body, asAda)
	}

	golden := readGolden(t)
	golden.check(requestAll, "/events/create", "post", "requestBody", "all", "value")
	for _, name := range apitest.Operations() {
		if name == "GET /openapi" {
			continue // its example is the beginning of the document
		}
		method, path, _ := strings.Cut(name, " ")
		for status, response := range apitest.Lookup(apitest.Operation(name), "responses").(object) {
			if status >= "300" {
				continue // TestResponses has these examples
			}
			for example := range examples(jsonOf(response)) {
				r, found := sent[strings.TrimSpace(name+" "+example)]
				if !found {
					t.Errorf("%s %s, example %q: got no request above, want one", name, status, example)
					continue
				}
				place := []string{path, strings.ToLower(method), "responses", status}
				if example == "" {
					place = append(place, "example")
				} else {
					place = append(place, "examples", example, "value")
				}
				golden.check(r.Body, place...)
			}
		}
	}
	for _, example := range []string{"least", "all"} {
		location := strconv.Quote(sent["POST /events/create "+example].Header.Get("Location"))
		golden.check(location, "components", "headers", "Location", "examples", example, "value")
	}
}

// goldenDocument is the text of openapi.json, whose examples are compared with what a server sends.
type goldenDocument struct {
	t    *testing.T
	text []byte
}

func readGolden(t *testing.T) *goldenDocument {
	t.Helper()
	text, err := os.ReadFile("../../openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	return &goldenDocument{t, text}
}

// check compares an example with a JSON text, and writes it if UPDATE is set. The example is the value after
// some names that follow each other in the document.
func (d *goldenDocument) check(want string, names ...string) {
	d.t.Helper()
	at := 0
	for _, name := range names {
		i := bytes.Index(d.text[at:], []byte(strconv.Quote(name)+":"))
		if i < 0 {
			d.t.Fatalf("openapi.json: got no %q, want an example there", names)
		}
		at += i + len(name) + len(`"":`)
	}
	at += bytes.IndexAny(d.text[at:], `{"`)
	line := d.text[bytes.LastIndexByte(d.text[:at], '\n')+1 : at]
	indent := line[:bytes.IndexByte(line, '"')]
	var text bytes.Buffer
	err := json.Indent(&text, []byte(want), string(indent), "  ")
	if err != nil {
		d.t.Fatal(err)
	}
	if bytes.HasPrefix(d.text[at:], text.Bytes()) {
		return
	}
	if os.Getenv("UPDATE") == "" {
		d.t.Errorf("the example %q: got\n%.1000s…\nwant\n%s\n"+
			"UPDATE=1 go test -run TestGolden ./tests/openapi writes it",
			names, d.text[at:], &text)
		return
	}
	var old json.RawMessage
	err = json.NewDecoder(bytes.NewReader(d.text[at:])).Decode(&old)
	if err != nil {
		d.t.Fatal(err)
	}
	d.text = slices.Concat(d.text[:at], text.Bytes(), d.text[at+len(old):])
	err = os.WriteFile("../../openapi.json", d.text, 0o644)
	if err != nil {
		d.t.Fatal(err)
	}
}

// requestOf returns the body that creates an event, with all its fields in their order.
func requestOf(t *testing.T, event string) string {
	t.Helper()
	fields := apitest.Lookup(apitest.Document(), "components", "schemas", "NewEvent", "properties").(object)
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
