package apitest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"example.com/events"
	"example.com/events/internal/strict"
	"example.com/events/internal/testdouble"
)

type object = map[string]any

// Document returns openapi.json from the API.
var Document = sync.OnceValue(func() object {
	store := events.NewStore(nil)
	var document object
	err := store.ApplyJSON([]byte(Seed))
	if err == nil {
		r := serve(events.New(store), NewRequest("GET", base+"/openapi", nil))
		err = json.Unmarshal([]byte(r.Body), &document)
	}
	if err != nil {
		panic(err)
	}
	return document
})

// Lookup returns the value at a path of names in an object of the document, or nil. It follows references.
func Lookup(value any, names ...string) any {
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
	return Lookup(Document(), strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
}

// Operations returns all operations, such as "GET /events/{id}".
func Operations() []string {
	var all []string
	for path, methods := range Document()["paths"].(object) {
		for method := range methods.(object) {
			all = append(all, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(all)
	return all
}

// Operation returns the description of an operation.
func Operation(name string) any {
	method, path, _ := strings.Cut(name, " ")
	return Lookup(Document(), "paths", path, strings.ToLower(method))
}

// mux has the operations of the document, as a test in tests/openapi checks.
var mux = events.New(events.NewStore(nil)).(testdouble.API).Mux()

// FindOperation returns the operation of a request, or "". HEAD counts as GET.
func FindOperation(method, path string) string { return mux.Find(method, &url.URL{Path: path}) }

// wildcards has a value for each wildcard in a path. All of them exist, belong to Ada, and go together.
var wildcards = map[string]string{"id": "evt_1"}

// foreign has values that must look missing in any place of a path next to those of wildcards: IDs, slugs and
// other keys of the database that belong to another host or to another event of Ada's.
var foreign = []string{
	"evt_bob", "bobs", "gst_bob", "gst_two", "usr_bob", "key_bob", "email:bob@example.com",
	"guest:evt_2:grace@example.com", fmt.Sprintf("key:%x", sha256.Sum256([]byte("svc_live_bob"))),
}

// Path is the path of an operation with values for its wildcards.
type Path struct {
	Text    string
	Missing string // with values that don't exist in place of the foreign ones
}

// Paths returns the path of an operation with all combinations of values. The first one has no foreign value.
func Paths(t testing.TB, path string) (all []Path) {
	t.Helper()
	before, rest, found := strings.Cut(path, "{")
	if !found {
		return []Path{{path, path}}
	}
	name, after, _ := strings.Cut(rest, "}")
	own := wildcards[name]
	if own == "" {
		t.Fatalf("wildcard {%s}: got no value in wildcards in internal/apitest, want one of Ada's", name)
	}
	for _, end := range Paths(t, after) {
		all = append(all, Path{before + own + end.Text, before + own + end.Missing})
		for _, value := range foreign {
			all = append(all, Path{before + value + end.Text, before + "nowhere" + end.Missing})
		}
	}
	return all
}

// commonHeaders are the headers of every response.
var commonHeaders = map[string]string{
	"Access-Control-Allow-Origin": "*",
	"Access-Control-Expose-Headers": "location, idempotency-replayed, retry-after, www-authenticate, " +
		"x-request-id",
	"Cache-Control":          "no-store",
	"X-Content-Type-Options": "nosniff",
}

// undescribedHeaders are response headers that the document describes only in words: those of net/http,
// OPTIONS and 405.
const undescribedHeaders = "^(Content-Type|Content-Length|Connection|Date|Allow|" +
	"Access-Control-(Allow-(Methods|Headers)|Max-Age))$"

// describe returns how the response to a request differs from its description.
func describe(method, path string, r Response) (problems []string) {
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for name, want := range commonHeaders {
		if got := strings.Join(r.Header[name], "; "); got != want {
			add("%s: got %q, want %q", name, got, want)
		}
	}
	if r.Status == 204 {
		if r.Body != "" {
			add("a 204 has a body")
		}
		return problems
	}
	description := descriptionOf(method, path, r.Status)
	if description == nil {
		add("the status is not described")
		return problems
	}
	headers, _ := Lookup(description, "headers").(object)
	for name, header := range headers {
		value, given := r.Header[http.CanonicalHeaderKey(name)]
		if required, _ := Lookup(header, "required").(bool); required && !given {
			add("%s is missing", name)
		}
		if given {
			problems = append(problems, Validate(Lookup(header, "schema"), value[0], name, false)...)
			problems = append(problems, Validate(limits[name], value[0], name, false)...)
		}
	}
	for name := range r.Header {
		described := slices.ContainsFunc(slices.Collect(maps.Keys(headers)), func(known string) bool {
			return strings.EqualFold(known, name)
		})
		if commonHeaders[name] == "" && !described && !matches(undescribedHeaders, name) {
			add("%s is not described", name)
		}
	}
	if got := r.Header.Get("Content-Type"); got != "application/json" {
		add("Content-Type: got %q, want application/json", got)
	}
	if got := r.Header.Get("Content-Length"); got != strconv.Itoa(len(r.Body)) && method != "HEAD" {
		add("Content-Length: got %s, want %d", got, len(r.Body))
	}
	if method == "HEAD" {
		return problems
	}
	var value any
	err := json.Unmarshal([]byte(r.Body), &value)
	if err != nil {
		add("%v", err)
	}
	media := Lookup(description, "content", "application/json").(object)
	problems = append(problems, Validate(media["schema"], value, "body", true)...)
	if r.Status < 400 {
		return problems
	}
	code, _ := Lookup(value, "error", "code").(string)
	text, _ := Lookup(description, "description").(string)
	if !strings.HasPrefix(text, "`"+code+"`:") {
		add("code: got %s, want the one that its description begins with: %s", code, text)
	}
	if !matches(`^([^A-Z]|Content-|Idempotency-|"|[\w-]+ is not known).*[^.]$`, r.Message()) {
		add("the message must be in lower case, without a full stop")
	}
	return problems
}

// descriptionOf returns the description of a response, or nil. An unknown route has the errors of known ones.
// The document describes 405 only in words.
func descriptionOf(method, path string, status int) any {
	name := FindOperation(method, path)
	if name != "" && status != 405 {
		return Lookup(Operation(name), "responses", strconv.Itoa(status))
	}
	for _, name := range Operations() {
		description := Lookup(Operation(name), "responses", strconv.Itoa(status))
		if status >= 400 && description != nil {
			return description
		}
	}
	if status == 405 {
		schema := object{"schema": Lookup(Document(), "components", "schemas", "Error")}
		return object{"description": "`method_not_allowed`:", "content": object{"application/json": schema}}
	}
	return nil
}

// limits has additions to the schemas of openapi.json, by the name of the component. Title and WebUrl have
// rules that openapi.json only describes, because a pattern would break generated clients. The others are
// limits that our responses keep although openapi.json leaves them open for new values.
var limits = map[string]object{
	"Title": {
		"pattern": `[^\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]`,
	},
	"WebUrl": {"pattern": `^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@:][^/?#@]*([/?#]|$)`},

	"Event":     {"properties": object{"$ref": "#/components/schemas/NewEvent/properties"}},
	"EventList": {"properties": object{"data": object{"maxItems": 100.0}}},
	"GuestList": {"properties": object{"data": object{"maxItems": 200.0}}},
	"Guest": {
		"properties": object{"name": nameLimit},
		"not": object{"properties": object{
			"name": object{"type": "null"}, "email": object{"type": "null"},
		}},
	},
	"User": {"properties": object{
		"name":       nameLimit,
		"avatar_url": object{"$ref": "#/components/schemas/NewEvent/properties/cover_image_url"},
		"timezone":   object{"$ref": "#/components/schemas/NewEvent/properties/timezone"},
	}},

	"UserId":      {"pattern": `^usr_[A-Za-z0-9_-]{1,64}$`},
	"EventId":     {"pattern": `^evt_[A-Za-z0-9_-]{1,64}$`},
	"GuestId":     {"pattern": `^gst_[A-Za-z0-9_-]{1,64}$`},
	"Slug":        {"pattern": `^[a-z0-9]+(-[a-z0-9]+)*$`, "maxLength": 100.0},
	"EventStatus": {"enum": []any{"draft", "published"}},
	"GuestStatus": {"enum": []any{"invited", "pending", "approved", "declined", "waitlist", "cancelled"}},
	"Instant":     {"pattern": `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,8}[1-9])?Z$`},
	"Email":       {"pattern": `^[^@\pZ\p{Cc}]+@[^@\pZ\p{Cc}]+$`, "maxLength": 254.0},
	"Cursor":      {"pattern": `^[A-Za-z0-9_-]+$`},

	"Location":             {"pattern": `^/api/public/v1/events/evt_[A-Za-z0-9_-]{1,64}$`},
	"Idempotency-Replayed": {"enum": []any{"true"}},
	"WWW-Authenticate":     {"enum": []any{`Bearer realm="events"`}},
	"Accept":               {"enum": []any{"application/json"}},
	"Accept-Encoding":      {"enum": []any{"identity"}},
	"Connection":           {"enum": []any{"close"}},
	"X-Request-Id":         {"minLength": 1.0},
	"Retry-After":          {"enum": []any{"1"}},
}

var nameLimit = object{"minLength": 1.0, "maxLength": 255.0}

// Validate checks a value against a JSON Schema, with the keywords in openapi.json. If closed, objects must
// not have unknown fields.
func Validate(schema, value any, place string, closed bool) (problems []string) {
	add := func(format string, args ...any) {
		problems = append(problems, place+" "+fmt.Sprintf(format, args...))
	}
	valid := func(schema any) bool { return Validate(schema, value, place, closed) == nil }
	text, isText := value.(string)
	list, _ := value.([]any)
	fields, isObject := value.(object)
	size := sizeOf(value)
	keywords := schema.(object)
	for keyword, argument := range keywords {
		bound, _ := argument.(float64)
		words, _ := argument.(string)
		switch keyword {
		case "description", "default", "additionalProperties":
		case "$ref":
			problems = append(problems, Validate(resolve(schema), value, place, closed)...)
			problems = append(problems, Validate(limits[path.Base(words)], value, place, false)...)
		case "type":
			types, ok := argument.([]any)
			if !ok {
				types = []any{argument}
			}
			if !slices.Contains(types, any(typeOf(value))) {
				add("is of type %s, want %v", typeOf(value), argument)
			}
		case "enum":
			if !slices.Contains(argument.([]any), value) {
				add("is %v, want one of %v", value, argument)
			}
		case "anyOf":
			if !slices.ContainsFunc(argument.([]any), valid) {
				add("is %v, want one of the alternatives", value)
			}
		case "not":
			if Validate(argument, value, place, false) == nil {
				add("is excluded")
			}
		case "format":
			if isText && !formats[words](text) {
				add("is %q, want a %s", text, words)
			}
		case "pattern":
			if isText && !matches(words, text) {
				add("is %q, want a match of %s", text, words)
			}
		case "minLength", "minimum":
			if size < bound {
				add("has size %v, want at least %v", size, bound)
			}
		case "maxLength", "maximum", "maxItems":
			if size > bound {
				add("has size %v, want at most %v", size, bound)
			}
		case "items":
			for i, item := range list {
				problems = append(problems, Validate(argument, item, fmt.Sprint(place, "/", i), closed)...)
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
				part := resolve(argument).(object)[name]
				switch {
				case part != nil:
					problems = append(problems, Validate(part, field, place+"/"+name, closed)...)
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

// sizeOf returns the number of characters or items, or the number itself. No bound excludes another value.
func sizeOf(value any) float64 {
	switch value := value.(type) {
	case string:
		return float64(utf8.RuneCountInString(value))
	case []any:
		return float64(len(value))
	case float64:
		return value
	}
	return math.NaN()
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
	"uri":       strict.IsURL,
}

// isDateTime reports whether s is an RFC 3339 date-time. Package time doesn't have leap seconds.
func isDateTime(s string) bool {
	_, err := time.Parse(time.RFC3339, strings.ToUpper(s))
	if err != nil {
		_, err = strict.ParseTime(s)
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
