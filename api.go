// Package events implements an API for events and guest lists: an [http.Handler] over a store in memory or in
// one JSON file.
//
//	store, err := events.Open("events.json", nil) // or events.NewStore(nil)
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//	http.ListenAndServe("127.0.0.1:8080", events.New(store))
//
// With an API key, a client can read its owner's profile, create and list events, and list their guests.
// openapi.json describes all requests and responses.
//
// A new store is empty. Add a user with [Store.Put] and a key with [Store.IssueKey]. Use a proxy for TLS
// and rate limits.
//
// To test a client, use package eventstest. It runs this server in your tests.
package events

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"example.com/events/internal/httpapi"
	"example.com/events/internal/jsondb"
	"example.com/events/internal/operator"
	"example.com/events/internal/schema"
	"example.com/events/internal/strict"
	"example.com/events/internal/testdouble"
)

// BasePath is the path prefix of every endpoint.
const BasePath = "/api/public/v1"

const (
	defaultLimit = 50  // items per page
	maxEvents    = 100 // events per page
	maxGuests    = 200 // guests per page
)

//go:embed openapi.json
var openAPI string

// New returns a handler that serves the API under [BasePath] and responds to other paths with 404. It is safe
// for concurrent use.
func New(store *Store) http.Handler { return newAPI(store) }

// api serves the API. Its method Operator returns the handler for the operator's subcommands.
type api struct {
	store   *Store
	mux     *httpapi.Mux
	started time.Time

	// Set these before serving.
	baseURL     string     // for the status of a server with a data file
	changeLevel slog.Level // log level of operator changes
}

// newAPI creates the API of a store. The mux checks the key, the route and the query; handlers check the
// rest.
func newAPI(store *Store) *api {
	a := &api{store: store, started: time.Now().UTC()}
	a.mux = httpapi.NewMux(BasePath, a.routes())
	a.mux.Authenticate = store.authenticate
	a.mux.ToError = toError
	a.mux.Logger = store.cfg.Logger
	return a
}

// Mux, SetNewID, User, AddUser and IssueKey implement [testdouble.API].

func (a *api) Mux() *httpapi.Mux { return a.mux }

func (a *api) SetNewID(newID func(kind, owner string) string) { a.store.newID = newID }

func (a *api) User(id string) (text string) {
	a.store.db.View(func(tx *jsondb.Tx) {
		user := tx.Get("usr", id)
		if user != nil {
			text = user.JSON
		}
	})
	return text
}

func (a *api) AddUser(id, name, email string) error {
	_, err := a.store.Put(Record{User: &User{ID: id, Name: name, Email: email}})
	return err
}

func (a *api) IssueKey(userID string) (testdouble.Key, error) {
	secret, key, err := a.store.IssueKey(userID)
	return testdouble.Key{ID: key.ID, Secret: secret, UserID: userID}, err
}

// ServeHTTP responds to requests that need no key and passes others to the mux.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setAPIHeaders(w, r)
	preflight := r.Method == "OPTIONS" &&
		r.Header["Origin"] != nil &&
		r.Header["Access-Control-Request-Method"] != nil
	switch {
	case !strings.HasPrefix(r.URL.Path+"/", BasePath+"/"):
		errNotAPIPath.Write(w)
	case preflight:
		writePreflight(w)
	default:
		a.mux.ServeHTTP(w, r)
	}
}

// All responses share these header values. Don't modify them.
var (
	anyOrigin       = []string{"*"}
	exposedHeaders  = []string{"location, idempotency-replayed, retry-after, www-authenticate, x-request-id"}
	connectionClose = []string{"close"}
)

// setAPIHeaders sets the headers of every response.
func setAPIHeaders(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	httpapi.SetSecurityHeaders(h)
	h["Access-Control-Allow-Origin"] = anyOrigin
	h["Access-Control-Expose-Headers"] = exposedHeaders
	// Prevent request smuggling: a body with both a length and chunks may hide another request. net/http
	// doesn't show us both, so close the connection after any request with chunks, and after HTTP/1.0.
	if len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1) {
		h["Connection"] = connectionClose
	}
}

// writePreflight tells a browser which requests other origins may send (Fetch, section 4.8). The star allows
// headers that tracing scripts add. It is valid because credentials are not allowed.
func writePreflight(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS")
	h.Set("Access-Control-Allow-Headers",
		"authorization, content-type, idempotency-key, x-service-api-key, *")
	h.Set("Access-Control-Max-Age", "7200") // seconds
	w.WriteHeader(204)
}

func (a *api) routes() []httpapi.Route {
	return []httpapi.Route{
		{Operation: "GET /users/me", Handle: a.getMe},
		{Operation: "GET /events", Query: true, Handle: a.listEvents},
		{Operation: "POST /events/create", Handle: httpapi.WithBody(a.createEvent)},
		{Operation: "GET /events/{id}", Handle: a.getEvent},
		{Operation: "GET /events/{id}/guests", Query: true, Handle: a.listGuests},
		{Operation: "GET /openapi", Handle: a.getOpenAPI},
	}
}

func (a *api) getMe(w http.ResponseWriter, r httpapi.Request) error {
	var user *jsondb.Row
	a.store.db.View(func(tx *jsondb.Tx) { user = tx.Get("usr", r.Caller.UserID) })
	if user == nil {
		return errUserDeleted
	}
	httpapi.WriteJSON(w, 200, user.JSON)
	return nil
}

func (a *api) listEvents(w http.ResponseWriter, r httpapi.Request) error {
	q := httpapi.ReadQuery(r)
	status := q.OneOf("status", "draft", "published")
	limit, after := readPagination(&q, maxEvents)
	if err := q.Err(); err != nil {
		return err
	}
	var events []string
	var next *jsondb.Position
	a.store.db.View(func(tx *jsondb.Tx) {
		events, next = tx.Page(r.Caller.UserID, "evt", status, after, limit)
	})
	writePage(w, events, next)
	return nil
}

func (a *api) createEvent(w http.ResponseWriter, r httpapi.Request, body []byte) error {
	key, err := idempotencyKey(r.Header)
	if err != nil {
		return err
	}
	event, replayed, err := a.store.addEvent(r.Operation, r.Caller.UserID, body, key)
	httpapi.RestartWriteTimeout(w, r.Request) // the commit may have used it up
	if err != nil {
		return err
	}
	w.Header().Set("Location", BasePath+"/events/"+event.ID)
	if replayed {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	httpapi.WriteJSON(w, 201, event.JSON)
	return nil
}

func (a *api) getEvent(w http.ResponseWriter, r httpapi.Request) error {
	var event *jsondb.Row
	a.store.db.View(func(tx *jsondb.Tx) { event = hostedEvent(tx, r) })
	if event == nil {
		return errNoEvent
	}
	httpapi.WriteJSON(w, 200, event.JSON)
	return nil
}

func (a *api) listGuests(w http.ResponseWriter, r httpapi.Request) error {
	q := httpapi.ReadQuery(r)
	limit, after := readPagination(&q, maxGuests)
	err := q.Err()
	if err != nil {
		return err
	}
	var guests []string
	var next *jsondb.Position
	a.store.db.View(func(tx *jsondb.Tx) { // one view, because another event may get this ID
		event := hostedEvent(tx, r)
		if event == nil {
			err = errNoEvent
			return
		}
		guests, next = tx.Page(event.ID, "gst", "", after, limit)
	})
	if err != nil {
		return err
	}
	writePage(w, guests, next)
	return nil
}

func (a *api) getOpenAPI(w http.ResponseWriter, _ httpapi.Request) error {
	httpapi.WriteJSON(w, 200, openAPI)
	return nil
}

// hostedEvent returns the event in the request path, by ID or slug, or nil if the caller hosts no such event.
func hostedEvent(tx *jsondb.Tx, r httpapi.Request) *jsondb.Row {
	event := tx.Find(r.PathValue("id"))
	if event == nil || event.Table.Prefix != "evt" || event.Parent != r.Caller.UserID {
		return nil
	}
	return event
}

// idempotencyForm matches an Idempotency-Key: visible ASCII characters, bare or as a quoted string (RFC 8941)
// with \" and \\ as escapes.
var idempotencyForm = regexp.MustCompile(`^([!#-~][!-~]*|"([!#-\[\]-~]|\\["\\])+")$`)

const maxIdempotencyKey = 255 // characters

// idempotencyKey returns the unquoted Idempotency-Key, or "" if the request has none. The error is a 400.
func idempotencyKey(h http.Header) (key string, err error) {
	values := h["Idempotency-Key"]
	if values == nil {
		return "", nil
	}
	key = strings.Join(values, " ") // two values contain a space, which is invalid
	valid := idempotencyForm.MatchString(key)
	if valid && strings.HasPrefix(key, `"`) {
		key, _ = strconv.Unquote(key) // the form has only escapes that Go also has
	}
	if !valid || len(key) > maxIdempotencyKey {
		return "", httpapi.BadRequest("Idempotency-Key must be one value of 1 to 255 visible ASCII " +
			"characters, bare or in double quotes")
	}
	return key, nil
}

// readPagination reads the parameters limit and cursor. after is nil for the first page.
func readPagination(q *httpapi.Query, maxLimit int) (limit int, after *jsondb.Position) {
	limit = q.Int("limit", defaultLimit, 1, maxLimit)
	const rule = "must be the next_cursor of a page, unchanged and given once; " +
		"leave it out to get the first page"
	q.Func("cursor", rule,
		func(value string) bool {
			p, ok := parseCursor(value)
			after = &p
			return ok
		})
	return limit, after
}

// writePage writes a page of JSON texts. next is the position of its last row if more rows follow, otherwise
// nil.
func writePage(w http.ResponseWriter, page []string, next *jsondb.Position) {
	end := `],"has_more":false,"next_cursor":null}`
	if next != nil {
		end = `],"has_more":true,"next_cursor":"` + formatCursor(*next) + `"}`
	}
	httpapi.WriteList(w, `{"data":[`, page, end)
}

// formatCursor encodes a position, such as "2027-01-02T03:04:05Z evt_1", as base64url.
func formatCursor(p jsondb.Position) string {
	text := p.Created.UTC().AppendFormat(nil, time.RFC3339Nano)
	text = append(text, " "+p.ID...)
	return base64.RawURLEncoding.EncodeToString(text)
}

func parseCursor(cursor string) (p jsondb.Position, ok bool) {
	text, _ := base64.RawURLEncoding.DecodeString(cursor)
	created, id, _ := strings.Cut(string(text), " ")
	t, err := time.Parse(time.RFC3339Nano, created)
	p = jsondb.Position{Created: t, ID: id}
	return p, err == nil && id != "" && formatCursor(p) == cursor
}

var (
	errNotAPIPath = httpapi.NotFound("no such page: the API is under " + BasePath)
	errNoEvent    = httpapi.NotFound("you host no event with this id or slug; GET " + BasePath +
		"/events lists yours")
	errUserDeleted = unauthorized("invalid API key: its user was deleted; ask the operator for a new one")
	errMismatch    = httpapi.NewError(422,
		"this Idempotency-Key was used with a different request: to retry, send exactly the same body; "+
			"for another event, use a new key")
)

// toError converts a store error to a response. It returns nil for internal errors, which the mux logs and
// reports as a 500.
func toError(err error) *httpapi.Error {
	refused, ok := errors.AsType[*RecordError](err)
	switch {
	case ok:
		return httpapi.BadRequest(refused.Error())
	case errors.Is(err, ErrNotFound): // only operators and tests name users and keys
		return httpapi.NotFound(err.Error())
	case errors.Is(err, ErrClosed):
		return httpapi.NewError(503, "the server is stopping; try again", "Retry-After", "1") // seconds
	case errors.Is(err, ErrNotWritten): // logged by the database, once until it can write again
		return httpapi.NewError(500,
			"the server can't save changes now; try again, and tell the operator if it happens again")
	}
	return nil
}

// Operator returns the handler for the operator's subcommands. Its callers are trusted, so a 500 includes the
// cause.
func (a *api) Operator() http.Handler {
	mux := httpapi.NewMux("", a.operatorRoutes())
	mux.ToError = a.toOperatorError
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpapi.DisableReadTimeout(w)  // records may take long to arrive
		httpapi.DisableWriteTimeout(w) // applying or dumping many records may take long
		mux.ServeHTTP(w, r)
	})
}

func (a *api) operatorRoutes() []httpapi.Route {
	return []httpapi.Route{
		{Operation: "POST /keys", Handle: a.postKey},
		{Operation: "GET /keys", Handle: a.getKeys},
		{Operation: "DELETE /keys/{id}", Handle: a.deleteKey},
		{Operation: "GET /records", Query: true, Handle: a.getRecords},
		{Operation: "POST /records", Handle: a.postRecords},
		{Operation: "GET /status", Handle: a.getStatus},
	}
}

func (a *api) postKey(w http.ResponseWriter, r httpapi.Request) error {
	body, err := httpapi.ReadBody(w, r, httpapi.MaxBody)
	if err != nil {
		return err
	}
	var request keyRequest
	problems := keyRequestSchema.Unmarshal(body, &request, schema.Create).All()
	if problems != nil {
		return &RecordError{Problems: problems}
	}
	secret, key, err := a.store.issueKey(request, "")
	if err != nil {
		return err
	}
	a.logChange("key issued", "key", key.ID, "user", key.UserID)
	httpapi.WriteValue(w, 201, map[string]string{"id": key.ID, "secret": secret, "user_id": key.UserID})
	return nil
}

func (a *api) getKeys(w http.ResponseWriter, _ httpapi.Request) error {
	httpapi.WriteValue(w, 200, map[string]any{"data": a.store.listKeys()})
	return nil
}

func (a *api) deleteKey(w http.ResponseWriter, r httpapi.Request) error {
	key, changed, err := a.store.revokeKey(r.PathValue("id"))
	if err != nil {
		return err
	}
	if changed {
		a.logChange("key revoked", "key", key.ID, "user", key.UserID)
	}
	w.WriteHeader(204)
	return nil
}

func (a *api) getRecords(w http.ResponseWriter, r httpapi.Request) error {
	q := httpapi.ReadQuery(r)
	userID := q.String("user_id", "must be the ID of a user, given once; leave it out for all records")
	if err := q.Err(); err != nil {
		return err
	}
	rows, err := a.store.rows(userID)
	if err != nil {
		return err
	}
	httpapi.StartStream(w)
	err = jsondb.WriteRecords(w, rows)
	if err != nil {
		panic(http.ErrAbortHandler) // the client is gone
	}
	return nil
}

func (a *api) postRecords(w http.ResponseWriter, r httpapi.Request) error {
	records, err := httpapi.ReadBody(w, r, math.MaxInt64)
	if err != nil {
		return err
	}
	done, err := a.store.applyRecords(strict.ParseArray(records))
	if err != nil {
		return err
	}
	a.logChange("records applied", "records", done.records, "unchanged", done.unchanged)
	httpapi.WriteValue(w, 200, map[string]int{"applied": done.records, "unchanged": done.unchanged})
	return nil
}

func (a *api) getStatus(w http.ResponseWriter, _ httpapi.Request) error {
	stats := a.store.db.Stats()
	s := operator.Status{
		Version:   buildVersion(),
		PID:       os.Getpid(),
		StartedAt: a.started.Format(time.RFC3339),
		BaseURL:   a.baseURL,
		Data:      a.store.db.Path(),
		Bytes:     stats.Bytes,
		Users:     stats.Rows["user"],
		Keys:      stats.Rows["key"],
		Events:    stats.Rows["event"],
		Guests:    stats.Rows["guest"],
	}
	err := cmp.Or(a.store.Err(), stats.LastErr)
	if err != nil {
		s.Error = new(err.Error())
	}
	httpapi.WriteValue(w, 200, s)
	return nil
}

// logChange logs an operator change.
func (a *api) logChange(message string, args ...any) {
	a.store.cfg.Logger.Log(context.Background(), a.changeLevel, message, args...)
}

// toOperatorError is like toError, but a 404 names a subcommand that helps, and a 500 includes the cause.
func (a *api) toOperatorError(err error) *httpapi.Error {
	if errors.Is(err, ErrNotFound) {
		return httpapi.NotFound(err.Error() + "; eventsd dump shows all users and keys")
	}
	e := toError(err)
	if e == nil {
		a.store.cfg.Logger.Error("operator request failed", "error", err)
	}
	if e == nil || e.Status == 500 {
		cause, _, _ := strings.Cut(err.Error(), "\n") // without the stack of a panic
		e = httpapi.NewError(500, cause)
	}
	return e
}

// withPages returns a handler that serves some paths without a key, and all others with h.
func withPages(h http.Handler, pages map[string]http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := pages[r.URL.Path]
		if page == nil {
			h.ServeHTTP(w, r)
			return
		}
		setAPIHeaders(w, r)
		if r.Method != "GET" && r.Method != "HEAD" {
			httpapi.NewError(405, "this method is not allowed on "+r.URL.Path+"; use GET or HEAD",
				"Allow", "GET, HEAD").Write(w)
			return
		}
		page.ServeHTTP(w, r)
	})
}

// jsonPage returns a handler that responds with a JSON text.
func jsonPage(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { httpapi.WriteJSON(w, 200, text) })
}

const healthy = `{"status":"ok"}`

func (a *api) serveHealth(w http.ResponseWriter, _ *http.Request) {
	if a.store.Err() != nil {
		httpapi.NewError(503, "the data file cannot be written; the log says why").Write(w)
		return
	}
	httpapi.WriteJSON(w, 200, healthy)
}
