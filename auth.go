package events

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"example.com/events/internal/httpapi"
	"example.com/events/internal/jsondb"
	"example.com/events/internal/schema"
	"example.com/events/internal/strict"
)

// authenticate returns the caller of a request. If its key was revoked, it returns the caller with the error.
func (s *Store) authenticate(r *http.Request) (httpapi.Caller, error) {
	secret, problem := credential(r.Header)
	if problem != "" {
		return httpapi.Caller{}, unauthorized(problem)
	}
	userID, keyID, valid := s.lookupKey(secret)
	caller := httpapi.Caller{UserID: userID, KeyID: keyID}
	if !valid {
		return caller, unauthorized("invalid API key: no such key, or it was revoked")
	}
	return caller, nil
}

// credential returns the API key of a request, or the problem with its header. The header
// x-service-api-key decides if it is present, even if it is wrong; otherwise Authorization does.
func credential(h http.Header) (secret, problem string) {
	values := h["X-Service-Api-Key"]
	bearer := len(values) == 0
	if bearer {
		values = h["Authorization"]
	}
	if len(values) == 0 {
		return "", "missing API key"
	}
	if len(values) > 1 {
		return "", "invalid API key: the header was sent more than once"
	}
	secret = values[0]
	if bearer && secret != "" {
		scheme, token, _ := strings.Cut(secret, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return "", "invalid API key: Authorization is not of the form Bearer <API_KEY>"
		}
		secret = strings.TrimLeft(token, " ")
	}
	if secret == "" {
		return "", "invalid API key: it is empty; a variable may be unset"
	}
	return secret, ""
}

// lookupKey returns the IDs of the key with a secret and of its user, and whether the key is valid. It also
// returns the IDs of a revoked key. They are empty if there is no such key.
func (s *Store) lookupKey(secret string) (userID, keyID string, valid bool) {
	key := digestKey(digest([]byte(secret)))
	s.db.View(func(tx *jsondb.Tx) {
		row := tx.Find(key)
		if row != nil {
			userID, keyID = row.Parent, row.ID
			valid = row.Status != revoked
		}
	})
	return userID, keyID, valid
}

func unauthorized(problem string) *httpapi.Error {
	return httpapi.Unauthorized("events", problem+
		"; send it as x-service-api-key: <API_KEY> or Authorization: Bearer <API_KEY>")
}

// IssueKey creates an API key for a user. The secret is returned only here and stored nowhere. The error
// wraps [ErrNotFound] if there is no such user.
func (s *Store) IssueKey(userID string) (secret string, key Key, err error) {
	if userID == "" {
		return "", Key{}, notFound("user", userID)
	}
	return s.issueKey(keyRequest{UserID: userID}, "")
}

// keyRequest asks for a key of the user with an ID, or of the user with an email. If there is no user with
// the email, one is created with the name.
type keyRequest struct {
	UserID string `json:"user_id"`
	Name   string `json:"name"`
	Email  string `json:"email"`
}

var keyRequestSchema = schema.Of(keyRequest{}, nil)

// issueKey creates a key with the chosen secret or, if that is empty, with a random one.
func (s *Store) issueKey(r keyRequest, chosen string) (secret string, key Key, err error) {
	err = s.db.Batch(func(tx *jsondb.Tx) error {
		userID, err := s.findOrCreateUser(tx, r)
		if err != nil {
			return err
		}
		secret = chosen
		if secret == "" {
			secret = s.newSecret(tx, userID)
		}
		id, problems := s.applyKey(tx, keySchema.Value(&Key{UserID: userID, Secret: secret}))
		if problems != nil {
			return &RecordError{Kind: "key", Problems: problems}
		}
		decode(tx.Get("key", id), &key)
		return nil
	})
	return secret, key, err
}

func (s *Store) findOrCreateUser(tx *jsondb.Tx, r keyRequest) (id string, err error) {
	named := r.Name != "" || r.Email != ""
	user := tx.Find(emailKey(r.Email))
	switch {
	case r.UserID != "" && named:
		return "", keyError("user_id excludes name and email: give one or the other")
	case r.UserID != "" && tx.Get("usr", r.UserID) == nil:
		return "", notFound("user", r.UserID)
	case r.UserID != "":
		return r.UserID, nil
	case !named:
		return "", keyError("user_id is required, or email and, for a new user, name")
	case user != nil && r.Name != "" && r.Name != user.Value("name"):
		return "", keyError(fmt.Sprintf("name is not the name of %s, who has this email: leave it out, or "+
			"change the name with apply", user.ID))
	case user != nil:
		return user.ID, nil
	}
	id, problems := s.applyUser(tx, userSchema.Value(&User{Name: r.Name, Email: r.Email}))
	if problems != nil {
		if r.Email != "" {
			problems = append(problems, "no user has this email yet")
		}
		return "", &RecordError{Kind: "user", Problems: problems}
	}
	return id, nil
}

func keyError(problems ...string) error { return &RecordError{Kind: "key", Problems: problems} }

// newSecret returns a secret that no key has.
func (s *Store) newSecret(tx *jsondb.Tx, owner string) string {
	for {
		secret := httpapi.KeyPrefix + s.cfg.NewID("secret", owner)
		if tx.Find(digestKey(digest([]byte(secret)))) == nil {
			return secret
		}
	}
}

// firstKey creates the first key of a store that has none, if create is true or a secret is chosen, and
// returns its secret unless it was chosen. The key belongs to the oldest user or, if there is none, to a new
// one. If the store has keys, firstKey changes nothing.
func (s *Store) firstKey(chosen string, create bool) (secret string, err error) {
	stats := s.db.Stats()
	if stats.Rows["key"] > 0 || chosen == "" && !create {
		return "", nil
	}
	r := keyRequest{Name: "Local Owner", Email: "owner@localhost.example"}
	s.db.View(func(tx *jsondb.Tx) {
		for user := range tx.Children("", "usr") { // the oldest comes first
			r = keyRequest{UserID: user.ID}
			return
		}
	})
	secret, _, err = s.issueKey(r, chosen)
	if chosen != "" {
		return "", err
	}
	return secret, err
}

// RevokeKey revokes an API key. If it was revoked before, nothing changes. The error wraps [ErrNotFound] if
// there is no such key.
func (s *Store) RevokeKey(keyID string) error {
	_, err := s.revokeKey(keyID)
	return err
}

// revokeKey also reports whether it has changed the key.
func (s *Store) revokeKey(keyID string) (changed bool, err error) {
	err = s.db.Batch(func(tx *jsondb.Tx) error {
		var k Key
		row := tx.Get("key", keyID)
		if row == nil {
			return notFound("key", keyID)
		}
		decode(row, &k)
		if k.RevokedAt == nil {
			k.RevokedAt = new(s.now())
			tx.Put(strict.Encode(&k))
			changed = true
		}
		return nil
	})
	return changed, err
}

// listedKey is a key with the name and email of its user.
type listedKey struct {
	ID        string     `json:"id"`
	UserID    string     `json:"user_id"`
	Hint      *string    `json:"hint"`
	CreatedAt time.Time  `json:"created_at"`
	RevokedAt *time.Time `json:"revoked_at"`
	Name      string     `json:"name"`
	Email     string     `json:"email"`
}

// listKeys returns all keys, by user.
func (s *Store) listKeys() []listedKey {
	keys := []listedKey{}
	s.db.View(func(tx *jsondb.Tx) {
		for user := range tx.Children("", "usr") {
			for row := range tx.Children(user.ID, "key") {
				key := listedKey{Name: user.Value("name"), Email: user.Value("email")}
				decode(row, &key)
				keys = append(keys, key)
			}
		}
	})
	return keys
}
