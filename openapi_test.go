// These tests hold openapi.json against the server, in both directions: whatever the file
// describes, the server does, and whatever the server answers, the file describes. checkAnswer,
// which the tests of the API call for each answer, finds what the file lacks. The checks of
// values by their schemas are in schema_test.go.
package events_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"example.com/events"
	"example.com/events/internal/httpapi"
	"example.com/events/internal/strict"
	"example.com/events/internal/testdouble"
)

// document is openapi.json. It is decoded strictly, so a word that these types
// do not list fails every test: no word of the file can go unchecked.
type document struct {
	OpenAPI    string
	Info       struct{ Title, Version, Summary, Description string }
	Servers    []struct{ URL, Description string }
	Security   []map[string][]string
	Tags       []struct{ Name, Description string }
	Paths      map[string]map[string]*operation // by path and method
	Components struct {
		SecuritySchemes map[string]struct{ Type, In, Name, Scheme, Description string }
		Parameters      map[string]*parameter
		Responses       map[string]*message
		Headers         map[string]*parameter
		Schemas         map[string]*schema
	}

	operations []string  // such as "GET /events/{id}"
	schemas    []*schema // every schema in the file
}

type operation struct {
	OperationID, Summary, Description string
	Tags                              []string
	Security                          []map[string][]string
	Parameters                        []reference
	RequestBody                       *message            // nil if there is none
	Responses                         map[string]*message // by status; without references, once loaded
}

// reference names a component of the document.
type reference struct {
	Ref string `json:"$ref"`
}

func (r reference) name() string { return path.Base(r.Ref) }

// parameter is a parameter of a request, or a header of an answer.
type parameter struct {
	Name, In, Description string
	Required              bool
	media
}

// message is the body of a request, or an answer.
type message struct {
	reference
	Description string
	Required    bool
	Headers     map[string]reference
	Content     map[string]media
}

// json returns what the message has as application/json, the only type there is.
func (m *message) json() media { return m.Content["application/json"] }

// media is a schema with examples, each as it is written in the file.
type media struct {
	Schema   *schema
	Example  json.RawMessage
	Examples map[string]struct {
		Summary string
		Value   json.RawMessage
	}
}

// example returns the example with a name, or the only one, whose name is "".
func (m media) example(name string) json.RawMessage {
	if name == "" {
		return m.Example
	}
	return m.Examples[name].Value
}

// examples returns the values of all examples, in the order of their names.
func (m media) examples() (values []any) {
	names := slices.Sorted(maps.Keys(m.Examples))
	if m.Example != nil {
		names = append(names, "")
	}
	for _, name := range names {
		var value any
		if err := json.Unmarshal(m.example(name), &value); err != nil {
			panic(err)
		}
		values = append(values, value)
	}
	return values
}

// openAPI loads openapi.json once.
var openAPI = sync.OnceValue(func() *document {
	data, err := os.ReadFile("openapi.json")
	if err != nil {
		panic(err)
	}
	d := &document{}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(d); err != nil {
		panic("openapi.json: " + err.Error())
	}
	for path, methods := range d.Paths {
		for method := range methods {
			d.operations = append(d.operations, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(d.operations)

	c := d.Components
	for name, s := range c.Schemas {
		d.add("#/components/schemas/"+name, s)
	}
	for name, p := range c.Parameters {
		d.add("#/components/parameters/"+name, p.Schema)
	}
	for name, h := range c.Headers {
		d.add("#/components/headers/"+name, h.Schema)
	}
	for name, m := range c.Responses {
		d.addMessage("#/components/responses/"+name, m)
	}
	for path, methods := range d.Paths {
		for method, o := range methods {
			at := "#/paths/" + strings.ReplaceAll(path, "/", "~1") + "/" + method
			if o.RequestBody != nil {
				d.addMessage(at+"/requestBody", o.RequestBody)
			}
			for status, m := range o.Responses {
				place := at + "/responses/" + status
				if m.Ref == "" {
					d.addMessage(place, m)
				} else if o.Responses[status] = c.Responses[m.name()]; o.Responses[status] == nil {
					panic(place + " refers to " + m.Ref + ", which does not exist")
				}
			}
		}
	}
	return d
})

// add notes where a schema and the schemas inside it are, and what they refer to.
func (d *document) add(at string, s *schema) {
	s.at = at
	d.schemas = append(d.schemas, s)
	if s.Ref != "" {
		if s.target = d.Components.Schemas[s.name()]; s.target == nil {
			panic(at + " refers to " + s.Ref + ", which does not exist")
		}
	}
	for name, part := range s.Properties {
		d.add(at+"/properties/"+name, part)
	}
	for i, part := range s.AnyOf {
		d.add(fmt.Sprintf("%s/anyOf/%d", at, i), part)
	}
	if s.Items != nil {
		d.add(at+"/items", s.Items)
	}
	if s.Not != nil {
		d.add(at+"/not", s.Not)
	}
}

// addMessage notes the schema of a body or an answer.
func (d *document) addMessage(at string, m *message) {
	if m.Content != nil { // a 204 has none
		d.add(at, m.json().Schema)
	}
}

// operation returns one operation, such as that of "GET /events/{id}".
func (d *document) operation(name string) *operation {
	method, path, _ := strings.Cut(name, " ")
	return d.Paths[path][strings.ToLower(method)]
}

// success is the status of what an operation answers if it succeeds.
func (o *operation) success() (status int) {
	for text := range o.Responses {
		if n, err := strconv.Atoi(text); err == nil && n < 300 {
			status = n
		}
	}
	return status
}

// newEvent returns the body of a create.
func (d *document) newEvent() media { return d.operation("POST /events/create").RequestBody.json() }

// response returns the description of an operation's answer with this status, or
// nil if it has none.
func (d *document) response(name string, status int) *message {
	return d.operation(name).Responses[strconv.Itoa(status)]
}

// find returns the name of the operation that a request is for, or "" if there
// is none. HEAD is the same as GET.
func (d *document) find(method, target string) string {
	if method == "HEAD" {
		method = "GET"
	}
	target, _, _ = strings.Cut(target, "?")
	target, under := strings.CutPrefix(target, events.BasePath)
	_, literal := d.Paths[target]
	for _, name := range d.operations {
		of, pattern, _ := strings.Cut(name, " ")
		fits := pattern == target
		if !literal {
			fits = compile("^" + strings.ReplaceAll(pattern, "{id}", "[^/]+") + "$").MatchString(target)
		}
		if under && of == method && fits {
			return name
		}
	}
	return ""
}

// concrete makes a path that can be requested of a path of the document.
func concrete(path string) string { return strings.ReplaceAll(path, "{id}", "evt_1") }

// checkAnswer returns how an answer differs from what openapi.json says of it:
// the status, the headers, and the body, which must not have a member that is not
// described. Two kinds of answers are only in the text of the file: a path or a
// method that does not exist has the form of an error, and OPTIONS has no body.
func checkAnswer(method, target string, status int, header http.Header, body []byte) error {
	d := openAPI()
	answer, others := d.described(method, target, status)
	if answer == nil {
		return fmt.Errorf("%s %s: the status %d is not described", method, target, status)
	}
	problems := d.checkHeaders(answer, others, header)
	// Which of the two headers a 415 has is in their descriptions only.
	if status == http.StatusUnsupportedMediaType && len(header["Accept"])+len(header["Accept-Encoding"]) != 1 {
		problems = append(problems, "a 415 has either Accept or Accept-Encoding")
	}
	if method != "HEAD" && answer.Content != nil {
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
			v := validator{closed: true}
			problems = append(problems, v.check(answer.json().Schema, "", value)...)
		}
		var failed struct{ Error struct{ Code string } }
		json.Unmarshal(body, &failed)
		if got, want := failed.Error.Code, answer.code(); got != want {
			problems = append(problems, fmt.Sprintf("error.code is %q, want %q", got, want))
		}
	}
	if problems != nil {
		slices.Sort(problems)
		return fmt.Errorf("%s %s: %d: %s", method, target, status, strings.Join(problems, "; "))
	}
	return nil
}

// described returns the description of an answer, or nil if there is none, and a
// pattern of the headers that it may have beyond those of the description.
func (d *document) described(method, target string, status int) (answer *message, others string) {
	switch name := d.find(method, target); {
	case method == "OPTIONS" && status == http.StatusNoContent:
		return &message{}, "^Allow$|^Access-Control-(Allow-(Methods|Headers)|Max-Age)$"
	case status == http.StatusMethodNotAllowed:
		other := d.Components.Responses["NotFound"]
		return &message{Description: "`method_not_allowed`:", Content: other.Content}, "^Allow$"
	case name != "":
		return d.response(name, status), "^$"
	case status >= 400: // a path that is not described has the errors of those that are
		for _, name := range d.operations {
			if answer := d.response(name, status); answer != nil {
				return answer, "^$"
			}
		}
	}
	return nil, ""
}

// code returns the error code of an answer, with which the description of every
// error begins, or "".
func (m *message) code() string {
	if found := compile("^`([a-z_]+)`:").FindStringSubmatch(m.Description); found != nil {
		return found[1]
	}
	return ""
}

// always has the headers of every answer.
var always = map[string]string{
	"Access-Control-Allow-Origin": "*",
	"Access-Control-Expose-Headers": "location, idempotency-replayed, retry-after, " +
		"www-authenticate, x-request-id",
	"Cache-Control":          "no-store",
	"X-Content-Type-Options": "nosniff",
}

// checkHeaders returns what is wrong with the headers of an answer.
func (d *document) checkHeaders(answer *message, others string, header http.Header) (problems []string) {
	known := map[string]bool{"Content-Type": true, "Content-Length": true, "Connection": true, "Date": true}
	for name, want := range always {
		known[name] = true
		if got := header[name]; len(got) != 1 || got[0] != want {
			problems = append(problems, fmt.Sprintf("the header %s is %q, want %q", name, got, want))
		}
	}
	for name, ref := range answer.Headers {
		described := d.Components.Headers[ref.name()]
		name = http.CanonicalHeaderKey(name)
		known[name] = true
		values := header[name]
		switch {
		case len(values) > 1 || len(values) == 0 && described.Required:
			problems = append(problems, fmt.Sprintf("the header %s has %d values", name, len(values)))
		case len(values) == 1:
			problems = append(problems, validator{}.check(described.Schema, name, values[0])...)
		}
	}
	for name := range header {
		if !known[name] && !compile(others).MatchString(name) {
			problems = append(problems, "the header "+name+" is not described")
		}
	}
	return problems
}

// samples are texts for one schema of the document, from testdata/openapi/texts.json.
type samples struct {
	Taken, Refused []string // by the schema and by the server

	// JSON Schema has no word for some rules. Their descriptions say in words what
	// the server takes although the schema does not, and the other way round.
	OnlyServer []string `json:"only_server"`
	OnlySchema []string `json:"only_schema"`
}

// texts returns the samples by the places of their schemas, such as "schemas/Title".
var texts = sync.OnceValue(func() (all map[string]samples) {
	data, err := os.ReadFile("testdata/openapi/texts.json")
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		panic(err)
	}
	return all
})

// samples returns the samples for a schema, which may be empty.
func (s *schema) samples() samples { return texts()[strings.TrimPrefix(s.at, "#/components/")] }

func TestOpenAPITexts(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, s := range openAPI().schemas {
		samples := s.samples()
		check := func(texts []string, want bool) {
			for _, text := range texts {
				tried++
				var value any = text
				if number, err := strconv.ParseUint(text, 10, 64); err == nil && s.Minimum != nil {
					value = float64(number)
				}
				if got := (validator{}).check(s, "", value) == nil; got != want {
					t.Errorf("%s takes %q: %v, want %v", s.at, text, got, want)
				}
			}
		}
		check(slices.Concat(samples.Taken, samples.OnlySchema), true)
		check(slices.Concat(samples.Refused, samples.OnlyServer), false)
	}
	if tried < 150 {
		t.Errorf("there were %d texts only", tried)
	}
	zones, err := os.ReadFile("internal/strict/zones.txt")
	if err != nil {
		t.Fatal(err)
	}
	for zone := range strings.FieldsSeq(string(zones)) {
		if (validator{}).check(openAPI().Components.Schemas["Timezone"], "", zone) != nil {
			t.Errorf("Timezone excludes %s", zone)
		}
	}
}

const leastBody = `{"title":"T","start_at":"2027-03-01T10:00:00Z","end_at":"2027-03-01T12:00:00Z"}`

// prober sends requests to a server of its own, and holds each answer against the
// document. Its seed has every value that an answer can have.
type prober struct {
	t       *testing.T
	store   *events.Store
	handler http.Handler
	seen    map[string]bool // operations with their statuses and bodies
}

func newProber(t *testing.T, cfg *events.Config) *prober {
	p := &prober{t: t, store: events.NewStore(cfg), seen: map[string]bool{}}
	seed, err := os.ReadFile("testdata/openapi/seed.json")
	if err == nil {
		err = p.store.ApplyJSON(seed)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.handler = events.New(p.store)
	return p
}

// do sends a request to a path under the base path, with Ada's key. The headers
// are names and values in turn; an empty value removes the header.
func (p *prober) do(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	p.t.Helper()
	return p.send(method, target, strings.NewReader(body), headers...)
}

// send is do with a body that may end as it should not.
func (p *prober) send(method, target string, body io.Reader, headers ...string) *httptest.ResponseRecorder {
	p.t.Helper()
	r := httptest.NewRequest(method, events.BasePath+target, body)
	r.Header.Set("X-Service-Api-Key", "svc_live_ada")
	for pair := range slices.Chunk(headers, 2) {
		if r.Header.Set(pair[0], pair[1]); pair[1] == "" {
			r.Header.Del(pair[0])
		}
	}
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r)
	p.see(method, r.URL.Path, w)
	return w
}

// see holds an answer against the document, and notes what it shows.
func (p *prober) see(method, path string, w *httptest.ResponseRecorder) {
	p.t.Helper()
	d := openAPI()
	if err := checkAnswer(method, path, w.Code, w.Header(), w.Body.Bytes()); err != nil {
		p.t.Error(err)
	}
	answered := fmt.Sprint(d.find(method, path), " ", w.Code)
	p.seen[answered] = true
	p.seen[answered+" "+w.Body.String()] = true
}

func TestOpenAPIRoutes(t *testing.T) {
	t.Parallel()
	d := openAPI()
	server := slices.Sorted(slices.Values(events.New(nil).(testdouble.Server).Operations()))
	if !slices.Equal(d.operations, server) {
		t.Errorf("the operations are %q, want those of the server: %q", d.operations, server)
	}
	p := newProber(t, nil)
	for path := range d.Paths {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "X"} {
			got := p.do(method, concrete(path), "").Code
			described := d.find(method, events.BasePath+concrete(path)) != ""
			if path == "/events/create" && (method == "GET" || method == "HEAD") {
				described = true // as GET /events/{id}
			}
			if described == (got == http.StatusMethodNotAllowed) {
				t.Errorf("%s %s = %d, described: %v", method, path, got, described)
			}
		}
		p.do("OPTIONS", concrete(path), "")
	}
	file, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if got := p.do("GET", "/openapi", "").Body.String(); got != string(file) {
		t.Errorf("GET /openapi = %.100s…, want openapi.json", got)
	}
}

// Without a limit, a page has as many items as the default says. With the highest
// limit, it has as many as its schema takes.
func TestOpenAPILimits(t *testing.T) {
	t.Parallel()
	d := openAPI()
	p := newProber(t, nil)
	record := strings.Replace(leastBody, "{", `{"event":{"host_id":"usr_ada",`, 1) + "}"
	records := strings.Repeat(record+`,{"guest":{"event_id":"evt_1","name":"G"}},`, 200)
	if err := p.store.ApplyJSON([]byte("[" + records + record + "]")); err != nil {
		t.Fatal(err)
	}
	for operation, parameter := range map[string]string{
		"GET /events": "EventLimit", "GET /events/{id}/guests": "GuestLimit",
	} {
		limit := d.Components.Parameters[parameter].Schema
		target := concrete(strings.TrimPrefix(operation, "GET "))
		most := d.response(operation, 200).json().Schema.target.Properties["data"].MaxItems
		for query, want := range map[string]float64{
			"": *limit.Default, fmt.Sprintf("?limit=%v", *limit.Maximum): float64(*most),
		} {
			var got struct{ Data []any }
			json.Unmarshal(p.do("GET", target+query, "").Body.Bytes(), &got) // do has checked it
			if len(got.Data) != int(want) {
				t.Errorf("GET %s has %d items, want %v", target+query, len(got.Data), want)
			}
		}
	}
}

// TestGoldenExamples holds the examples of openapi.json that show a user, an event or a
// guest: each is what a server with the data of the demo answers, with the same layout. So
// internal/demo/seed.json is the one source of all of them. UPDATE=1 writes them again.
//
// These are also the only whole answers that a test holds, with the order of their members.
func TestGoldenExamples(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	golden := func(place string, example json.RawMessage, want []byte) {
		t.Helper()
		before, _, found := bytes.Cut(file, example)
		if !found || bytes.Count(file, example) > 1 {
			t.Fatalf("openapi.json has the example of %s never or twice: %s", place, example)
		}
		line := before[bytes.LastIndexByte(before, '\n')+1:]
		indent := line[:bytes.IndexByte(line, '"')]
		var text bytes.Buffer
		if err := json.Indent(&text, want, string(indent), "  "); err != nil {
			t.Fatal(err)
		}
		if os.Getenv("UPDATE") != "" {
			file = bytes.Replace(file, example, text.Bytes(), 1)
		} else if text.String() != string(example) {
			t.Errorf("the example of %s is\n%s\nwant what the server answers:\n%s\n"+
				"UPDATE=1 go test -run TestGolden . writes it", place, example, &text)
		}
	}

	made := []string{"n4tz7hk2wqd5xvb3yjf6mrpcea", "b5w3t7hn", "k5rw3tq7ynb2hd6zxm4jfvcaue", "x7k2m4qz"}
	store := events.NewStore(&events.Config{
		Now: func() time.Time { return time.Date(2026, 1, 15, 9, 31, 0, 123456000, time.UTC) },
		NewID: func(string, string) string {
			id := made[0]
			made = made[1:]
			return id
		},
	})
	if err := store.ApplyJSON(readDemo(t)); err != nil {
		t.Fatal(err)
	}
	ada := &service{t, store, events.New(store), "svc_live_demo"}
	grace := ada.as("svc_live_demo_2")

	// The request with all members has those of an event in the demo.
	d := openAPI()
	engines := ada.do("GET", base+"/events/evt_engines", "")
	values := decode[map[string]json.RawMessage](t, engines)
	var members []string
	for _, name := range memberNames(t, engines.body) {
		if d.Components.Schemas["NewEvent"].Properties[name] != nil {
			members = append(members, strconv.Quote(name)+":"+string(values[name]))
		}
	}
	all := "{" + strings.Join(members, ",") + "}"
	request := d.newEvent()
	golden("the request all", request.example("all"), []byte(all))

	for _, tt := range []struct {
		operation, example string
		answer             answer
	}{
		{"GET /users/me", "", ada.do("GET", base+"/users/me", "")},
		{"GET /events", "more", ada.do("GET", base+"/events?status=published&limit=1", "")},
		{"GET /events", "none", grace.do("GET", base+"/events?status=draft", "")},
		{"GET /events/{id}", "", engines},
		{"GET /events/{id}/guests", "", ada.do("GET", base+"/events/evt_engines/guests", "")},
		{"POST /events/create", "least", ada.create(string(request.example("least")))},
		{"POST /events/create", "all", ada.create(all)},
	} {
		place := strings.TrimSpace(tt.operation + " " + tt.example)
		described := d.response(tt.operation, tt.answer.status).json()
		golden(place, described.example(tt.example), []byte(tt.answer.body))
		if header := tt.answer.header.Get("Location"); header != "" {
			golden("the Location of "+place, d.Components.Headers["Location"].example(tt.example), strict.Encode(header))
		}
	}
	if os.Getenv("UPDATE") != "" && !t.Failed() {
		if err := os.WriteFile("openapi.json", file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// newEventMembers returns the names of the members of a create, in the order of the file.
func newEventMembers(t *testing.T) []string {
	t.Helper()
	file, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Components struct {
			Schemas struct {
				NewEvent struct{ Properties json.RawMessage }
			}
		}
	}
	if err := json.Unmarshal(file, &d); err != nil {
		t.Fatal(err)
	}
	return memberNames(t, string(d.Components.Schemas.NewEvent.Properties))
}

// memberNames returns the names of the members of a JSON object, in their order.
func memberNames(t *testing.T, object string) (names []string) {
	t.Helper()
	value, err := strict.Parse([]byte(object))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range value.Members {
		names = append(names, m.Name)
	}
	return names
}

// readDemo returns the records of the demo.
func readDemo(t *testing.T) []byte {
	t.Helper()
	demo, err := os.ReadFile("internal/demo/seed.json")
	if err != nil {
		t.Fatal(err)
	}
	return demo
}

// Every status of every operation is answered at least once. Each example of an error is
// what the operation answers, character for character.
func TestOpenAPIAnswers(t *testing.T) {
	t.Parallel()
	d := openAPI()
	p := newProber(t, nil)
	panics := func(http.ResponseWriter, httpapi.Request, http.HandlerFunc) { panic("boom") }
	broken := newProber(t, nil)
	broken.handler.(testdouble.Server).Intercept(panics)
	broken.seen = p.seen
	for _, name := range d.operations {
		method, path, _ := strings.Cut(name, " ")
		target, body := concrete(path), ""
		if d.operation(name).RequestBody != nil {
			body = leastBody
		}
		p.do(method, target, body)
		p.do(method, target, body, "X-Service-Api-Key", "")
		p.do(method, target, body, "X-Service-Api-Key", "", "Authorization", "Bearer ")
		p.do(method, target, body, "X-Service-Api-Key", "svc_live_nobody")
		p.do(method, target, body, "X-Service-Api-Key", "svc_live_revoked")
		p.do(method, target+"?nope=1", body)
		broken.do(method, target, body)
		if body != "" {
			p.do(method, target, strings.Repeat(" ", 1<<20)+body)
			p.do(method, target, body, "Content-Type", "text/plain")
			p.do(method, target, body, "Content-Encoding", "gzip")
			p.send(method, target, iotest.ErrReader(io.ErrUnexpectedEOF))
		}
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

	for _, target := range []string{
		"/users/me?fields=id", "/events/evt_1?fields=id", "/openapi?format=yaml",
		"/events?page=2", "/events?limit=101", "/events?status=cancelled", "/events?cursor=x",
		"/events/evt_1/guests?status=approved", "/events/evt_1/guests?limit=201",
		"/events/evt_1/guests?cursor=x",
	} {
		p.do("GET", target, "")
	}

	for _, example := range d.newEvent().examples() {
		p.do("POST", "/events/create", string(strict.Encode(example)))
	}
	with := func(members string) string { return strings.Replace(leastBody, "{", "{"+members+",", 1) }
	for _, body := range []string{
		with(`"requires_approval":true`), with(`"timezone":"Berlin"`),
		`{"start_at":"2027-03-01T10:00:00Z","end_at":"2027-03-01T10:00:00Z"}`, `{"title": "T",}`,
	} {
		p.do("POST", "/events/create", body)
	}
	p.do("POST", "/events/create?draft=true", leastBody)
	p.do("POST", "/events/create", leastBody, "Idempotency-Key", "launch party")
	created := p.do("POST", "/events/create", leastBody, "Idempotency-Key", "k")
	replayed := p.do("POST", "/events/create", leastBody, "Idempotency-Key", "k")
	if got, want := replayed.Body.String(), created.Body.String(); got != want {
		t.Errorf("the same request again = %s, want %s", got, want)
	}
	if got := replayed.Header().Get("Idempotency-Replayed"); got != "true" {
		t.Errorf("the same request again has Idempotency-Replayed: %q, want true", got)
	}
	p.do("POST", "/events/create", leastBody+" ", "Idempotency-Key", "k")

	want := map[string]bool{}
	for _, name := range d.operations {
		for status := range d.operation(name).Responses {
			answer := name + " " + status
			want[answer] = true
			code, _ := strconv.Atoi(status)
			for _, example := range d.response(name, code).json().examples() {
				if code >= 400 {
					want[answer+" "+string(strict.Encode(example))] = true
				}
			}
		}
	}
	for _, s := range slices.Sorted(maps.Keys(want)) {
		if !p.seen[s] {
			t.Errorf("described, but never answered: %s", s)
		}
	}
}

// emptyIsUnset has the members in which an empty string is the same as null.
var emptyIsUnset = []string{"timezone", "location_type", "visibility", "cover_image_url", "meeting_url"}

// checkKept returns an error if a text of a create did not come back as it was sent.
func checkKept(sent, answered string) error {
	var before, after map[string]any
	if err := errors.Join(json.Unmarshal([]byte(sent), &before), json.Unmarshal([]byte(answered), &after)); err != nil {
		return fmt.Errorf("%q was answered with %q: %w", sent, answered, err)
	}
	for name, value := range before {
		unset := value == nil || value == "" && slices.Contains(emptyIsUnset, name)
		isTime := name == "start_at" || name == "end_at" // these come back in UTC
		if !unset && !isTime && after[name] != value {
			return fmt.Errorf("%s: %#v came back as %#v", name, value, after[name])
		}
	}
	return nil
}

// taken reports whether the server should take the value of a member, by the
// member's schema and the words of its description.
func taken(name string, member *schema, value any) bool {
	text, isText := value.(string)
	if isText && text == "" && slices.Contains(emptyIsUnset, name) {
		return true
	}
	want := validator{}.check(member, "", value) == nil
	member.reach(func(s *schema) {
		switch samples := s.samples(); {
		case isText && slices.Contains(samples.OnlyServer, text):
			want = true
		case isText && slices.Contains(samples.OnlySchema, text):
			want = false
		}
	})
	return want
}

// The server takes a body exactly if its schema, or the words beside it, do.
func TestOpenAPIRequestBody(t *testing.T) {
	t.Parallel()
	d := openAPI()
	for _, operation := range d.operations {
		if d.operation(operation).RequestBody != nil {
			t.Run(operation, func(t *testing.T) { testRequestBody(t, d, operation) })
		}
	}
}

func testRequestBody(t *testing.T, d *document, operation string) {
	t.Parallel()
	p := newProber(t, nil)
	method, path, _ := strings.Cut(operation, " ")
	content := d.operation(operation).RequestBody.json()
	schema := content.Schema.target
	try := func(value any, want bool) {
		t.Helper()
		body, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		w := p.do(method, concrete(path), string(body))
		if (w.Code == d.operation(operation).success()) != want {
			t.Errorf("%s %.200s = %d %.200s, want taken: %v", operation, body, w.Code, w.Body, want)
		} else if want {
			if err := checkKept(string(body), w.Body.String()); err != nil {
				t.Error(err)
			}
		}
	}
	for _, example := range content.examples() {
		try(example, true)
	}
	for _, value := range []any{nil, true, 1, "x", []any{}, []any{content.examples()[0]}} {
		try(value, false)
	}
	try(map[string]any{}, len(schema.Required) == 0)
	least := func() map[string]any {
		const first, last = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"
		return map[string]any{"title": "T", "start_at": first, "end_at": last}
	}
	for _, name := range []string{"", "id", "slug", "status", "host_id", "created_at", "Title", "title "} {
		body := least()
		body[name] = "x"
		try(body, false)
	}
	for name, member := range schema.Properties {
		body := least()
		delete(body, name)
		try(body, !slices.Contains(schema.Required, name))
		for _, value := range append(valuesFor(member), nil) {
			body[name] = value
			try(body, taken(name, member, value))
		}
	}
	if w := p.do(method, concrete(path), ""); w.Code != http.StatusBadRequest {
		t.Errorf("%s without a body = %d, want 400", operation, w.Code)
	}
	body := least() // the description of end_at says that it is later
	body["end_at"] = body["start_at"]
	try(body, false)
}

// An optional member that is null is the same as one that is left out. So is an empty
// string where the description says so. Elsewhere it is kept, if the schema takes it.
func TestOpenAPINotSet(t *testing.T) {
	t.Parallel()
	create := func(members string) string {
		body := strings.Replace(leastBody, "{", "{"+members, 1)
		return newProber(t, fixed()).do("POST", "/events/create", body).Body.String()
	}
	least := create("")
	schema := openAPI().Components.Schemas["NewEvent"]
	for name, member := range schema.Properties {
		if slices.Contains(schema.Required, name) {
			continue
		}
		if got := create(fmt.Sprintf("%q:null,", name)); got != least {
			t.Errorf("create with %s: null = %s, want it as without: %s", name, got, least)
		}
		if !taken(name, member, "") { // TestOpenAPIRequestBody sees that it is refused
			continue
		}
		want := least
		if !slices.Contains(emptyIsUnset, name) {
			want = strings.Replace(least, fmt.Sprintf("%q:null", name), fmt.Sprintf(`%q:""`, name), 1)
		}
		if got := create(fmt.Sprintf(`%q:"",`, name)); got != want {
			t.Errorf(`create with %s: "" = %s, want %s`, name, got, want)
		}
	}
}

// fixed is a configuration with which every answer has the same bytes again.
func fixed() *events.Config {
	n := 0
	return &events.Config{
		Now: func() time.Time { return time.Date(2027, 1, 2, 3, 4, 5, 6000, time.UTC) },
		NewID: func(kind, _ string) string {
			n++
			return fmt.Sprintf("%06d", n)
		},
	}
}

// valuesFor returns values for a member: some of every kind but null, texts on both sides of every
// length that counts anywhere, numbers on both sides of its bounds, the words that its schema
// lists, and its samples.
func valuesFor(member *schema) (values []any) {
	all := []string{"null", "true", "x", " "}
	lengths := []int{0, 1, 2, 3, 4, 5, 67, 68, 69, 99, 100, 101, 253, 254, 255, 256, 2047, 2048, 2049}
	for _, begin := range []string{"", "https://example.com/", "usr_", "evt_", "gst_", "a@", "a-"} {
		for _, n := range lengths {
			if n >= len(begin) {
				all = append(all, begin+strings.Repeat("x", n-len(begin)))
			}
		}
	}
	for _, char := range []string{"é", "\U0001F600", "\x00"} {
		for _, n := range []int{1, 100, 101, 254, 255, 256} {
			all = append(all, strings.Repeat(char, n))
		}
	}
	member.reach(func(s *schema) {
		if s.MaxLength != nil {
			for _, n := range []int{*s.MaxLength - 1, *s.MaxLength, *s.MaxLength + 1} {
				all = append(all, strings.Repeat("x", n), strings.Repeat("\U0001F600", n))
			}
		}
		for _, value := range s.Enum {
			all = append(all, value, value+"s", " "+value, strings.ToUpper(value))
		}
		samples := s.samples()
		for _, bound := range []*float64{s.Minimum, s.Maximum} {
			if bound != nil {
				values = append(values, *bound-1, *bound, *bound+1)
			}
		}
		all = slices.Concat(all, samples.Taken, samples.Refused, samples.OnlyServer, samples.OnlySchema)
	})
	for _, text := range all {
		values = append(values, text)
	}
	return append(values, true, false, 0.0, 1.0, -1.5, []any{}, []any{"x"}, map[string]any{})
}
