package rows

import "time"

// IdempotencyKey is the key of the request that created a row. It is valid for
// [KeyLifetime] while the row exists. After that it is dropped.
type IdempotencyKey struct {
	Key  string    `json:"key"`
	Body string    `json:"body"` // SHA-256 of the request's body, hexadecimal
	At   time.Time `json:"at"`

	bytes int // that it takes in the file
}

const (
	// KeyLifetime is how long an idempotency key is valid.
	KeyLifetime = 24 * time.Hour

	// sweepEvery is how often all keys are looked at, to drop those that have expired.
	sweepEvery = time.Hour
)

// isValid reports whether there is a key and it has not expired. The time of a key lies ahead
// if the clock went back since then: expireKeys moves that time.
func (db *DB) isValid(k *IdempotencyKey) bool {
	return k != nil && db.Now().Sub(k.At).Abs() < KeyLifetime
}

// keyName is the name by which the row that was created with an idempotency key is found.
func keyName(parent, key string) string { return parent + ":" + key }

// forgetKey makes the idempotency key of a row lead to it no more. Once a key has expired,
// another row may have been created with the same.
func (db *DB) forgetKey(r *Row) {
	name := keyName(r.Parent, r.Idempotency.Key)
	if db.idempotent[name] == r {
		delete(db.idempotent, name)
	}
}

// expireKeys drops the idempotency keys that have expired. A commit calls it, and it looks at
// all keys once an hour, and when the clock went back. A key whose time then lies ahead counts
// as made now: else it would be valid until the clock has come to that time, and a day more.
// Readers are kept waiting for one row at a time.
func (db *DB) expireKeys() {
	now := db.Now()
	age := now.Sub(db.swept)
	if 0 <= age && age < sweepEvery {
		return
	}
	db.swept = now
	for name, r := range db.idempotent {
		switch {
		case !db.isValid(r.Idempotency):
			delete(db.idempotent, name)
			db.mu.Lock()
			db.live -= int64(r.Idempotency.bytes)
			r.Idempotency = nil
			db.mu.Unlock()
		case r.Idempotency.At.After(now):
			r.Idempotency.At = now
		}
	}
}
