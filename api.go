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
// A [Store] is safe for concurrent use. On a file, an event that was answered with
// 201, and records for which [Store.Apply] returned nil, are on disk. Two stores in
// one process share nothing. Package eventstest has the test double: this server, in
// memory, with a clock and ids that repeat, and faults on request.
//
// Limits: bodies of 1 MiB, lists of 100 events and 200 guests a page, one
// process a file. Members and headers may be added to answers within v1; nothing
// is taken away or changes its meaning.
package events

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/events/internal/answer"
	"example.com/events/internal/rows"
	"example.com/events/internal/strict"
)

// BasePath begins the path of every endpoint.
const BasePath = "/api/public/v1"

const (
	defaultLimit = 50        // items of a page
	partSize     = 128 << 10 // bytes of a page that are joined in memory before they are written
)

//go:embed openapi.json
var openAPI string

// Config says how a store and its handler differ from the usual. The zero value
// of each member is the usual. A store calls Now and NewID while it makes a change, one
// at a time, so they must not change that store. Calls of Intercept run concurrently.
type Config struct {
	// Now is the clock; a clock given here is taken as it is. Nil is the machine's,
	// in whole microseconds: the creation times that a store takes from that one are
	// moved forward as needed, so that no two of them are equal. Records that come
	// with a created_at keep it, and theirs may be equal.
	Now func() time.Time
	// NewID makes what is unique. The kind is usr, key, evt or gst for the part of
	// an id after "usr_" and so on, slug for the end of a slug, and secret for the
	// part of an API key after its prefix. The owner is the id of the user that the
	// result belongs to; for kind usr it is the user's name. NewID is called again if
	// the result is in use already. Nil is random.
	NewID func(kind, owner string) string
	// Logger gets what an operator must know: the cause of each 500, repairs of
	// the data file. It never gets a key or a body. Nil discards.
	Logger *slog.Logger
	// NewEventStatus is the status of an event that comes without one: draft or
	// published. Empty is published. Any other value is draft, so that a typing mistake
	// publishes nothing.
	NewEventStatus string
	// Intercept replaces the handler next, which answers as usual, and may call
	// it. It runs once the key, route and method of a request were checked. The
	// operation is the method and path of the route, such as "GET /events/{id}",
	// also if the method of the request is HEAD. Nil calls next.
	Intercept func(operation, userID string, w http.ResponseWriter, r *http.Request, next http.HandlerFunc)
}

// api is what the handlers share. With the methods of inner it is what package operator
// calls a Store, and package double a Server.
type api struct {
	inner
	mux    http.Handler
	bodies atomic.Int64  // bytes that large bodies of creates hold: see readBody
	outage atomic.Uint64 // number of the commit that the last logged outage prevented; 0: none yet
	run    string        // begins the id of each such outage
	pages  sync.Pool     // of *pageWriter, which lists use in turn
}

// route is one endpoint: its operation, which is a method and a path, and what answers it.
type route struct {
	operation string
	params    []string // the query parameters that it takes
	most      int      // the most items of a page, if limit is one of them
	handle    func(w http.ResponseWriter, r request) error
}

// request is a request whose API key is right, with what its query asks for.
type request struct {
	*http.Request
	caller string // id of the user whose API key it carries
	status string // of the events in the list; "" for all
	limit  int    // items of a page
	after  cursor // where the page begins; the zero value is the beginning of the list
}

func (a *api) routes() []route {
	return []route{
		{"GET /users/me", nil, 0, a.getMe},
		{"GET /events", []string{"status", "limit", "cursor"}, 100, a.listEvents},
		{"POST /events/create", nil, 0, a.createEvent},
		{"GET /events/{id}", nil, 0, a.getEvent},
		{"GET /events/{id}/guests", []string{"limit", "cursor"}, 200, a.listGuests},
		{"GET /openapi", nil, 0, a.getOpenAPI},
	}
}

// New returns the handler of everything under [BasePath]; every other path is a
// 404. Mount it at the root of any mux. It is safe for concurrent use. A nil
// store is an empty one.
func New(store *Store) http.Handler {
	return newAPI(cmp.Or(store, NewStore(nil)))
}

func newAPI(store *Store) *api {
	a := &api{inner: inner{store}, run: rand.Text()}
	a.pages.New = func() any {
		return &pageWriter{out: bufio.NewWriterSize(nil, partSize)}
	}
	var routes []answer.Route
	for _, rt := range a.routes() {
		routes = append(routes, answer.Route{
			Operation: rt.operation,
			Serve:     a.endpoint(rt),
		})
	}
	checkKey := func(r *http.Request) error {
		_, err := caller(store, r.Header)
		return err
	}
	a.mux = answer.Mux(BasePath, routes, checkKey, a.writeError)
	return a
}

// Operations are the endpoints as [Config.Intercept] names them: "GET /events/{id}".
func (a *api) Operations() (all []string) {
	for _, rt := range a.routes() {
		all = append(all, rt.operation)
	}
	return all
}

// ServeHTTP answers what needs no key and leaves the rest to the mux.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begin(w, r)
	isOurs := r.URL.Path == BasePath || strings.HasPrefix(r.URL.Path, BasePath+"/")
	isPreflight := r.Method == "OPTIONS" &&
		r.Header["Origin"] != nil &&
		r.Header["Access-Control-Request-Method"] != nil
	switch {
	case !isOurs:
		a.writeError(w, r, errOutside)
	case isPreflight:
		preflight(w)
	default:
		a.mux.ServeHTTP(w, r)
	}
}

// begin sets the headers that every answer has, those of the API and of the pages
// that the command serves beside it.
func begin(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	answer.Begin(h)
	h["Access-Control-Allow-Origin"] = anyOrigin
	h["Access-Control-Expose-Headers"] = exposedHeaders
	// A request with both a length and chunks may hide a second one behind its body.
	// net/http shows neither the length then, nor the chunks of HTTP/1.0. So after any
	// request that may be such a one, the connection is closed.
	if len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1) {
		h["Connection"] = closing
	}
}

// preflight answers a browser that asks whether a page of another origin may send
// a request (Fetch, section 4.8). Such a question carries no key, and the answer is the
// same for every path. The star allows the headers that tracing scripts add to every
// request of a page. It is valid because no credentials are allowed.
func preflight(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS")
	h.Set("Access-Control-Allow-Headers",
		"authorization, content-type, idempotency-key, x-service-api-key, *")
	h.Set("Access-Control-Max-Age", "7200") // seconds
	w.WriteHeader(204)
}

// The values of headers that every answer has. They are only ever read, so one
// slice serves all requests.
var (
	anyOrigin      = []string{"*"}
	exposedHeaders = []string{"location, idempotency-replayed, retry-after, www-authenticate, x-request-id"}
	closing        = []string{"close"}
)

// endpoint returns what answers a route. It checks the API key, and then the query.
// Between them it calls Intercept.
func (a *api) endpoint(rt route) http.HandlerFunc {
	serve := func(w http.ResponseWriter, r *http.Request, userID string) {
		checked := request{Request: r, caller: userID}
		err := rt.readQuery(&checked)
		if err == nil {
			err = rt.handle(w, checked)
		}
		if err != nil {
			a.writeError(w, r, err)
		}
	}
	return func(w http.ResponseWriter, r *http.Request) {
		userID, err := caller(a.Store, r.Header)
		switch {
		case err != nil:
			a.writeError(w, r, err)
		case a.cfg.Intercept == nil:
			serve(w, r, userID)
		default:
			a.cfg.Intercept(rt.operation, userID, w, r, func(w http.ResponseWriter, r *http.Request) {
				serve(w, r, userID)
			})
		}
	}
}

// readQuery reads the query string, which may hold each of the route's parameters
// once and nothing else. It refuses what [url.ParseQuery] refuses, without the
// memory that this takes.
func (rt route) readQuery(r *request) error {
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, badName := url.QueryUnescape(name)
		value, badValue := url.QueryUnescape(value)
		if badName != nil || badValue != nil || strings.Contains(pair, ";") {
			return errQuery
		}
		problem := rt.readParameter(r, name, value)
		if problem != "" {
			return answer.BadRequest(problem)
		}
	}
	r.limit = cmp.Or(r.limit, defaultLimit)
	return nil
}

// readParameter sets one parameter by its rule, or returns what is wrong with it. A
// parameter that is set already is given for the second time.
func (rt route) readParameter(r *request, name, value string) (problem string) {
	if !slices.Contains(rt.params, name) {
		takes := cmp.Or(strings.Join(rt.params, ", "), "none")
		return fmt.Sprintf("%.60q is not a query parameter of %s: it takes %s",
			name, rt.operation, takes)
	}
	switch name {
	case "status":
		if r.status != "" || value != "draft" && value != "published" {
			return "status must be draft or published, given once; leave it out for both"
		}
		r.status = value
	case "limit":
		n, err := strconv.ParseUint(value, 10, 16)
		if r.limit != 0 || err != nil || n < 1 || int(n) > rt.most {
			return fmt.Sprintf("limit must be a whole number from 1 to %d, in digits, given once", rt.most)
		}
		r.limit = int(n)
	case "cursor":
		after, ok := parseCursor(value)
		if r.after.place != nil || !ok {
			return "cursor must be the next_cursor of a page, unchanged and given once; leave it out to begin"
		}
		r.after = after
	}
	return ""
}

func (a *api) getMe(w http.ResponseWriter, r request) error {
	raw := a.Profile(r.caller)
	if raw == "" {
		return errCallerDeleted
	}
	answer.Write(w, 200, raw)
	return nil
}

func (a *api) getEvent(w http.ResponseWriter, r request) error {
	var id, raw string
	a.db.View(func(v rows.View) { id, raw = r.event(v) })
	if id == "" {
		return errNoEvent
	}
	answer.Write(w, 200, raw)
	return nil
}

func (a *api) getOpenAPI(w http.ResponseWriter, _ request) error {
	answer.Write(w, 200, openAPI)
	return nil
}

func (a *api) listEvents(w http.ResponseWriter, r request) error {
	return a.list(w, r, "evt")
}

func (a *api) listGuests(w http.ResponseWriter, r request) error {
	return a.list(w, r, "gst")
}

func (a *api) createEvent(w http.ResponseWriter, r request) error {
	if err := checkMediaType(r.Header); err != nil {
		return err
	}
	var held int64
	defer func() { a.bodies.Add(-held) }()
	body, err := a.readBody(r.Request, &held)
	if err != nil {
		return err
	}
	idem, err := idempotencyKey(r.Header["Idempotency-Key"])
	if err != nil {
		return err
	}
	began := time.Now()
	e, replayed, err := a.create(r, body, idem)
	if time.Since(began) > time.Second { // the disk was slow, which must not cost the answer
		answer.RestartWriteTimeout(r.Context(), w)
	}
	if err != nil {
		return err
	}
	h := w.Header()
	h["Location"] = []string{BasePath + "/events/" + e.ID}
	if replayed {
		h["Idempotency-Replayed"] = []string{"true"}
	}
	answer.Write(w, 201, e.JSON)
	return nil
}

// list answers a page of rows of a kind: of the caller's events, or of the guests of the
// event that the path names. It finds the event and the guests in one state: else an
// operator could delete the event, and make one with its id for another host, between them.
//
// No two lists have the same name. A cursor holds the name of its list, and a cursor of
// another list or filter is refused, because its place means nothing in this one.
func (a *api) list(w http.ResponseWriter, r request, kind string) (err error) {
	p := a.pages.Get().(*pageWriter)
	defer a.pages.Put(p)
	var next cursor
	a.db.View(func(v rows.View) {
		parent := r.caller
		next.list = "events:" + parent + ":" + r.status
		if kind == "gst" {
			parent, _ = r.event(v)
			next.list = "guests:" + parent
		}
		switch {
		case parent == "":
			err = errNoEvent
		case r.after.place != nil && r.after.list != next.list:
			err = errForeign
		default:
			p.items, next.place = v.Page(parent, kind, r.status, r.after.place, r.limit, p.items[:0])
		}
	})
	if err == nil {
		p.write(w, next)
	}
	return err
}

// A cursor is a list and the place in it behind which a page begins. Its text is
// base64url of
//
//	1 events:usr_ada:draft 2027-01-02T03:04:05Z evt_1 8hex
//
// which is a version, the name of the list (of all events: "events:usr_ada:"), the
// created_at and id of the item at the place, and the CRC-32 of all before, by which a cursor that was cut or
// changed on its way is refused.
type cursor struct {
	list  string
	place *rows.Place
}

// append appends the text of a cursor.
func (c cursor) append(text []byte) []byte {
	b := append(make([]byte, 0, 256), "1 "+c.list+" "...)
	b = c.place.Created.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, " "+c.place.ID+" "...)
	b = fmt.Appendf(b, "%08x", crc32.ChecksumIEEE(b))
	return base64.RawURLEncoding.AppendEncode(text, b)
}

// parseCursor reads the text of a cursor. It accepts the one form that append makes: an
// error in the steps below makes a cursor with another text.
func parseCursor(text string) (c cursor, ok bool) {
	raw, _ := base64.RawURLEncoding.DecodeString(text)
	parts := strings.Split(string(raw), " ")
	if len(parts) != 5 {
		return c, false
	}
	created, _ := time.Parse(time.RFC3339Nano, parts[2])
	c.list = parts[1]
	c.place = &rows.Place{Created: created, ID: parts[3]}
	return c, string(c.append(nil)) == text
}

// pageWriter is the memory in which a page is put together.
type pageWriter struct {
	items []string // JSON texts
	end   []byte   // what follows the items
	out   *bufio.Writer
}

// write answers with the items. A page of the usual size is written at once, a longer
// one in parts, so that a client that reads slowly holds little memory. The next page
// begins behind the place of next, which is nil if the list ends here.
func (p *pageWriter) write(w http.ResponseWriter, next cursor) {
	const begin = `{"data":[`
	p.end = append(p.end[:0], `],"has_more":false,"next_cursor":null}`...)
	if next.place != nil {
		p.end = append(p.end[:0], `],"has_more":true,"next_cursor":"`...)
		p.end = next.append(p.end)
		p.end = append(p.end, `"}`...)
	}
	size := len(begin) + max(0, len(p.items)-1) + len(p.end)
	for _, item := range p.items {
		size += len(item)
	}
	answer.Start(w, 200, size)
	p.out.Reset(w)
	p.out.WriteString(begin)
	for i, item := range p.items {
		if i > 0 {
			p.out.WriteByte(',')
		}
		p.out.WriteString(item)
	}
	p.out.Write(p.end)
	p.out.Flush()
	clear(p.items) // what waits for the next page keeps no deleted event in memory
}

// jsonType is application/json, which is in UTF-8 whether it says so or not.
var jsonType = regexp.MustCompile(`(?i)^application/json\s*(;\s*charset=("utf-8"|utf-8)\s*)*(;\s*)?$`)

// checkMediaType refuses a body that is not JSON by its headers (RFC 9110, 8.3 and 8.4).
// One that comes without them is taken for JSON.
func checkMediaType(h http.Header) error {
	media := strings.Join(h["Content-Type"], ", ")
	isUsual := media == "" || media == "application/json" // most are: no pattern is needed
	if !isUsual && !jsonType.MatchString(media) {
		return errMediaType
	}
	coding := strings.Join(h["Content-Encoding"], ", ")
	if coding != "" && !strings.EqualFold(coding, "identity") {
		return errCoding
	}
	return nil
}

// The limits of bodies, in bytes.
const (
	maxBody   = 1 << 20     // a body
	maxBodies = 128 << 20   // the buffers of all creates, beyond smallBody of each: see readBody
	smallBody = 64<<10 + 16 // what each create holds freely: a body of 64 KiB, and room to see its end
	maxFirst  = 16 << 10    // the first buffer of a body, however long it is said to be
	maxReads  = 256<<10 - 1 // what net/http reads of a body that no handler wanted
	maxDrain  = 16 << 20    // what is read of a body after its request was refused
)

// readBody reads a body. Each create may hold smallBody bytes freely; what it holds
// beyond that counts towards maxBodies, which all creates share. This request's share
// is added to held, before the memory is allocated. The caller returns the share when
// it has answered, also if the body was refused.
//
// Without the limit, many large bodies at once could use up the memory of the machine:
// 400 clients that send all but the last byte and then wait would hold 400 MiB. So
// would bodies that have arrived and wait for a slow disk.
//
// The buffer doubles as bytes arrive. It is not made as long as Content-Length says,
// because that is only a promise, which costs its sender nothing.
func (a *api) readBody(r *http.Request, held *int64) ([]byte, error) {
	if r.ContentLength > maxBody {
		return nil, errTooLarge
	}
	// The first read tells a client that waits for "100 Continue" to send: see refuse.
	r.Header.Del("Expect")
	first := min(uint64(r.ContentLength), maxFirst) // -1, unknown, is the largest
	body := make([]byte, 0, 1+first)
	for {
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case len(body) > maxBody:
			return nil, errTooLarge
		case err == io.EOF:
			r.Body = http.NoBody // nothing is left to be read away: see refuse
			return body, nil
		case err != nil:
			return nil, answer.BadRequest("the body did not arrive whole; send it again")
		case len(body) < cap(body):
			continue
		}
		size := min(2*cap(body)+1, maxBody+1)
		more := max(0, int64(size)-smallBody) - *held
		*held += more
		if a.bodies.Add(more) > maxBodies {
			return nil, errBusy
		}
		body = append(make([]byte, 0, size), body...)
	}
}

// idempotencyForm is the form of an Idempotency-Key: 1 to 255 visible ASCII characters,
// bare or as a string of RFC 8941, in which a backslash stands before each quote and
// each backslash.
var idempotencyForm = regexp.MustCompile(`^([!#-~][!-~]{0,254}|"([!#-\[\]-~]|\\["\\]){1,255}")$`)

// idempotencyKey reads the header Idempotency-Key. Without the header it returns "".
// A key is the same bare and in quotes: k and "k".
func idempotencyKey(values []string) (idem string, err error) {
	idem = strings.Join(values, " ") // the form has no space, so it refuses two values
	if values != nil && !idempotencyForm.MatchString(idem) {
		return "", errIdemForm
	}
	if strings.HasPrefix(idem, `"`) {
		return strconv.Unquote(idem) // Unquote accepts more escapes; the pattern has refused them
	}
	return idem, nil
}

// The answers of errors that are known beforehand. The others are in writeError.
var (
	errOutside = answer.NotFound("there is nothing here; the API is under " + BasePath)
	errNoEvent = answer.NotFound("you host no event with this id or slug; GET " + BasePath +
		"/events lists yours")
	errQuery    = answer.BadRequest("the query string is malformed; write it as a=b&c=d, percent-encoded")
	errForeign  = answer.BadRequest("cursor belongs to another list or filter; use it where it came from")
	errIdemForm = answer.BadRequest("Idempotency-Key must be one value of 1 to 255 visible ASCII " +
		"characters, bare or in double quotes")
	errTooLarge  = answer.TooLarge("the body must have at most 1 MiB (1,048,576 bytes)")
	errMediaType = answer.NewError(415, "Content-Type must be application/json, in UTF-8; "+
		"with curl, add -H 'Content-Type: application/json'",
		"Accept", "application/json")
	errCoding = answer.NewError(415,
		"Content-Encoding must be left out, or be identity: send the body uncompressed",
		"Accept-Encoding", "identity")
	errMismatch = answer.NewError(422,
		"this Idempotency-Key came before with another body; use a new key for a new event")
	errCallerDeleted = errUnauthorized("invalid API key: its user was deleted")
	errBusy          = answer.NewError(503,
		"large bodies take all the memory that they may have; send this one again later",
		"Retry-After", "1", "Connection", "close")
)

// writeError is the one place where an error becomes an answer. An [answer.Error] is one
// already, the errors of the store get theirs here, and every other error is a 500. The
// operator's handler and the control API answer their errors by it, too.
func (a *api) writeError(w http.ResponseWriter, r *http.Request, err error) {
	e, hasAnswer := errors.AsType[*answer.Error](err)
	record, isRecord := errors.AsType[*RecordError](err)
	switch {
	case hasAnswer:
	case isRecord:
		e = answer.BadRequest(record.Error())
	case errors.Is(err, ErrNotFound):
		e = answer.NotFound(err.Error())
	case errors.Is(err, context.Canceled):
		panic(http.ErrAbortHandler) // the client has gone: nobody is left to answer
	default: // the cause is in the log alone
		e = answer.NewError(500, "something went wrong on our side; "+
			"try again, and give the operator the X-Request-Id if it happens again",
			"X-Request-Id", a.logged(r, err))
	}
	refuse(w, r, e)
}

// logged logs the cause of a 500 under an id for the header X-Request-Id.
//
// While the store cannot write, such as while a disk is full, every create fails for
// one cause. Such an outage ends with the next commit, so the number of commits until
// then distinguishes outages. All answers of one have the same id, and only the first of
// them is logged.
func (a *api) logged(r *http.Request, err error) (id string) {
	id = rand.Text()
	if errors.Is(err, ErrNotWritten) {
		outage := a.db.Commits() + 1 // 0 is none
		id = fmt.Sprintf("%s-%d", a.run, outage)
		if a.outage.Swap(outage) == outage {
			return id
		}
	}
	a.cfg.Logger.Error("answered 500", "id", id, "route", r.Pattern, "error", err)
	return id
}

// refuse answers with an error in such a way that a client which is still sending
// its body gets to see it.
//
// Most clients send all of a body before they read. If a server closes a
// connection on which bytes arrive that it has not read, TCP resets it, and the
// reset may take the answer away from the client. Example: a POST of 10 MiB with
// a wrong key is refused after its headers; its client would see "connection
// reset by peer" in place of the 401.
//
// If a connection stays open, net/http sees to that: it reads up to maxReads
// bytes of a body that the handler left. If the connection will be closed, it
// reads nothing. So then the answer is sent first, and the rest of the body is
// read after it, up to maxDrain bytes and the server's time to read. Two bodies
// have no rest that could arrive: one that was read to its end, and one whose
// sender waits for "100 Continue" and was not told so.
func refuse(w http.ResponseWriter, r *http.Request, e *answer.Error) {
	h := w.Header()
	closes := r.Close || r.ContentLength > maxReads ||
		h["Connection"] != nil || e.Header["Connection"] != nil
	hasRest := r.ContentLength != 0 &&
		r.Body != http.NoBody &&
		r.Header["Expect"] == nil
	if !closes || !hasRest {
		e.Write(w)
		return
	}
	h["Connection"] = closing
	control := http.NewResponseController(w)
	control.EnableFullDuplex() // else net/http reads before it answers
	e.Write(w)
	control.Flush()
	io.CopyN(io.Discard, r.Body, maxDrain)
}

// What the handlers ask of the store. Each call sees only what belongs to the caller.

// Profile is the user with this id or email in JSON, or "" if there is none, as the caller
// may be deleted after its API key was checked.
func (s inner) Profile(user string) (raw string) {
	s.db.View(func(v rows.View) {
		u := v.Get("usr", user)
		if u == nil {
			u = v.Find(emailName(user))
		}
		if u != nil {
			raw = u.JSON
		}
	})
	return raw
}

// event is the event that the path names by id or slug, if the caller hosts it. Otherwise
// both results are "".
func (r request) event(v rows.Finder) (id, raw string) {
	ref := r.PathValue("id")
	e := v.Find(ref)
	if e != nil && e.Parent == r.caller && e.Kind.Prefix == "evt" {
		return e.ID, e.JSON
	}
	return "", ""
}

// create makes an event of the caller from a body. An idempotency key that came before
// with the same body is answered with the event that it made, as that is now; with
// another body it is errMismatch. That is checked before a body that is not JSON is
// refused: a known key with such a body is 422 and not 400.
//
// It returns a copy of the event's row, and whether an earlier request made it.
func (a *api) create(r request, body []byte, idem string) (made rows.Row, replayed bool, err error) {
	v, parseErr := strict.Parse(body)
	var key *rows.IdempotencyKey
	if idem != "" {
		key = &rows.IdempotencyKey{Key: idem, Body: digest(string(body))}
	}
	err = a.update(r.Context(), func(t tx) error {
		if key != nil {
			key.At = a.now()
			e := t.FindIdempotent(r.caller, key.Key)
			if e != nil && e.Idempotency.Body != key.Body {
				return errMismatch
			}
			if e != nil {
				made = *e
				replayed = true
				return nil
			}
		}
		if parseErr != nil {
			return answer.BadRequest("the body is not a JSON object: " + parseErr.Error())
		}
		if v.Kind != strict.Object {
			return answer.BadRequest("the body must be a JSON object, not " + v.Kind.String())
		}
		if t.Get("usr", r.caller) == nil {
			return errCallerDeleted
		}
		e, problems := t.newEvent(r.caller, v, key)
		if problems != nil {
			return answer.BadRequest(strings.Join(problems, "; "))
		}
		made = *e
		replayed = false
		return nil
	})
	return made, replayed, err
}
