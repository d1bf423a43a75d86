// These tests hold openapi.json against the server, in both directions.
//
// Whatever the file describes, the server must do: its operations, the bounds and
// patterns of what it takes, and every status, header and member of its answers.
// Whatever the server answers, the file must describe: checkAnswer, which the
// tests of the API call for each answer they get, finds what is missing there.
//
// This file has four parts: the types of the document, the checks of answers, the
// tests of the document by itself, and those with a server. The checks of values by
// their schemas are in schema_test.go.
package events_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/events"
	doubles "example.com/events/internal/double"
	"example.com/events/internal/form"
	"example.com/events/internal/strict"
)

// Part 1: the document.

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

	operations []string          // such as "GET /events/{id}", in the order of the file
	schemas    []*schema         // every schema in the file
	always     map[string]string // the headers that every answer has, with their values
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
	d := &document{always: map[string]string{}}
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
	place := func(operation string) int { // of the method, which stands below its path
		method, path, _ := strings.Cut(operation, " ")
		_, below, _ := bytes.Cut(data, []byte(strconv.Quote(path)+":"))
		_, below, _ = bytes.Cut(below, []byte(strconv.Quote(strings.ToLower(method))+":"))
		return len(data) - len(below)
	}
	slices.SortFunc(d.operations, func(a, b string) int { return cmp.Compare(place(a), place(b)) })

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

	// The description lists the headers of every answer in a paragraph of its own.
	_, paragraph, _ := strings.Cut(d.Info.Description, "Every answer has the headers")
	paragraph, _, _ = strings.Cut(paragraph, "\n")
	for _, header := range compile("`([A-Z][A-Za-z-]+): ([^`]+)`").FindAllStringSubmatch(paragraph, -1) {
		d.always[header[1]] = header[2]
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

// parameters returns the parameters of an operation.
func (d *document) parameters(name string) (all []*parameter) {
	for _, ref := range d.operation(name).Parameters {
		all = append(all, d.Components.Parameters[ref.name()])
	}
	return all
}

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

// Part 2: the checks.

// checkAnswer returns how an answer differs from what openapi.json says of it:
// the status, the headers, and the body, which must not have a member that is not
// described. Two kinds of answers are only in the text of the file: a path or a
// method that does not exist has the form of an error, and OPTIONS has no body.
func checkAnswer(method, target string, status int, header http.Header, body []byte) error {
	return openAPI().checkAnswer(method, target, status, header, body, nil)
}

// checkAnswer is the function of the same name that also reports which choices of
// the schemas the body takes.
func (d *document) checkAnswer(method, target string, status int, header http.Header, body []byte,
	took func(choice string)) error {
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
			v := validator{closed: true, took: took}
			problems = append(problems, v.check(answer.json().Schema, "", value)...)
		}
		if examples := answer.json().examples(); status >= 500 && !reflect.DeepEqual(value, examples[0]) {
			problems = append(problems, fmt.Sprintf("the body is not the example, %v", examples[0]))
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

// checkHeaders returns what is wrong with the headers of an answer.
func (d *document) checkHeaders(answer *message, others string, header http.Header) (problems []string) {
	known := map[string]bool{"Content-Type": true, "Content-Length": true, "Connection": true, "Date": true}
	for name, want := range d.always {
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

// Part 3: the document by itself.

// Every schema has a type, and objects of answers have no optional members. Objects
// stand under a name, because a generator makes a name like Error1 for one that does
// not. What a value and a member mean is said in words.
func TestOpenAPISchemas(t *testing.T) {
	t.Parallel()
	d := openAPI()
	escape := regexp.MustCompile(`\\[^\\\[\]]`)
	space := regexp.MustCompile(`\\[sS]`)
	for _, s := range d.schemas {
		inner := strings.Contains(s.at, "/not")
		named := strings.Count(s.at, "/") == 3 && strings.HasPrefix(s.at, "#/components/schemas/")
		if s.Type == "" && s.Ref == "" && s.AnyOf == nil && !inner {
			t.Errorf("%s has no type", s.at)
		}
		if s.Type != "" && s.AdditionalProperties == nil && len(s.Required) != len(s.Properties) {
			t.Errorf("%s requires %v, want all of its members", s.at, s.Required)
		}
		for _, name := range s.Required {
			if s.Properties[name] == nil {
				t.Errorf("%s requires %s, which it does not describe", s.at, name)
			}
		}
		for _, value := range s.Enum {
			if !strings.Contains(s.Description, "`"+value+"`: ") {
				t.Errorf("the description of the schema of %s does not say what `%s`: means", s.at, value)
			}
		}
		for name, member := range s.Properties {
			if member.Description == "" && !inner {
				t.Errorf("%s does not say what %s means", s.at, name)
			}
		}
		if s.Properties != nil && !named && !inner {
			t.Errorf("%s is an object without a name of its own", s.at)
		}
		// A regular expression must mean the same in every language: JSON Schema, 6.4. What
		// white space is differs, so \s and \S may stand only where words say what counts.
		pattern := s.Pattern
		if inWords[s.at].words != "" {
			pattern = space.ReplaceAllString(pattern, "")
		}
		if strings.ContainsFunc(pattern, func(r rune) bool { return r < ' ' || r > '~' }) ||
			escape.MatchString(pattern) || strings.Contains(pattern, "(?") {
			t.Errorf("%s has a pattern that some engines read differently: %q", s.at, s.Pattern)
		}
		// Validators of Java and .NET match a pattern against the whole string.
		if s.Pattern != "" && !(strings.HasPrefix(s.Pattern, "^") && strings.HasSuffix(s.Pattern, "$")) {
			t.Errorf("%s has a pattern that is not one of the whole string: %q", s.at, s.Pattern)
		}
		if s.Pattern != "" && s.Format != "" {
			t.Errorf("%s has a pattern beside a format: generated models apply it to the parsed value", s.at)
		}
		if last := len(s.AnyOf) - 1; last >= 0 && (last != 1 || s.AnyOf[last].Type != "null") {
			t.Errorf("%s has anyOf for something else than one schema or null", s.at)
		}
	}
	if len(d.schemas) < 100 {
		t.Errorf("there are %d schemas only", len(d.schemas))
	}
	for at, rule := range inWords {
		s := d.Components.Schemas[path.Base(at)]
		if !strings.Contains(s.Description, rule.words) {
			t.Errorf("the description of %s does not say: %s", at, rule.words)
		}
	}
}

// What public generators need beyond a valid document.
func TestOpenAPIGenerators(t *testing.T) {
	t.Parallel()
	d := openAPI()
	components := slices.Collect(maps.Values(d.Components.Responses))
	for _, name := range d.operations {
		o := d.operation(name)
		// Some read only the security of each operation, and others only the one at the top.
		if !reflect.DeepEqual(o.Security, d.Security) {
			t.Errorf("the security of %s is %v, want %v as at the top", name, o.Security, d.Security)
		}
		// Some clients take a body that is a reference for one that is not JSON, and drop an
		// answer that is one. ogen writes code that does not compile where an error is none.
		if o.RequestBody != nil && o.RequestBody.Content == nil {
			t.Errorf("the body of %s does not stand in the operation", name)
		}
		for status, answer := range o.Responses {
			isError := status >= "4"
			if slices.Contains(components, answer) != isError {
				t.Errorf("the answer %s of %s is a component: %v, want %v", status, name, !isError, isError)
			}
		}
	}
	// Some generators make one type of two components of different kinds, if these have the
	// same name, or two types that collide.
	c := d.Components
	seen := map[string]bool{
		"openapi": true, // openapi-typescript-codegen exports its settings by this name
	}
	for _, name := range slices.Concat(
		slices.Collect(maps.Keys(c.SecuritySchemes)), slices.Collect(maps.Keys(c.Parameters)),
		slices.Collect(maps.Keys(c.Responses)), slices.Collect(maps.Keys(c.Headers)),
		slices.Collect(maps.Keys(c.Schemas)),
	) {
		bare := strings.ToLower(strings.ReplaceAll(name, "-", ""))
		if seen[bare] {
			t.Errorf("the name of the component %s is not its own", name)
		}
		seen[bare] = true
	}
}

// Everything is described, in a part of Markdown that every page can show: paragraphs,
// lists, `code` and links. Summaries are plain text.
func TestOpenAPIDescriptions(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document any
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	texts := 0
	code := regexp.MustCompile("`[^`\n]+`")
	always := regexp.MustCompile(`^/(info|(tags|servers)/\d+|components/\w+/[\w-]+|` +
		`paths/.*/(get|post|put|patch|delete|requestBody|responses/2\d\d))$`)
	var look func(at string, value any)
	look = func(at string, value any) {
		items, _ := value.([]any)
		for i, item := range items {
			look(fmt.Sprint(at, "/", i), item)
		}
		object, _ := value.(map[string]any)
		if always.MatchString(at) && (object["description"] == nil || object["description"] == "") {
			t.Errorf("%s has no description", at)
		}
		for name, member := range object {
			text, isText := member.(string)
			if !isText || name != "description" && name != "summary" {
				look(at+"/"+name, member)
				continue
			}
			texts++
			if name == "description" {
				text = code.ReplaceAllString(text, "code")
			}
			for line := range strings.SplitSeq(text, "\n") {
				line = strings.TrimPrefix(line, "- ")
				if at+"/"+name == "/info/description" { // the pages of tools make chapters of these
					line = strings.TrimPrefix(line, "## ")
				}
				if strings.ContainsAny(line, "`*_#<>|~!\\") || strings.TrimSpace(line) != line {
					t.Errorf("%s/%s has other Markdown: %q", at, name, line)
				}
			}
		}
	}
	look("", document)
	if texts < 150 {
		t.Errorf("there are %d texts only", texts)
	}
}

// The description of error.code has all codes, with the statuses that they come with.
func TestOpenAPICodes(t *testing.T) {
	t.Parallel()
	d := openAPI()
	want := map[string]bool{"method_not_allowed 405": true} // returned for methods that no operation has
	for _, name := range d.operations {
		for status, answer := range d.operation(name).Responses {
			if code := answer.code(); code != "" || status >= "4" {
				want[code+" "+status] = true
			}
		}
	}
	got := map[string]bool{}
	text := d.Components.Schemas["ErrorDetail"].Properties["code"].Description
	for _, code := range regexp.MustCompile("`([a-z_]+)` \\(([^)]*)\\)").FindAllStringSubmatch(text, -1) {
		for status := range strings.SplitSeq(code[2], " and ") {
			got[code[1]+" "+status] = true
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("the description of error.code lists %v, want those of the answers: %v",
			slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// What a table of package form says of a member is what the schemas say: its type, its bounds,
// its values, and whether it is required.
func TestOpenAPITables(t *testing.T) {
	t.Parallel()
	d := openAPI()
	rules := form.Rules{"title": form.Title, "url": form.URL, "zone": form.Zone, "slug": form.Slug, "email": form.Email}
	for _, tt := range []struct {
		schema   string
		resource any
	}{
		{"User", events.User{}}, {"Event", events.Event{}}, {"NewEvent", events.Event{}}, {"Guest", events.Guest{}},
	} {
		s := d.Components.Schemas[tt.schema]
		isNew := tt.schema == "NewEvent"
		fields := map[string]reflect.StructField{}
		for _, field := range reflect.VisibleFields(reflect.TypeOf(tt.resource)) {
			fields[field.Tag.Get("json")] = field
		}
		var names, required []string
		for _, m := range form.NewTable(tt.resource, rules) {
			if isNew && m.Flags&form.Server != 0 {
				continue
			}
			names = append(names, m.Name)
			if !isNew || m.Flags&form.Required != 0 {
				required = append(required, m.Name)
			}
			schema := s.Properties[m.Name]
			if schema == nil {
				continue // reported below
			}
			if want, got := describe(m, fields[m.Name].Type, isNew), schema.describe(); got != want {
				t.Errorf("%s.%s is %s in openapi.json, and %s in the struct", tt.schema, m.Name, got, want)
			}
		}
		sorted := func(names []string) []string { return slices.Sorted(slices.Values(names)) }
		if got := slices.Sorted(maps.Keys(s.Properties)); !slices.Equal(got, sorted(names)) {
			t.Errorf("%s has the members %v in openapi.json, and %v in the struct", tt.schema, got, sorted(names))
		}
		if got := sorted(s.Required); !slices.Equal(got, sorted(required)) {
			t.Errorf("%s requires %v in openapi.json, and %v by the struct", tt.schema, got, sorted(required))
		}
	}
}

// describe is what a table says of a member whose field has a type: "string 1 to 255", for example.
// Of a new object, what may be left out may also be null.
func describe(m form.Member, field reflect.Type, isNew bool) string {
	isNullable := field.Kind() == reflect.Pointer || isNew && m.Flags&form.Required == 0
	if field.Kind() == reflect.Pointer {
		field = field.Elem()
	}
	text := map[reflect.Type]string{
		reflect.TypeFor[string]():    "string",
		reflect.TypeFor[bool]():      "boolean",
		reflect.TypeFor[int]():       "integer",
		reflect.TypeFor[time.Time](): "string",
	}[field]
	if rule := m.Rule; rule != nil {
		if rule.Min != 0 || rule.Max != 0 {
			text += fmt.Sprintf(" %d to %d", rule.Min, rule.Max)
		}
		if rule.Words != nil {
			text += fmt.Sprint(" ", rule.Words)
		}
	}
	if isNullable {
		text += " or null"
	}
	return text
}

// describe is what a schema says, in the words of the function of this name.
func (s *schema) describe() string {
	if s.target != nil {
		return s.target.describe()
	}
	text, null := s.Type, ""
	for _, part := range s.AnyOf {
		if part.Type == "null" {
			null = " or null"
		} else {
			text += part.describe()
		}
	}
	least, most := 0.0, 0.0
	switch {
	case s.MinLength != nil:
		least = float64(*s.MinLength)
	case s.Minimum != nil:
		least = *s.Minimum
	}
	switch {
	case s.MaxLength != nil:
		most = float64(*s.MaxLength)
	case s.Maximum != nil:
		most = *s.Maximum
	}
	if least != 0 || most != 0 {
		text += fmt.Sprintf(" %v to %v", least, most)
	}
	if s.Enum != nil {
		text += fmt.Sprint(" ", s.Enum)
	}
	return text + null
}

// Every example is valid, and everything has one but two parameters, whose
// examples would be sent by pages that fill in what the document shows: a cursor
// is good for one list only, and a second request with the same idempotency key
// creates nothing.
func TestOpenAPIExamples(t *testing.T) {
	t.Parallel()
	d := openAPI()
	c := d.Components
	check := func(at string, m media) {
		without := at == "parameter PageCursor" || at == "parameter IdempotencyKey"
		if without != (m.examples() == nil) {
			t.Errorf("%s has the examples %v", at, m.examples())
		}
		for _, value := range m.examples() {
			for _, problem := range (validator{closed: true}).check(m.Schema, "", value) {
				t.Errorf("%s: example %v: %s", at, value, problem)
			}
		}
	}
	for name, p := range c.Parameters {
		check("parameter "+name, p.media)
	}
	for name, h := range c.Headers {
		check("header "+name, h.media)
		if (validator{}).check(h.Schema, "", "") == nil {
			t.Errorf("the header %s may be empty", name)
		}
	}
	for _, name := range d.operations {
		if body := d.operation(name).RequestBody; body != nil {
			check("the body of "+name, body.json())
		}
		for status, m := range d.operation(name).Responses {
			if m.Content != nil {
				check("the answer "+status+" of "+name, m.json())
			}
		}
	}
}

func TestOpenAPIBasics(t *testing.T) {
	t.Parallel()
	d := openAPI()
	if d.OpenAPI != "3.1.0" || d.Info.Version != "1.0.0" {
		t.Errorf("version %s in OpenAPI %s, want 1.0.0 in 3.1.0", d.Info.Version, d.OpenAPI)
	}
	if len(d.Servers) != 1 || d.Servers[0].URL != events.BasePath {
		t.Errorf("the servers are %v, want %s alone", d.Servers, events.BasePath)
	}
	var served document
	if err := json.Unmarshal(newProber(t, nil).do("GET", "/openapi", "").Body.Bytes(), &served); err != nil ||
		served.OpenAPI != d.OpenAPI || served.Info != d.Info {
		t.Errorf("the server describes %+v, %v, want %+v", served.Info, err, d.Info)
	}
	if len(d.always) != 4 {
		t.Errorf("the headers of every answer are %v, want four", d.always)
	}
	var schemes []string
	for _, one := range d.Security {
		for name := range one {
			s := d.Components.SecuritySchemes[name]
			schemes = append(schemes, s.Type+" "+s.In+s.Scheme+" "+s.Name)
		}
	}
	if want := []string{"apiKey header x-service-api-key", "http bearer "}; !slices.Equal(schemes, want) {
		t.Errorf("the security schemes are %q, want %q", schemes, want)
	}
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

// checkAnswer finds everything in which an answer can differ from its description.
func TestCheckAnswer(t *testing.T) {
	t.Parallel()
	const (
		path     = events.BasePath + "/events"
		empty    = `{"data":[],"has_more":false,"next_cursor":null}`
		nobody   = `{"data":[{"name":null,"email":null}],"has_more":false,"next_cursor":null}`
		notFound = `{"error":{"code":"not_found","message":"x"}}`
		notJSON  = `{"error":{"code":"unsupported_media_type","message":"x"}}`
	)
	header := func(name string, values ...string) func(http.Header) {
		return func(h http.Header) { h[name] = values }
	}
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
		{"unknown path", "GET", path + "/a/b/c", 404, nil, notFound, ""},
		{"unknown path, answered", "GET", path + "/a/b/c", 200, nil, empty, "status 200"},
		{"other method", "DELETE", path, 405, header("Allow", "GET"),
			`{"error":{"code":"method_not_allowed","message":"x"}}`, ""},
		{"literal before template", "GET", path + "/create", 200, nil, empty, "status 200"},
		{"status", "GET", path, 404, nil, notFound, "status 404"},
		{"code of another status", "GET", path, 400, nil, notFound, `is "not_found", want "bad_request"`},
		{"third member of an error", "GET", path, 400, nil,
			`{"error":{"code":"bad_request","message":"x","field":"y"}}`, "has the member field"},
		{"member", "GET", path, 200, nil, strings.Replace(empty, "{", `{"total":0,`, 1), "the member total"},
		{"member left out", "GET", path, 200, nil, `{"data":[],"has_more":false}`, "lacks next_cursor"},
		{"null", "GET", path, 200, nil, strings.Replace(empty, "[]", "null", 1), "/data is not of type"},
		{"in a list", "GET", path, 200, nil, strings.Replace(empty, "[]", "[{}]", 1), "/data/0 lacks id"},
		{"nobody", "GET", path + "/e/guests", 200, nil, nobody, "excluded"},
		{"no JSON", "GET", path, 200, nil, `nope`, "invalid character"},
		{"header missing", "GET", path, 200, header("Cache-Control"), empty, "Cache-Control is []"},
		{"header wrong", "GET", path, 200, header("Cache-Control", "no-cache"), empty, `is ["no-cache"]`},
		{"header twice", "GET", path, 200, header("Cache-Control", "no-store", "no-store"), empty, `is ["no`},
		{"header not described", "GET", path, 200, header("Etag", "x"), empty, "Etag is not described"},
		{"header of 401 missing", "GET", path, 401, nil,
			`{"error":{"code":"unauthorized","message":"x"}}`, "Www-Authenticate has 0 values"},
		{"header of 401 wrong", "GET", path, 401, header("Www-Authenticate", "Basic"),
			`{"error":{"code":"unauthorized","message":"x"}}`, "Www-Authenticate does not match"},
		{"neither header of 415", "POST", path + "/create", 415, nil, notJSON, "either Accept or Accept-Enc"},
		{"one header of 415", "POST", path + "/create", 415, header("Accept-Encoding", "identity"), notJSON, ""},
		{"length", "GET", path, 200, header("Content-Length", "3"), empty, "Content-Length"},
		{"media type", "GET", path, 200, header("Content-Type", "text/plain"), empty, "Content-Type"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			header := http.Header{"Content-Type": {"application/json"}}
			for name, value := range openAPI().always {
				header.Set(name, value)
			}
			if test.change != nil {
				test.change(header)
			}
			got := fmt.Sprint(checkAnswer(test.method, test.path, test.status, header, []byte(test.body)))
			if !strings.Contains(got, cmp.Or(test.want, "<nil>")) {
				t.Errorf("checkAnswer = %s, want %q in it", got, test.want)
			}
		})
	}
}

// Part 4: the document and a server.

const leastBody = `{"title":"T","start_at":"2027-03-01T10:00:00Z","end_at":"2027-03-01T12:00:00Z"}`

// prober sends requests to a server of its own, and holds each answer against the
// document. Its seed has every value that an answer can have.
type prober struct {
	t       *testing.T
	store   *events.Store
	handler http.Handler
	seen    map[string]bool // operations with their statuses, and choices of the schemas
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

// readerFunc is a body that is a function.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(part []byte) (int, error) { return f(part) }

// see holds an answer against the document, and notes what it shows.
func (p *prober) see(method, path string, w *httptest.ResponseRecorder) {
	p.t.Helper()
	d := openAPI()
	took := func(choice string) { p.seen[choice] = true }
	if err := d.checkAnswer(method, path, w.Code, w.Header(), w.Body.Bytes(), took); err != nil {
		p.t.Error(err)
	}
	answered := fmt.Sprint(d.find(method, path), " ", w.Code)
	p.seen[answered] = true
	p.seen[answered+" "+w.Body.String()] = true
}

func TestOpenAPIRoutes(t *testing.T) {
	t.Parallel()
	d := openAPI()
	if server := events.New(nil).(doubles.Server).Operations(); !slices.Equal(d.operations, server) {
		t.Errorf("the operations are %q, want those of the server: %q", d.operations, server)
	}
	p := newProber(t, nil)
	for path := range d.Paths {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "X"} {
			got := p.do(method, concrete(path), "").Code
			described := d.find(method, events.BasePath+concrete(path)) != ""
			if described == (got == http.StatusMethodNotAllowed) {
				t.Errorf("%s %s = %d, described: %v", method, path, got, described)
			}
		}
		p.do("OPTIONS", concrete(path), "")
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

// The first answer in the README is a part of what the demo answers: … stands for the rest.
func TestReadmeAnswer(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(readme), "```json\n")
	text, _, _ = strings.Cut(text, "\n```")
	pattern := strings.ReplaceAll(regexp.QuoteMeta(text), "…", ".*")
	var answer bytes.Buffer
	if err := json.Compact(&answer, openAPI().response("GET /events/{id}", 200).json().Example); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile("^" + pattern + "$").Match(answer.Bytes()) {
		t.Errorf("README.md has the answer\n%s\nwant parts of\n%s", text, &answer)
	}
}

// The table in the README has the operations, each with the parameters of its query.
func TestReadmeOperations(t *testing.T) {
	t.Parallel()
	d := openAPI()
	var want []string
	isParameter := map[string]bool{}
	for _, operation := range d.operations {
		var line strings.Builder
		line.WriteString(operation)
		for _, p := range d.parameters(operation) {
			if p.In == "query" {
				isParameter[p.Name] = true
				line.WriteString(" " + p.Name)
			}
		}
		want = append(want, line.String())
	}
	var have []string
	for _, cells := range tableRows(t, "README.md", "method and path") {
		var line strings.Builder
		line.WriteString(backquoted(cells[0])[0])
		for _, name := range backquoted(cells[1]) {
			if isParameter[name] {
				line.WriteString(" " + name)
			}
		}
		have = append(have, line.String())
	}
	if !slices.Equal(have, want) {
		t.Errorf("README.md has the operations\n%q, openapi.json has\n%q", have, want)
	}
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

// Every status of every operation is answered at least once, and so is each of
// the values that an answer can have where its schema has a choice. Each example of an
// error is what the operation answers, character for character.
func TestOpenAPIAnswers(t *testing.T) {
	t.Parallel()
	d := openAPI()
	p := newProber(t, nil)
	panics := func(string, string, http.ResponseWriter, *http.Request, http.HandlerFunc) { panic("boom") }
	broken := newProber(t, nil)
	broken.handler.(doubles.Server).Intercept(panics)
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
			p.do(method, target, strings.Repeat(" ", bodyLimit)+body)
			p.do(method, target, body, "Content-Type", "text/plain")
			p.do(method, target, body, "Content-Encoding", "gzip")
			p.send(method, target, readerFunc(late))
			p.send(method, target, readerFunc(cutShort))
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

	var first struct {
		Next string `json:"next_cursor"`
	}
	json.Unmarshal(p.do("GET", "/events?limit=1", "").Body.Bytes(), &first) // do has checked it
	for _, target := range []string{
		"/users/me?fields=id", "/events/evt_1?fields=id", "/openapi?format=yaml",
		"/events?page=2", "/events?limit=101", "/events?status=cancelled", "/events?cursor=x",
		"/events?status=draft&cursor=" + first.Next,
		"/events/evt_1/guests?status=approved", "/events/evt_1/guests?limit=201",
		"/events/evt_1/guests?cursor=x", "/events/evt_1/guests?cursor=" + first.Next,
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

	// While other bodies take all the memory, there is none for those of any operation.
	held := (&service{t: t, handler: p.handler, key: "svc_live_ada"}).fill()
	for _, name := range d.operations {
		method, path, _ := strings.Cut(name, " ")
		if d.operation(name).RequestBody != nil {
			p.do(method, concrete(path), leastBody+strings.Repeat(" ", bodyLimit-len(leastBody)))
		}
	}
	for _, c := range held {
		c.finish(cutShort)
	}

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
			for _, choice := range d.response(name, code).json().Schema.choices() {
				want[choice] = true
			}
		}
	}
	for _, s := range slices.Sorted(maps.Keys(want)) {
		if !p.seen[s] {
			t.Errorf("described, but never answered: %s", s)
		}
	}
}

// A query parameter is taken exactly if its schema takes it, and never twice. One
// that is not described is refused.
func TestOpenAPIParameters(t *testing.T) {
	t.Parallel()
	d := openAPI()
	p := newProber(t, nil)
	others := []string{"id", "limit", "status", "cursor", "offset", "page", "sort", "Limit", ""}
	for _, operation := range d.operations {
		method, path, _ := strings.Cut(operation, " ")
		target, body, good := concrete(path), "", d.operation(operation).success()
		if d.operation(operation).RequestBody != nil {
			body = leastBody
		}
		try := func(want int, name string, values ...string) {
			t.Helper()
			query := url.Values{name: values}.Encode()
			if got := p.do(method, target+"?"+query, body).Code; got != want {
				t.Errorf("%s?%s = %d, want %d", operation, query, got, want)
			}
		}
		described := map[string]bool{}
		for _, parameter := range d.parameters(operation) {
			if parameter.In != "query" {
				continue
			}
			name, samples := parameter.Name, parameter.Schema.samples()
			described[name] = true
			if name == "cursor" { // its description says that it must come from the same list
				var page struct {
					Next string `json:"next_cursor"`
				}
				json.Unmarshal(p.do("GET", target+"?limit=1", "").Body.Bytes(), &page) // do has checked it
				samples.Taken = []string{page.Next}
				samples.Refused = []string{"", "MQ", page.Next + "=", " " + page.Next}
			}
			for _, text := range samples.Taken {
				try(good, name, text)
				try(http.StatusBadRequest, name, text, text)
			}
			for _, text := range samples.Refused {
				try(http.StatusBadRequest, name, text)
			}
		}
		for _, name := range others {
			for _, text := range []string{"", "1", "draft"} {
				if !described[name] {
					try(http.StatusBadRequest, name, text)
				}
			}
		}
	}
}

// The server takes an idempotency key exactly if its schema does.
func TestOpenAPIIdempotencyKey(t *testing.T) {
	t.Parallel()
	p := newProber(t, nil)
	s := openAPI().Components.Parameters["IdempotencyKey"].Schema
	all := slices.Concat(s.samples().Taken, s.samples().Refused)
	for _, n := range []int{255, 256} {
		all = append(all, strings.Repeat("x", n), `"`+strings.Repeat("x", n)+`"`)
	}
	for _, key := range all {
		want := http.StatusBadRequest
		if (validator{}).check(s, "", key) == nil {
			want = http.StatusCreated
		}
		if got := p.do("POST", "/events/create", leastBody, "Idempotency-Key", key).Code; got != want {
			t.Errorf("create with Idempotency-Key %q = %d, want %d by its schema", key, got, want)
		}
	}
}

// emptyIsUnset has the members in which an empty string is the same as null. Only
// the description of NewEvent says so. In records, a user's avatar_url is one, too.
var emptyIsUnset = sync.OnceValue(func() []string {
	text, _, _ := strings.Cut(openAPI().Components.Schemas["NewEvent"].Description, " an empty string is the same")
	names := compile("`([a-z_]+)`").FindAllStringSubmatch(text[strings.LastIndex(text, "For "):], -1)
	all := []string{"avatar_url"}
	for _, name := range names {
		all = append(all, name[1])
	}
	return all
})

// checkKept returns an error if a text of a create did not come back as it was sent.
func checkKept(sent, answered string) error {
	var before, after map[string]any
	if err := errors.Join(json.Unmarshal([]byte(sent), &before), json.Unmarshal([]byte(answered), &after)); err != nil {
		return fmt.Errorf("%q was answered with %q: %w", sent, answered, err)
	}
	for name, value := range before {
		unset := value == nil || value == "" && slices.Contains(emptyIsUnset(), name)
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
	if isText && text == "" && slices.Contains(emptyIsUnset(), name) {
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
	if len(emptyIsUnset()) < 6 {
		t.Errorf("an empty string is null in %q only", emptyIsUnset())
	}
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
		if !slices.Contains(emptyIsUnset(), name) {
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

// What the server takes in a record is what an answer may have, by its schema.
func TestOpenAPIRecords(t *testing.T) {
	t.Parallel()
	for kind, least := range map[string]map[string]any{
		"User": {"name": "N", "email": "n@example.com"},
		"Event": {"host_id": "usr_ada", "title": "T",
			"start_at": "2027-03-01T10:00:00Z", "end_at": "2027-03-01T12:00:00Z"},
		"Guest": {"event_id": "evt_1", "name": "N"},
	} {
		for name, member := range openAPI().Components.Schemas[kind].Properties {
			if name == "host_id" || name == "event_id" || strings.HasSuffix(name, "_at") {
				continue // these must exist, or may have an offset
			}
			for _, value := range valuesFor(member) {
				record := maps.Clone(least)
				record[name] = value
				data, err := json.Marshal([]any{
					map[string]any{"user": map[string]any{"id": "usr_ada", "name": "A", "email": "ada@example.com"}},
					map[string]any{"event": map[string]any{"id": "evt_1", "host_id": "usr_ada", "title": "T",
						"start_at": "2027-03-01T10:00:00Z", "end_at": "2027-03-01T12:00:00Z"}},
					map[string]any{strings.ToLower(kind): record},
				})
				if err != nil {
					t.Fatal(err)
				}
				err = events.NewStore(nil).ApplyJSON(data)
				if want := taken(name, member, value); (err == nil) != want {
					t.Errorf("ApplyJSON(%.200s) = %.200v, want taken: %v", data, err, want)
				}
			}
		}
	}
}

// Pages such as Swagger UI make a form of the document and fill in what it shows.
// Everything that they fill in works with `eventsd demo` as it is, twice in a row,
// and the second create makes a second event.
func TestOpenAPIPrefilled(t *testing.T) {
	t.Parallel()
	d := openAPI()
	demo := start(t, nil, "demo", "-addr", "127.0.0.1:0")
	made := map[string]bool{}
	for _, operation := range d.operations {
		for _, r := range slices.Repeat(d.prefilled(operation, demo.lines["base_url"]), 2) {
			r.Header.Set("X-Service-Api-Key", demo.lines["api_key"])
			r.Body, _ = r.GetBody() // from its beginning, as each request is sent twice
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated {
				t.Errorf("%s %s = %s %s, %v, want 200 or 201", r.Method, r.URL, resp.Status, answer, err)
			}
			if place := resp.Header.Get("Location"); place != "" && made[place] {
				t.Errorf("%s %s answered with %s again, want a new event", r.Method, r.URL, place)
			} else if place != "" {
				made[place] = true
			}
		}
	}
	if len(made) != 4 {
		t.Errorf("%d events were created, want two of each example", len(made))
	}
}

// prefilled returns the requests of an operation with the values that the document
// shows: with the first example of each parameter and of the body, with the second,
// and so on. A parameter without an example has its default, or is left out.
func (d *document) prefilled(operation, base string) (requests []*http.Request) {
	method, path, _ := strings.Cut(operation, " ")
	bodies := []any{nil}
	if body := d.operation(operation).RequestBody; body != nil {
		bodies = body.json().examples()
	}
	most := len(bodies)
	for _, parameter := range d.parameters(operation) {
		most = max(most, len(parameter.examples()))
	}
	for i := range most {
		target, query := base+path, url.Values{}
		for _, parameter := range d.parameters(operation) {
			values := parameter.examples()
			if values == nil && parameter.Schema.Default != nil {
				values = []any{*parameter.Schema.Default}
			}
			if values == nil {
				continue
			}
			value := fmt.Sprint(values[min(i, len(values)-1)])
			if parameter.In == "query" {
				query.Set(parameter.Name, value)
			} else { // in the path: no header has an example
				target = strings.ReplaceAll(target, "{"+parameter.Name+"}", value)
			}
		}
		body, err := json.Marshal(bodies[min(i, len(bodies)-1)])
		if err != nil {
			panic(err)
		}
		r, err := http.NewRequest(method, target+"?"+query.Encode(), bytes.NewReader(body))
		if err != nil {
			panic(err)
		}
		requests = append(requests, r)
	}
	return requests
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
