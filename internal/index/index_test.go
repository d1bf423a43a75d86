package index

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// model is an index as it is meant, without any of its speed.
type model map[string]Row

func (m model) put(r Row) {
	if old, ok := m[r.ID]; ok {
		r.Created, r.Parent = old.Created, old.Parent
	}
	m[r.ID] = r
}

func (m model) remove(id string) {
	delete(m, id)
	for kid, r := range m {
		if r.Parent == id {
			m.remove(kid)
		}
	}
}

func (m model) page(parent, kind, state string) string {
	var rows []Row
	for _, r := range m {
		if r.Parent == parent && r.Kind() == kind && (state == "" || r.State == state) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b Row) int { return -cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	var raws []string
	for _, r := range rows {
		raws = append(raws, r.Raw)
	}
	return strings.Join(raws, " ")
}

// pages is a list of the index, page by page.
func pages(x *Index, parent, kind, state string, limit int) string {
	var all []string
	for after := (*Place)(nil); ; {
		raws, next := x.Page(parent, kind, state, after, limit, nil)
		all = append(all, raws...)
		if next == nil {
			return strings.Join(all, " ")
		}
		after = next
	}
}

// TestModel makes random changes, staged in one, two or many steps at a time and
// some of them thrown away, and compares the index with the model.
func TestModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		x, m := New(), model{}
		number := 0
		for round := range 60 {
			tx := x.Begin()
			staged := model{}
			maps.Copy(staged, m)
			for range 1 + rnd.IntN(3) {
				before := len(tx.Steps)
				tried := model{}
				maps.Copy(tried, staged)
				steps := 1 + rnd.IntN(8)
				if round%20 == 19 {
					steps = 400 // in bulk
				}
				for range steps {
					number++
					r := Row{Created: time.Unix(int64(rnd.IntN(50)), 0), Raw: fmt.Sprint(number), State: []string{"", "a", "b"}[rnd.IntN(3)]}
					switch rnd.IntN(10) {
					case 0:
						r.ID = fmt.Sprintf("usr_%d", rnd.IntN(5))
					case 1:
						id := fmt.Sprintf("%s_%d", []string{"usr", "evt", "gst"}[rnd.IntN(3)], rnd.IntN(30))
						tx.Remove(id)
						tried.remove(id)
						continue
					case 2, 3, 4:
						r.ID, r.Parent = fmt.Sprintf("gst_%d", rnd.IntN(60)), fmt.Sprintf("evt_%d", rnd.IntN(30))
					default:
						r.ID, r.Parent = fmt.Sprintf("evt_%d", rnd.IntN(30)), fmt.Sprintf("usr_%d", rnd.IntN(5))
					}
					r.Alias = "alias-" + r.ID + fmt.Sprint(rnd.IntN(2))
					old := tx.Find(r.ID)
					if old != nil {
						r.Parent, r.Created = old.Parent, old.Created
					} else if r.Parent != "" && tx.Find(r.Parent) == nil {
						continue
					}
					tx.Put(&r, old)
					tried.put(r)
				}
				if rnd.IntN(4) > 0 {
					staged = tried
				} else { // it is refused, and leaves nothing
					tx.Back(before)
				}
			}
			if rnd.IntN(5) == 0 { // the write failed
				continue
			}
			x.Do(tx.Steps)
			m = staged
			check(t, x, m, rnd)
			if t.Failed() {
				t.Fatalf("seed %d, round %d", seed, round)
			}
		}
	}
}

func check(t *testing.T, x *Index, m model, rnd *rand.Rand) {
	t.Helper()
	for id, want := range m {
		for _, name := range []string{id, want.Alias} {
			if got := x.Find(name); got == nil || got.ID != id || got.Raw != want.Raw || got.State != want.State || got.Parent != want.Parent {
				t.Errorf("Find(%s) = %v, want %v", name, got, want)
			}
		}
		for _, kind := range []string{"evt", "gst"} {
			for _, state := range []string{"", "a", "b"} {
				limit := 1 + rnd.IntN(4)
				if got, want := pages(x, id, kind, state, limit), m.page(id, kind, state); got != want {
					t.Errorf("pages of %s %s %q = %s, want %s", id, kind, state, got, want)
				}
			}
		}
	}
	seen := map[string]bool{}
	for r := range x.All() {
		if _, known := m[r.ID]; !known || seen[r.ID] || r.Parent != "" && !seen[r.Parent] {
			t.Errorf("All yields %s, which is unknown, or comes twice or before its parent", r.ID)
		}
		seen[r.ID] = true
	}
	names := len(m) * 2
	if len(seen) != len(m) || len(x.rows) != names {
		t.Errorf("All yields %d rows of %d, under %d names of %d", len(seen), len(m), len(x.rows), names)
	}
}

// TestForgetAfterSort: a start reads rows in the order of their parents.
func TestForgetAfterSort(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	x := New()
	x.Put(&Row{ID: "usr_1"}, true)
	for i, hour := range []time.Duration{3, 1, 2} {
		x.Put(&Row{ID: fmt.Sprint("evt_", i), Parent: "usr_1", Origin: &Origin{Name: fmt.Sprint("idem:", i), At: at.Add(hour * time.Hour)}}, true)
	}
	x.Sort()
	x.Forget(at.Add(150 * time.Minute))
	if x.Find("idem:0") == nil || x.Find("idem:1") != nil || x.Find("idem:2") != nil {
		t.Errorf("Forget left %v, want the newest origin alone", x.rows)
	}
}

func TestOrigins(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	x := New()
	tx := x.Begin()
	tx.Put(&Row{ID: "usr_1"}, nil)
	for i := range 3 {
		name := fmt.Sprint("idem:", i)
		tx.Put(&Row{ID: fmt.Sprint("evt_", i), Parent: "usr_1", Origin: &Origin{Name: name, At: at.Add(time.Duration(i) * time.Hour)}}, nil)
	}
	x.Do(tx.Steps)
	x.Remove("evt_1", false)
	if r := x.Find("idem:1"); r == nil || r.ID != "evt_1" || x.Find("evt_1") != nil {
		t.Errorf("the origin of a removed row finds %v, want the row's id", r)
	}
	x.Forget(at.Add(time.Minute))
	if x.Find("idem:0") != nil || x.Find("idem:1") == nil || x.Find("evt_0").Origin != nil {
		t.Errorf("Forget let go of the wrong origins: %v", x.rows)
	}
	x.Remove("usr_1", false)
	if len(x.rows) != 0 || len(x.origins) != 0 || !x.Empty() {
		t.Errorf("with the user gone there are %v and %v left", x.rows, x.origins)
	}
}
