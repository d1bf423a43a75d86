package events

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"example.com/events/internal/answer"
	"example.com/events/internal/httpapi"
	"example.com/events/internal/jsondb"
	"example.com/events/internal/schema"
	"example.com/events/internal/strict"
)

// adapter lets main.go and the packages operator and double, which are not rebuilt yet, use the api.
type adapter struct {
	*Store
	api *api
}

func newAdapter(store *Store) *adapter { return &adapter{store, newAPI(store)} }

func (a *adapter) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.api.ServeHTTP(w, r) }

func (a *adapter) Operations() []string { return a.api.mux.Operations() }

func (a *adapter) Intercept(f answer.Intercept) {
	a.api.Intercept(func(w http.ResponseWriter, r httpapi.Request, next http.HandlerFunc) {
		f(r.Operation, r.Caller.UserID, w, r.Request, next)
	})
}

func (a *adapter) toError(err error) *httpapi.Error {
	old, ok := errors.AsType[*answer.Error](err)
	if ok {
		return &httpapi.Error{Status: old.Status, Message: old.Message, Header: old.Header}
	}
	e, ok := errors.AsType[*httpapi.Error](err)
	if ok {
		return e
	}
	return toError(err)
}

func (a *adapter) writeError(w http.ResponseWriter, r *http.Request, err error) {
	e := a.toError(err)
	if e == nil {
		a.cfg.Logger.Error("request failed", "route", r.Pattern, "error", err)
		e = httpapi.NewError(500, "something went wrong on our side")
	}
	e.Write(w)
}

func (a *adapter) writeCause(w http.ResponseWriter, r *http.Request, err error) {
	e := a.toError(err)
	if e == nil || e.Status == 500 {
		e = toOperatorError(err)
	}
	e.Write(w)
}

func (a *adapter) Profile(user string) (raw string) {
	a.db.View(func(tx *jsondb.Tx) {
		u := cmp.Or(tx.Get("usr", user), tx.Find(emailKey(user)))
		if u != nil {
			raw = u.JSON
		}
	})
	return raw
}

func (a *adapter) RequestUser(r *http.Request) string {
	caller, _ := a.authenticate(r)
	return caller.UserID
}

func (a *adapter) IssueKeyJSON(request []byte) (map[string]string, error) {
	var r keyRequest
	problems := keyRequestSchema.Unmarshal(request, &r, schema.New)
	if problems != nil {
		return nil, keyError(problems...)
	}
	secret, key, err := a.issueKey(r, "")
	if err != nil {
		return nil, err
	}
	return map[string]string{"id": key.ID, "key": secret, "user": key.UserID}, nil
}

func (a *adapter) Keys() ([]byte, error) { return strict.Encode(a.listKeys()), nil }

func (a *adapter) ApplyRecords(
	records []byte,
) (count map[string]int, ids map[string][]string, err error) {
	done, err := a.apply(strings.NewReader(string(records)))
	if err != nil {
		return nil, nil, err
	}
	count = map[string]int{"applied": done.records, "unchanged": done.unchanged}
	ids = map[string][]string{}
	for kind := range done.ids {
		count[kind] = len(done.ids[kind])
		ids[kind] = []string{joinFirst(done.ids[kind])}
	}
	return count, ids, nil
}

func (a *adapter) WriteRecords(w io.Writer) error {
	rows, _ := a.rows("")
	return writeRecords(w, rows)
}

func (a *adapter) UserRecords(userID string) (write func(io.Writer) error, err error) {
	rows, err := a.rows(userID)
	return func(w io.Writer) error { return writeRecords(w, rows) }, err
}

func (a *adapter) Replace(records []byte, then func()) error {
	return a.db.Update(func(tx *jsondb.Tx) error {
		for user := range tx.Children("", "usr") {
			tx.Delete(user.ID)
		}
		_, err := a.applyIn(tx, strict.ParseArray(records))
		if err == nil {
			then()
		}
		return err
	})
}

func (a *adapter) applyArray(_ context.Context, records []byte) (applied, error) {
	return a.apply(strings.NewReader(string(records)))
}

func (a *adapter) trouble() error {
	return cmp.Or(a.Err(), a.db.Stats().LastErr, a.api.health())
}

func (a *adapter) writeHealth(w http.ResponseWriter, r *http.Request) {
	err := a.api.health()
	if err != nil {
		a.writeError(w, r, err)
		return
	}
	httpapi.WriteJSON(w, 200, `{"status":"ok"}`)
}
