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
// The package has no TLS, no rate limits and no sessions: put a proxy before it.
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
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.com/events/internal/answer"
	"example.com/events/internal/form"
	"example.com/events/internal/rows"
)

// BasePath begins the path of every endpoint.
const BasePath = "/api/public/v1"

const (
	defaultLimit = 50        // items of a page
	partSize     = 128 << 10 // bytes of a page that are joined in memory before they are written

	maxBody = 1 << 20 // bytes of a body
)

//go:embed openapi.json
var openAPI string

// api is what the handlers share. With the methods of inner it is what package operator
// calls a Store, and package double a Server.
type api struct {
	inner
	service answer.Service
	mux     http.Handler
	pages   sync.Pool // of *pageWriter, which lists use in turn
}

func (a *api) routes() []answer.Route {
	return []answer.Route{
		{Operation: "GET /users/me", Handle: a.getMe},
		{
			Operation: "GET /events",
			Params:    []answer.Parameter{statusParam, eventLimit, cursorParam},
			Handle:    a.listEvents,
		},
		{Operation: "POST /events/create", MaxBody: maxBody, Handle: a.createEvent},
		{Operation: "GET /events/{id}", Handle: a.getEvent},
		{
			Operation: "GET /events/{id}/guests",
			Params:    []answer.Parameter{guestLimit, cursorParam},
			Handle:    a.listGuests,
		},
		{Operation: "GET /openapi", Handle: a.getOpenAPI},
	}
}

// The parameters of queries.
var (
	statusParam = &answer.Param[string]{
		Name: "status",
		Rule: "must be draft or published, given once; leave it out for both",
		Read: func(value string) (string, bool) { return value, value == "draft" || value == "published" },
	}
	cursorParam = &answer.Param[*rows.Place]{
		Name: "cursor",
		Rule: "must be the next_cursor of a page, unchanged and given once; leave it out to begin",
		Read: parseCursor,
	}
	eventLimit = limitParam(100)
	guestLimit = limitParam(200)
)

// limitParam is the parameter limit of a list whose pages have at most so many items.
func limitParam(most int) *answer.Param[int] {
	return &answer.Param[int]{
		Name: "limit",
		Rule: fmt.Sprintf("must be a whole number from 1 to %d, in digits, given once", most),
		Read: func(value string) (int, bool) {
			n, err := strconv.ParseUint(value, 10, 16)
			return int(n), err == nil && n >= 1 && int(n) <= most
		},
		Default: defaultLimit,
	}
}

// New returns the handler of everything under [BasePath]; every other path is a
// 404. Mount it at the root of any mux. It is safe for concurrent use. A nil
// store is an empty one.
func New(store *Store) http.Handler {
	return newAPI(cmp.Or(store, NewStore(nil)))
}

func newAPI(store *Store) *api {
	a := &api{
		inner: inner{store},
	}
	a.pages.New = func() any {
		return &pageWriter{out: bufio.NewWriterSize(nil, partSize)}
	}
	a.service = answer.Service{
		Base:       BasePath,
		Routes:     a.routes(),
		Check:      func(r *http.Request) (string, error) { return caller(store, r.Header) },
		Admit:      a.admit,
		WriteError: a.writeError,
	}
	a.mux = a.service.Handler()
	return a
}

// Operations are the endpoints, each a method and a path: "GET /events/{id}".
func (a *api) Operations() []string { return a.service.Operations() }

// Intercept lets f answer requests in place of the routes: see [answer.Intercept]. It is to be
// called before the handler serves.
func (a *api) Intercept(f answer.Intercept) { a.service.Intercept = f }

// ServeHTTP answers what needs no key and leaves the rest to the mux.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w, r)
	isOurs := r.URL.Path == BasePath || strings.HasPrefix(r.URL.Path, BasePath+"/")
	isPreflight := r.Method == "OPTIONS" &&
		r.Header["Origin"] != nil &&
		r.Header["Access-Control-Request-Method"] != nil
	switch {
	case !isOurs:
		a.writeError(w, r, errOutside)
	case isPreflight:
		a.preflight(w)
	default:
		a.mux.ServeHTTP(w, r)
	}
}

// setHeaders sets the headers that every answer has, those of the API and of the pages
// that the command serves beside it.
func setHeaders(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	answer.SetHeaders(h)
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
func (a *api) preflight(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", a.service.Methods())
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

// admit checks what must be right before a body is read: the caller hosts the event that the
// path names, if it names one, and the body is JSON.
func (a *api) admit(r answer.Request) (err error) {
	if r.PathValue("id") != "" {
		a.db.View(func(v rows.View) { _, err = hostedEvent(v, r) })
	}
	if err != nil {
		return err
	}
	return checkMediaType(r.Header)
}

func (a *api) getMe(w http.ResponseWriter, r answer.Request) error {
	raw := a.Profile(r.Caller)
	if raw == "" {
		return errCallerDeleted
	}
	answer.Write(w, 200, raw)
	return nil
}

func (a *api) getEvent(w http.ResponseWriter, r answer.Request) (err error) {
	raw := ""
	a.db.View(func(v rows.View) {
		var event *rows.Row
		event, err = hostedEvent(v, r)
		if err == nil {
			raw = event.JSON
		}
	})
	if err == nil {
		answer.Write(w, 200, raw)
	}
	return err
}

func (a *api) getOpenAPI(w http.ResponseWriter, _ answer.Request) error {
	answer.Write(w, 200, openAPI)
	return nil
}

func (a *api) createEvent(w http.ResponseWriter, r answer.Request) error {
	idem, err := idempotencyKey(r.Header["Idempotency-Key"])
	if err != nil {
		return err
	}
	made, err := a.create(r, idem)
	answer.RestartWriteTimeout(r.Context(), w) // a slow disk takes no time from the response
	if err != nil {
		return err
	}
	h := w.Header()
	h["Location"] = []string{BasePath + "/events/" + made.event.ID}
	if made.isReplay {
		h["Idempotency-Replayed"] = []string{"true"}
	}
	answer.Write(w, 201, made.event.JSON)
	return nil
}

func (a *api) listEvents(w http.ResponseWriter, r answer.Request) error {
	list := rows.List{Parent: r.Caller, Prefix: "evt", Status: statusParam.In(r)}
	return a.writePage(w, r, list, eventLimit.In(r))
}

func (a *api) listGuests(w http.ResponseWriter, r answer.Request) error {
	return a.writePage(w, r, rows.List{Prefix: "gst"}, guestLimit.In(r))
}

// writePage answers a page of a list. The parent of guests is the event that the path names. It
// is found in the same state as the guests: else an operator could delete the event, and make one
// with its id for another host, between them.
func (a *api) writePage(w http.ResponseWriter, r answer.Request, list rows.List, limit int) (err error) {
	p := a.pages.Get().(*pageWriter)
	defer a.pages.Put(p)
	var next *rows.Place
	a.db.View(func(v rows.View) {
		if list.Prefix == "gst" {
			var event *rows.Row
			event, err = hostedEvent(v, r)
			if err != nil {
				return
			}
			list.Parent = event.ID
		}
		p.items, next = v.Page(list, cursorParam.In(r), limit, p.items[:0])
	})
	if err == nil {
		p.write(w, next)
	}
	return err
}

// appendCursor appends the cursor of the page that begins behind a place, which is base64url of
// the created_at and id of the item at the place:
//
//	2027-01-02T03:04:05Z evt_1
func appendCursor(text []byte, place *rows.Place) []byte {
	b := place.Created.UTC().AppendFormat(make([]byte, 0, 128), time.RFC3339Nano)
	b = append(b, " "+place.ID...)
	return base64.RawURLEncoding.AppendEncode(text, b)
}

// parseCursor returns the place in a cursor. Its text must be the one that appendCursor makes.
func parseCursor(text string) (*rows.Place, bool) {
	raw, _ := base64.RawURLEncoding.DecodeString(text)
	created, id, _ := strings.Cut(string(raw), " ")
	t, err := time.Parse(time.RFC3339Nano, created)
	place := &rows.Place{Created: t, ID: id}
	return place, err == nil && id != "" && string(appendCursor(nil, place)) == text
}

// pageWriter is the memory in which a page is put together.
type pageWriter struct {
	items []string // JSON texts
	end   []byte   // what follows the items
	out   *bufio.Writer
}

// write answers with the items. A page of the usual size is written at once, a longer
// one in parts, so that a client that reads slowly holds little memory. The next page
// begins behind the place next, which is nil if the list ends here.
func (p *pageWriter) write(w http.ResponseWriter, next *rows.Place) {
	const begin = `{"data":[`
	p.end = append(p.end[:0], `],"has_more":false,"next_cursor":null}`...)
	if next != nil {
		p.end = append(p.end[:0], `],"has_more":true,"next_cursor":"`...)
		p.end = appendCursor(p.end, next)
		p.end = append(p.end, `"}`...)
	}
	size := len(begin) + max(0, len(p.items)-1) + len(p.end)
	for _, item := range p.items {
		size += len(item)
	}
	answer.WriteHead(w, 200, size)
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
	errIdemForm = answer.BadRequest("Idempotency-Key must be one value of 1 to 255 visible ASCII " +
		"characters, bare or in double quotes")
	errMediaType = answer.NewError(415, "Content-Type must be application/json, in UTF-8; "+
		"with curl, add -H 'Content-Type: application/json'",
		"Accept", "application/json")
	errCoding = answer.NewError(415,
		"Content-Encoding must be left out, or be identity: send the body uncompressed",
		"Accept-Encoding", "identity")
	errMismatch = answer.NewError(422,
		"this Idempotency-Key came before with another body; use a new key for a new event")
	errTimeOver = answer.NewError(503, "the time that this request may take is over; send it again",
		"Retry-After", "1")
	errCallerDeleted = errUnauthorized("invalid API key: its user was deleted")
)

// writeError answers an error. The operator's handler and the control API use it, too.
func (a *api) writeError(w http.ResponseWriter, r *http.Request, err error) {
	a.answerTo(r, err).Write(w)
}

// writeCause is writeError for an operator, who may read the log as well: the answer to what went
// wrong on our side has the cause itself.
func (a *api) writeCause(w http.ResponseWriter, r *http.Request, err error) {
	e := a.answerTo(r, err)
	if e.Status == 500 {
		e.Message, _, _ = strings.Cut(err.Error(), "\n") // without the stack of a panic
	}
	e.Write(w)
}

// answerTo is the one place where an error becomes an answer. An [answer.Error] is one
// already, the errors of the store get theirs here, and every other error is a 500.
func (a *api) answerTo(r *http.Request, err error) *answer.Error {
	e, hasAnswer := errors.AsType[*answer.Error](err)
	record, isRecord := errors.AsType[*RecordError](err)
	switch {
	case hasAnswer:
		return e
	case isRecord:
		return answer.BadRequest(record.Error())
	case errors.Is(err, ErrNotFound):
		return answer.NotFound(err.Error())
	case errors.Is(err, context.Canceled):
		panic(http.ErrAbortHandler) // the client has gone: nobody is left to answer
	case errors.Is(err, context.DeadlineExceeded): // of a handler in front of this one
		return errTimeOver
	}
	// The cause is in the log alone.
	return answer.NewError(500, "something went wrong on our side; "+
		"try again, and give the operator the X-Request-Id if it happens again",
		"X-Request-Id", a.logged(r, err))
}

// logged logs the cause of a 500 under an id for the header X-Request-Id.
// A failed write is logged by the database, once until writes work again.
func (a *api) logged(r *http.Request, err error) (id string) {
	id = rand.Text()
	if !errors.Is(err, ErrNotWritten) {
		a.cfg.Logger.Error("answered 500", "id", id, "route", r.Pattern, "error", err)
	}
	return id
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

// hostedEvent is the event that the path names by id or slug, which the caller must host.
func hostedEvent(state rows.Finder, r answer.Request) (*rows.Row, error) {
	e := state.Find(r.PathValue("id"))
	if e != nil && e.Parent == r.Caller && e.Kind.Prefix == "evt" {
		return e, nil
	}
	return nil, errNoEvent
}

// created is the event that answers a create.
type created struct {
	event    rows.Row // a copy
	isReplay bool     // an earlier request made it
}

// create makes an event of the caller from a body. An idempotency key that came before
// with the same body is answered with the event that it made, as that is now; with
// another body it is errMismatch. That is checked before a body that is not JSON is
// refused: a known key with such a body is 422 and not 400.
func (a *api) create(r answer.Request, idem string) (created, error) {
	v, problem := form.Object(r.Body)
	sum := digest(string(r.Body))
	return update(r.Context(), a.Store, func(t tx) (created, error) {
		var key *rows.IdempotencyKey
		if idem != "" {
			key = &rows.IdempotencyKey{Key: idem, Body: sum, At: a.clock.now()}
			e := t.FindIdempotent(r.Caller, idem)
			if e != nil && e.Idempotency.Body != sum {
				return created{}, errMismatch
			}
			if e != nil {
				return created{event: *e, isReplay: true}, nil
			}
		}
		if problem != "" {
			return created{}, answer.BadRequest(problem)
		}
		if t.Get("usr", r.Caller) == nil {
			return created{}, errCallerDeleted
		}
		e, problems := t.newEvent(r.Caller, v, key)
		if problems != nil {
			return created{}, answer.BadRequest(strings.Join(problems, "; "))
		}
		return created{event: *e}, nil
	})
}
