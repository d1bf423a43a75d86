package jsondb

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// benchEvent returns the text of an event of about 600 bytes.
func benchEvent(n int64) []byte {
	created := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Microsecond)
	const form = `{"id":"evt_%026d","parent":"usr_1","name":"engines-%08d","created_at":%q,"text":%q}`
	return fmt.Appendf(nil, form, n, n, created.Format(time.RFC3339Nano), strings.Repeat("x", 450))
}

// BenchmarkCreate creates rows from 64 goroutines.
func BenchmarkCreate(b *testing.B) {
	db, err := Open(filepath.Join(b.TempDir(), "events.json"), testOptions())
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	err = db.Update(put(row{id: "usr_1"}))
	if err != nil {
		b.Fatal(err)
	}
	var n atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(64 / runtime.GOMAXPROCS(0))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			err := db.Batch(func(tx *Tx) error {
				tx.Put(benchEvent(n.Add(1)))
				return nil
			})
			if err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkOpen opens a file of 100,000 rows.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "events.json")
	db, err := Open(path, testOptions())
	if err != nil {
		b.Fatal(err)
	}
	err = db.Update(func(tx *Tx) error {
		tx.Put([]byte(row{id: "usr_1"}.json()))
		for n := range int64(100_000) {
			tx.Put(benchEvent(n))
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(db.Stats().Bytes)
	db.Close()
	for b.Loop() {
		db, err = Open(path, testOptions())
		if err != nil {
			b.Fatal(err)
		}
		db.Close()
	}
}

func BenchmarkFind(b *testing.B) {
	db := New(testOptions())
	err := db.Update(put(row{id: "usr_1", name: "Ada"}))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		var json string
		db.View(func(tx *Tx) { json = tx.Find("Ada").JSON })
		if json == "" {
			b.Fatal("not found")
		}
	}
}
