package events_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"example.com/events"
)

// TestPutModel makes random calls of Put and ApplyJSON and compares the store with a model, which keeps the
// fields of each record in a map.
func TestPutModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		p := &putTest{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), now: july(20), model: putModel{}}
		p.store = events.NewStore(&events.Config{Now: func() time.Time { return p.now }})
		for range 40 {
			p.now = p.now.Add(time.Duration(p.rnd.IntN(5)-1) * time.Hour)
			p.call()
			if t.Failed() {
				t.Fatalf("seed %d: got the errors above, want none", seed)
			}
		}
	}
}

type putTest struct {
	t     *testing.T
	rnd   *rand.Rand
	now   time.Time
	store *events.Store
	model putModel
}

type fields = map[string]any

// putModel has the fields of each record by its ID.
type putModel map[string]fields

// putKinds are the kinds of the model's records by the beginning of their IDs.
var putKinds = map[string]string{"usr": "user", "evt": "event", "gst": "guest"}

// newFields has the fields of new records with an ID that ends in 1. Others end in 2.
var newFields = map[string]string{
	"usr": `{"id":"usr_1","name":"U","email":"u1@example.com","avatar_url":"https://example.com/a",
		"timezone":"UTC"}`,
	"evt": `{"id":"evt_1","host_id":"usr_1","slug":"s1","status":"draft","title":"T","description":"D",
		"start_at":"2027-08-01T00:00:00Z","end_at":"2027-08-02T00:00:00Z","timezone":"UTC",
		"location_type":"virtual","location_city":"L","location_country":null,"visibility":"public",
		"requires_approval":true,"cover_image_url":null,"meeting_url":null}`,
	"gst": `{"id":"gst_1","event_id":"evt_1","email":"g1@example.com","name":"G","status":"approved",
		"registered_at":null,"checked_in_at":"2027-07-05T00:00:00Z"}`,
}

// changes are values of fields that Put may change.
var putChanges = map[string][]fields{
	"usr": {{"name": "V"}, {"avatar_url": "https://example.com/b"}, {"avatar_url": nil}, {"timezone": nil}},
	"evt": {
		{"title": "A"}, {"title": "B"}, {"status": "published"}, {"description": nil}, {"description": "E"},
		{"requires_approval": false}, {"requires_approval": true}, {"location_city": nil},
		{"updated_at": nil}, {"updated_at": "2027-07-19T00:00:00Z"}, {"updated_at": "2027-07-22T00:00:00Z"},
	},
	"gst": {
		{"name": nil}, {"name": "H"}, {"email": nil}, {"status": "invited"}, {"status": "declined"},
		{"registered_at": nil}, {"registered_at": "2027-07-03T00:00:00Z"}, {"checked_in_at": nil},
	},
}

// call makes one call with up to four records.
func (p *putTest) call() {
	tried := putModel{}
	for id, f := range p.model {
		tried[id] = maps.Clone(f)
	}
	viaPut := p.rnd.IntN(3) > 0
	var ids, array []string
	var records []events.Record
	valid := true
	for range 1 + p.rnd.IntN(4) {
		prefix := []string{"usr", "evt", "evt", "gst", "gst"}[p.rnd.IntN(5)]
		id := fmt.Sprint(prefix, "_", 1+p.rnd.IntN(2))
		var f fields
		if p.rnd.IntN(10) == 0 {
			array = append(array, fmt.Sprintf(`{"delete":{%q:%q}}`, putKinds[prefix], id))
			tried.delete(id)
			id = ""
		} else {
			f = p.change(tried, id)
			array = append(array, fmt.Sprintf(`{%q:%s}`, putKinds[prefix], asJSON(f)))
		}
		ids = append(ids, id)
		var r events.Record
		err := json.Unmarshal([]byte(array[len(array)-1]), &r)
		if err != nil {
			p.t.Fatal(err)
		}
		records = append(records, r)
		if id == "" {
			continue
		}
		if viaPut {
			f = givenFields(r)
		}
		valid = tried.merge(id, f, p.now)
		if !valid {
			break
		}
	}
	what := fmt.Sprintf("Put(%s)", asJSON(records))
	var stored []events.Record
	var err error
	if viaPut {
		stored, err = p.store.Put(records...)
	} else {
		text := fmt.Sprintf("[%s]", strings.Join(array, ","))
		what = fmt.Sprintf("ApplyJSON(%s)", text)
		err = p.store.ApplyJSON([]byte(text))
	}
	if (err == nil) != valid {
		p.t.Errorf("%s: got %v, want success: %t", what, err, valid)
		return
	}
	if valid {
		p.model = tried
	}
	for i, r := range stored {
		want := asJSON(p.model[ids[i]])
		if p.model[ids[i]] == nil {
			want = asJSON(recordFields(records[i]))
		}
		if got := asJSON(recordFields(r)); got != want {
			p.t.Errorf("%s: record %d: got %s, want %s", what, i+1, got, want)
		}
	}
	got := putModel{}
	for r := range p.store.Records() {
		got[recordID(r)] = recordFields(r)
	}
	if got, want := asJSON(got), asJSON(p.model); got != want {
		p.t.Errorf("after %s: got\n%s\nwant\n%s", what, got, want)
	}
}

// change returns the fields of a record that changes the one with an ID, or adds it.
func (p *putTest) change(m putModel, id string) fields {
	prefix, number, _ := strings.Cut(id, "_")
	old := m[id]
	f := fields{"id": id}
	switch {
	case old == nil:
		f = newRecord(prefix, number)
		if p.rnd.IntN(2) == 0 {
			f["created_at"] = "2027-07-10T00:00:00Z"
		}
	case p.rnd.IntN(2) == 0: // as from Get
		f = maps.Clone(old)
	}
	for range p.rnd.IntN(3) {
		maps.Copy(f, putChanges[prefix][p.rnd.IntN(len(putChanges[prefix]))])
	}
	if old == nil {
		return f
	}
	switch p.rnd.IntN(6) {
	case 0, 1:
		delete(f, "created_at")
	case 2, 3: // from a program that knows when it created the record
		f["created_at"] = old["created_at"]
	case 4:
		f["created_at"] = "2027-01-01T00:00:00Z"
	}
	if p.rnd.IntN(3) == 0 && old["email"] != nil {
		delete(f, "id")
		f["email"] = old["email"]
		if prefix == "gst" {
			f["event_id"] = old["event_id"]
		}
	}
	return f
}

func newRecord(prefix, number string) fields {
	var f fields
	text := strings.NewReplacer(`_1"`, "_"+number+`"`, "1@", number+"@", `"s1"`, `"s`+number+`"`).
		Replace(newFields[prefix])
	err := json.Unmarshal([]byte(text), &f)
	if err != nil {
		panic(err)
	}
	return f
}

// recordFields returns the fields of a record's struct.
func recordFields(r events.Record) fields {
	var kinds map[string]fields
	err := json.Unmarshal([]byte(asJSON(r)), &kinds)
	if err != nil {
		panic(err)
	}
	for _, f := range kinds {
		return f
	}
	return nil
}

// givenFields returns the fields that Put changes: without created_at, those that aren't zero.
func givenFields(r events.Record) fields {
	f := recordFields(r)
	zeroTime := asJSON(time.Time{})
	whole := asJSON(f["created_at"]) != zeroTime
	maps.DeleteFunc(f, func(_ string, value any) bool {
		return value == "" || asJSON(value) == zeroTime || !whole && (value == nil || value == false)
	})
	return f
}

// merge changes or adds a record. It reports whether the change is valid.
func (m putModel) merge(id string, f fields, now time.Time) bool {
	old := m[id]
	merged := maps.Clone(old)
	if old == nil {
		prefix, number, _ := strings.Cut(id, "_")
		merged = newRecord(prefix, number)
		for field, value := range merged { // what the record doesn't have
			merged[field] = nil
			if value == true {
				merged[field] = false
			}
		}
		merged["created_at"] = now.Format(time.RFC3339)
	}
	maps.Copy(merged, f)
	for _, field := range []string{"host_id", "event_id"} {
		if merged[field] != nil && m[merged[field].(string)] == nil {
			return false
		}
	}
	if old != nil && merged["created_at"] != old["created_at"] {
		return false
	}
	switch id[:3] {
	case "gst":
		invited := merged["status"] == "invited"
		switch {
		case merged["name"] == nil && merged["email"] == nil, invited && f["registered_at"] != nil:
			return false
		case invited:
			merged["registered_at"] = nil
		case merged["registered_at"] == nil:
			merged["registered_at"] = merged["created_at"]
		}
	case "evt":
		given, _ := f["updated_at"].(string)
		stored, _ := old["updated_at"].(string)
		merged["updated_at"] = old["updated_at"]
		changed := asJSON(merged) != asJSON(old)
		switch {
		case given > stored:
			merged["updated_at"] = given
		case old == nil:
			merged["updated_at"] = merged["created_at"]
		case changed:
			merged["updated_at"] = max(now.Format(time.RFC3339), stored)
		}
	}
	m[id] = merged
	return true
}

// delete deletes a record and everything below it.
func (m putModel) delete(id string) {
	delete(m, id)
	for child, f := range m {
		if f["host_id"] == id || f["event_id"] == id {
			m.delete(child)
		}
	}
}
