// Package events is the public REST API of an events networking service, as an
// [http.Handler] over a store that lives in memory or in one JSON file:
//
//	store, err := events.Open("events.json", nil) // or events.NewStore(nil)
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//	http.ListenAndServe("127.0.0.1:8080", events.New(store))
//
// The holder of an API key reads its profile, creates events, lists and fetches
// the events it hosts and lists their guests. openapi.json beside this file
// describes every request and answer; it is also served by the API.
//
// A [Store] is safe for concurrent use. On a file, what was answered with 201,
// and what [Store.Apply] returned from, is on disk; two stores in one process
// share nothing. Package eventstest has the test double: this server, in memory,
// with a clock and ids that repeat, and faults on request.
//
// Limits: bodies of 1 MiB, lists of 100 events and 200 guests a page, one
// process a file. Members and headers may be added to answers within v1; nothing
// is taken away or changes its meaning.
package events

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.com/events/internal/answer"
	"example.com/events/internal/form"
	"example.com/events/internal/index"
)

// BasePath begins the path of every endpoint.
const BasePath = "/api/public/v1"

const (
	maxBody        = 1 << 20   // bytes of a request body
	maxGrow        = 16 << 10  // bytes made ready for a body before it comes
	maxDrain       = 16 << 20  // bytes of a refused body that are read so that the client sees the answer
	maxPart        = 128 << 10 // bytes of a list that are joined in memory, and an item
	defaultLimit   = 50        // items of a page
	maxEvents      = 100       // the most that limit asks for
	maxGuests      = 200
	maxIdempotency = 255 // characters of an Idempotency-Key
)

//go:embed openapi.json
var openAPI []byte

// Config says how a store and its handler differ from the usual. The zero value
// of each member is the usual.
type Config struct {
	// Now is the clock. Nil is the machine's, in whole microseconds, nudged so
	// that no two creation times are equal; a clock given here is taken as it is.
	Now func() time.Time
	// NewID makes what is unique: kind is usr, key, evt or gst for the part of an
	// id behind "usr_" and so on, slug for the end of a slug, secret for the part
	// of an API key behind its prefix. The owner is a user's id, of usr its name.
	// It is called again where the result is taken. Nil is random.
	NewID func(kind, owner string) string
	// Logger gets what an operator must know: the cause of each 500, repairs of
	// the data file. It never gets a key or a body. Nil discards.
	Logger *slog.Logger
	// NewEventStatus is the status of an event that comes without one: draft or
	// published. Empty, or anything else, is published.
	NewEventStatus string
	// Intercept runs once the key, route and method of a request are known, in
	// the place of next, which answers as usual. The operation is the method and
	// path of a route, such as "GET /events/{id}", also of a HEAD. Nil is next.
	Intercept func(operation, userID string, w http.ResponseWriter, r *http.Request, next http.HandlerFunc)
}

// api is what the handlers share.
type api struct {
	store   *Store
	mux     *http.ServeMux
	unknown http.HandlerFunc // of the route that does not exist
	scratch sync.Pool        // of *scratch
}

// route is one endpoint. Each path has one method.
type route struct {
	method, path string
	params       []string // the query parameters it takes
	handle       func(w http.ResponseWriter, r *http.Request, q url.Values, caller string) error
}

func (a *api) routes() []route {
	return []route{
		{"GET", "/users/me", nil, a.getMe},
		{"GET", "/events", []string{"status", "limit", "cursor"}, a.listEvents},
		{"POST", "/events/create", nil, a.createEvent},
		{"GET", "/events/{id}", nil, a.getEvent},
		{"GET", "/events/{id}/guests", []string{"limit", "cursor"}, a.listGuests},
		{"GET", "/openapi", nil, a.getOpenAPI},
	}
}

// Operations are the endpoints as [Config.Intercept] names them: "GET /events"
// and so on. A plain path comes before one with a parameter that it would fit.
func Operations() (all []string) {
	for _, rt := range (&api{}).routes() {
		all = append(all, rt.method+" "+rt.path)
	}
	return all
}

// New returns the handler of everything under [BasePath]; every other path is a
// 404. Mount it at the root of any mux. It is safe for concurrent use. A nil
// store is an empty one.
func New(store *Store) http.Handler {
	if store == nil {
		store = NewStore(nil)
	}
	return newAPI(store)
}

func newAPI(store *Store) *api {
	a := &api{store: store, mux: http.NewServeMux()}
	a.scratch.New = func() any { return &scratch{} }
	for _, route := range a.routes() {
		a.mux.HandleFunc(BasePath+route.path, a.endpoint(route))
	}
	a.unknown = a.endpoint(route{})
	a.mux.HandleFunc("/", a.unknown)
	return a
}

// ServeHTTP answers what needs no key, and leaves the rest to the mux: never a
// path that the mux would redirect.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer a.recover(w, r)
	begin(w, r)
	h := w.Header()
	switch {
	case r.URL.Path != BasePath && !strings.HasPrefix(r.URL.Path, BasePath+"/"):
		a.fail(w, r, errOutside)
	case r.Method == "OPTIONS" && r.Header["Origin"] != nil && r.Header["Access-Control-Request-Method"] != nil:
		h["Access-Control-Allow-Methods"] = corsMethods
		h["Access-Control-Allow-Headers"] = corsHeaders
		h["Access-Control-Max-Age"] = corsMaxAge
		w.WriteHeader(http.StatusNoContent)
	case !plainPath(r.URL):
		a.unknown(w, r)
	default:
		a.mux.ServeHTTP(w, r)
	}
}

// begin puts the headers that every answer has, of the API and of the pages
// beside it alike.
func begin(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	answer.Begin(h)
	h["Access-Control-Allow-Origin"] = anyOrigin
	h["Access-Control-Expose-Headers"] = exposed
	if len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1) { // net/http hides the header of HTTP/1.0
		h["Connection"] = closing // another request may hide behind one with two lengths
	}
}

// The headers of every answer, and of a preflight (Fetch). Shared slices: they
// are only ever read.
var (
	anyOrigin   = []string{"*"}
	exposed     = []string{"location, idempotency-replayed, retry-after, www-authenticate, x-request-id"}
	corsMethods = []string{"GET, HEAD, POST, OPTIONS"}
	corsHeaders = []string{"authorization, content-type, idempotency-key, x-service-api-key"}
	corsMaxAge  = []string{"7200"}
	closing     = []string{"close"}
)

// plainPath reports whether a path means one thing only: nothing to clean away,
// and no slash or NUL hidden in a percent-escape.
func plainPath(u *url.URL) bool {
	return path.Clean(u.Path) == u.Path && strings.IndexByte(u.Path, 0) < 0 &&
		!strings.Contains(strings.ToUpper(u.RawPath), "%2F")
}

// endpoint runs the checks that all routes share, in the documented order: key,
// route, method, query. A route without a path is the one that does not exist.
func (a *api) endpoint(rt route) http.HandlerFunc {
	operation := rt.method + " " + rt.path
	allow := rt.method + ", OPTIONS"
	if rt.method == "GET" {
		allow = "GET, HEAD, OPTIONS"
	}
	return func(w http.ResponseWriter, r *http.Request) {
		caller, err := a.store.caller(r)
		switch {
		case err != nil:
			a.fail(w, r, err)
		case rt.path == "":
			a.fail(w, r, errNoRoute)
		case r.Method == "OPTIONS":
			w.Header().Set("Allow", allow)
			w.WriteHeader(http.StatusNoContent)
		case r.Method != rt.method && (r.Method != "HEAD" || rt.method != "GET"):
			e := answer.Method(rt.path, allow)
			for _, other := range a.routes() {
				if other.method == r.Method && strings.HasPrefix(other.path, rt.path+"/") {
					e.Message += ", or " + other.method + " " + other.path
				}
			}
			a.fail(w, r, e)
		case a.store.cfg.Intercept != nil:
			a.store.cfg.Intercept(operation, caller, w, r, func(w http.ResponseWriter, r *http.Request) {
				a.serve(rt, caller, w, r)
			})
		default:
			a.serve(rt, caller, w, r)
		}
	}
}

func (a *api) serve(rt route, caller string, w http.ResponseWriter, r *http.Request) {
	q, err := rt.query(r.URL.RawQuery)
	if err == nil {
		err = rt.handle(w, r, q, caller)
	}
	if err != nil {
		a.fail(w, r, err)
	}
}

// query reads the query string, which may hold each of the route's parameters
// once and nothing else.
func (rt route) query(raw string) (url.Values, error) {
	if raw == "" {
		return nil, nil
	}
	q, err := url.ParseQuery(raw)
	if err != nil {
		return nil, answer.BadRequest("the query string is malformed; write it as name=value&name=value, percent-encoded")
	}
	var problems []string
	for name, values := range q {
		switch {
		case !slices.Contains(rt.params, name):
			takes := "it takes none"
			if rt.params != nil {
				takes = "it takes " + strings.Join(rt.params, ", ")
			}
			problems = append(problems, fmt.Sprintf("%.60q is not a query parameter of %s %s: %s", name, rt.method, rt.path, takes))
		case len(values) > 1 && name != "limit": // whose rule says more
			problems = append(problems, name+" is given more than once: send it once")
		}
	}
	if problems != nil {
		slices.Sort(problems)
		return nil, answer.BadRequest(strings.Join(problems[:min(len(problems), 10)], "; "))
	}
	return q, nil
}

func (a *api) getMe(w http.ResponseWriter, r *http.Request, _ url.Values, caller string) error {
	raw, found := a.store.profile(caller)
	if !found {
		return errUnauthorized("invalid API key: its user was deleted")
	}
	answer.Write(w, http.StatusOK, raw)
	return nil
}

func (a *api) getEvent(w http.ResponseWriter, r *http.Request, _ url.Values, caller string) error {
	_, raw, found := a.store.event(caller, r.PathValue("id"))
	if !found {
		return errNoEvent
	}
	answer.Write(w, http.StatusOK, raw)
	return nil
}

func (a *api) listEvents(w http.ResponseWriter, r *http.Request, q url.Values, caller string) error {
	status := q.Get("status")
	if q.Has("status") && status != "draft" && status != "published" {
		return answer.BadRequest("status must be draft or published; leave it out for both")
	}
	limit, after, err := paging(q, maxEvents)
	if err != nil {
		return err
	}
	return a.list(w, "events:"+caller+":"+status, caller, "evt", status, limit, after)
}

func (a *api) listGuests(w http.ResponseWriter, r *http.Request, q url.Values, caller string) error {
	limit, after, err := paging(q, maxGuests)
	if err != nil {
		return err
	}
	id, _, found := a.store.event(caller, r.PathValue("id"))
	if !found {
		return errNoEvent
	}
	return a.list(w, "guests:"+id, id, "gst", "", limit, after)
}

// list answers a page of what hangs on a row. It refuses a cursor of another
// list or filter, which are told apart by their names.
func (a *api) list(w http.ResponseWriter, name, parent, kind, status string, limit int, after cursor) error {
	if after.place != nil && after.list != name {
		return answer.BadRequest("cursor belongs to another list or filter; use it with the request that it came from")
	}
	s := a.scratch.Get().(*scratch)
	defer a.scratch.Put(s)
	raws, next := a.store.page(parent, kind, status, after.place, limit, s.raws[:0])
	s.reply(w, raws, name, next)
	return nil
}

func (a *api) getOpenAPI(w http.ResponseWriter, r *http.Request, _ url.Values, _ string) error {
	answer.Write(w, http.StatusOK, openAPI)
	return nil
}

func (a *api) createEvent(w http.ResponseWriter, r *http.Request, _ url.Values, caller string) error {
	if err := checkMediaType(r.Header); err != nil {
		return err
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	key, err := idempotencyKey(r.Header["Idempotency-Key"])
	if err != nil {
		return err
	}
	if len(body) == 0 {
		return answer.BadRequest("the body is required: a JSON object with title, start_at and end_at")
	}
	e, err := a.store.createEvent(r.Context(), caller, body, key)
	switch {
	case errors.Is(err, context.Canceled): // the client has gone while it waited for a place
		panic(http.ErrAbortHandler)
	case errors.Is(err, errGone):
		return errUnauthorized("invalid API key: its user was deleted")
	case errors.Is(err, errReused):
		return errMismatch
	case errors.Is(err, ErrNotFound):
		return errNoEvent
	case err != nil:
		return err
	}
	w.Header()["Location"] = []string{BasePath + "/events/" + e.id}
	if e.replayed {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	answer.Write(w, http.StatusCreated, e.raw)
	return nil
}

// checkMediaType refuses a body that does not say it is JSON (RFC 9110, 8.3).
func checkMediaType(h http.Header) error {
	if strings.Join(h["Content-Encoding"], "") != "" {
		return errMediaType("Content-Encoding is not supported; send the body as it is")
	}
	values := h["Content-Type"]
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return nil
	}
	media, params, err := mime.ParseMediaType(values[0])
	charset, has := params["charset"]
	if err != nil || len(values) > 1 || media != "application/json" ||
		has && !strings.EqualFold(charset, "utf-8") || len(params) > 1 || len(params) == 1 && !has {
		return errMediaType("Content-Type must be application/json, in UTF-8; with curl, add -H 'Content-Type: application/json'")
	}
	return nil
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength > maxBody {
		return nil, errTooLarge
	}
	var b bytes.Buffer // grown by what comes, not by what was promised
	b.Grow(int(min(max(r.ContentLength, 0), maxGrow)) + bytes.MinRead)
	_, err := b.ReadFrom(io.LimitReader(r.Body, maxBody+1))
	switch {
	case b.Len() > maxBody:
		return nil, errTooLarge
	case err != nil:
		w.Header()["Connection"] = closing
		return nil, answer.BadRequest("the body did not arrive whole; send it again")
	}
	return b.Bytes(), nil
}

// idempotencyKey reads the header Idempotency-Key, quoted as a string of RFC
// 8941 or bare.
func idempotencyKey(values []string) (string, error) {
	if len(values) == 0 {
		return "", nil
	}
	key, ok := values[0], len(values) == 1
	if quoted, is := strings.CutPrefix(key, `"`); is {
		inner, closed := strings.CutSuffix(quoted, `"`)
		ok = ok && closed && !strings.ContainsAny(withoutEscapes.Replace(inner), `"\`)
		key = unescaped.Replace(inner)
	}
	if !ok || key == "" || len(key) > maxIdempotency || !form.Visible(key) {
		return "", answer.BadRequest("Idempotency-Key must be one value of 1 to 255 visible ASCII characters, bare or in double quotes")
	}
	return key, nil
}

// In a quoted string of RFC 8941 a backslash escapes itself and the quote.
var (
	unescaped      = strings.NewReplacer(`\\`, `\`, `\"`, `"`)
	withoutEscapes = strings.NewReplacer(`\\`, "", `\"`, "")
)

// cursor is where a list goes on, and which list that is.
type cursor struct {
	list  string
	place *index.Place
}

// String ends with a checksum, so that a cursor that was cut or changed is told.
func (c cursor) String() string {
	b := fmt.Appendf(make([]byte, 0, 160), "1 %s %s %s ", c.list, c.place.Created.UTC().Format(time.RFC3339Nano), c.place.ID)
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(b, "%08x", crc32.ChecksumIEEE(b)))
}

func parseCursor(s string) (c cursor, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	parts := strings.Split(string(raw), " ")
	if err != nil || len(parts) != 5 {
		return c, false
	}
	at, err := time.Parse(time.RFC3339Nano, parts[2])
	c = cursor{parts[1], &index.Place{Created: at, ID: parts[3]}}
	return c, err == nil && c.String() == s
}

// paging reads the parameters that both lists have.
func paging(q url.Values, most int) (limit int, after cursor, err error) {
	var problems []string
	limit = defaultLimit
	if q.Has("limit") {
		s := strings.Join(q["limit"], " ")
		n, err := strconv.Atoi(s)
		if err != nil || strings.Trim(s, "0123456789") != "" || n < 1 || n > most {
			problems = append(problems, fmt.Sprintf("limit must be a whole number from 1 to %d, in digits, given once", most))
		}
		limit = n
	}
	if q.Has("cursor") {
		var ok bool
		if after, ok = parseCursor(q.Get("cursor")); !ok {
			problems = append(problems, "cursor must be the next_cursor of an answer, as it came, or left out to begin")
		}
	}
	if problems != nil {
		return 0, after, answer.BadRequest(strings.Join(problems, "; "))
	}
	return limit, after, nil
}

// scratch is memory that lists use in turn.
type scratch struct {
	raws []string
	body []byte
}

// reply writes the items, which are encoded already, joined: a page of the usual
// size at once, a longer one in parts, so that a client that does not read holds
// little memory.
func (s *scratch) reply(w http.ResponseWriter, raws []string, list string, next *index.Place) {
	const begin = `{"data":[`
	end := `],"has_more":false,"next_cursor":null}`
	if next != nil {
		end = `],"has_more":true,"next_cursor":"` + cursor{list, next}.String() + `"}`
	}
	size := len(begin) + max(0, len(raws)-1) + len(end)
	for _, raw := range raws {
		size += len(raw)
	}
	answer.Start(w, http.StatusOK, size)
	b := append(s.body[:0], begin...)
	for i, raw := range raws {
		if len(b) > maxPart {
			w.Write(b)
			b = b[:0]
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, raw...)
	}
	b = append(b, end...)
	w.Write(b)
	clear(raws)
	if s.raws, s.body = raws, b; cap(b) > 2*maxPart {
		s.body = nil
	}
}

var (
	errNoRoute  = answer.NotFound("there is no such endpoint; GET " + BasePath + "/openapi describes those that there are")
	errOutside  = answer.NotFound("there is nothing here; the API is under " + BasePath)
	errNoEvent  = answer.NotFound("you host no event with this id or slug; GET " + BasePath + "/events lists yours")
	errTooLarge = answer.TooLarge("the body must have at most 1 MiB (1,048,576 bytes)")
	errMismatch = &answer.Error{Status: 422, Code: "idempotency_mismatch", Message: "this Idempotency-Key came before with another body; use a new key for a new event"}
)

func errUnauthorized(problem string) error {
	return answer.Unauthorized("events", problem+"; send it as x-service-api-key: <API_KEY> or Authorization: Bearer <API_KEY>")
}

func errMediaType(message string) error {
	return &answer.Error{Status: 415, Code: "unsupported_media_type", Message: message, Header: "Accept", Value: "application/json"}
}

func errServer(id string) *answer.Error {
	return &answer.Error{Status: 500, Code: "server_error", Header: "X-Request-Id", Value: id,
		Message: "something went wrong on our side; try again, and tell the operator the X-Request-Id if it stays"}
}

// fail answers an error: the one place where an error becomes an answer.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	e, ok := errors.AsType[*answer.Error](err)
	refused, isRecord := errors.AsType[*RecordError](err)
	switch {
	case ok:
	case isRecord:
		e = answer.BadRequest(refused.Error())
	case errors.Is(err, ErrNotFound):
		e = answer.NotFound(err.Error())
	default:
		e = errServer(rand.Text())
		a.store.cfg.Logger.Error("answered 500", "id", e.Value, "route", r.Pattern, "error", err)
	}
	unread := !isRecord && (r.ContentLength > 256<<10 || r.ContentLength < 0 || r.ContentLength > 0 && r.Close) // else net/http reads it away
	if unread {
		w.Header()["Connection"] = closing
		http.NewResponseController(w).EnableFullDuplex()
	}
	e.Write(w)
	if unread && (r.Header.Get("Expect") == "" || e == errTooLarge && r.ContentLength < 0) {
		// A client that sends before it reads must not find the connection reset.
		http.NewResponseController(w).Flush()
		io.CopyN(io.Discard, r.Body, maxDrain)
	}
}

// recover answers a panic with a 500 and logs it once.
func (a *api) recover(w http.ResponseWriter, r *http.Request) {
	switch p := recover(); p {
	case nil:
	case http.ErrAbortHandler:
		panic(p)
	default:
		a.fail(w, r, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	}
}
