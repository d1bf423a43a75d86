package events

import (
	"fmt"
	"net/http"
	"strings"

	"example.com/events/internal/httpapi"
	"example.com/events/internal/jsondb"
	"example.com/events/internal/schema"
	"example.com/events/internal/strict"
)

const keyPrefix = httpapi.KeyPrefix

// authenticate identifies the caller of a request. For a revoked key, it returns the caller and an error.
func (s *Store) authenticate(r *http.Request) (httpapi.Caller, error) {
	secret, problem := credential(r.Header)
	if problem != "" {
		return httpapi.Caller{}, unauthorized(problem +
			"; send it as x-service-api-key: <API_KEY> or Authorization: Bearer <API_KEY>")
	}
	userID, keyID, valid := s.lookupKey(secret)
	caller := httpapi.Caller{UserID: userID, KeyID: keyID}
	if !valid {
		return caller, unauthorized("invalid API key: unknown or revoked; ask the operator for a new one")
	}
	return caller, nil
}

// credential returns the API key of a request, or a problem. If the header x-service-api-key is present, it
// alone counts, even if it is wrong. Otherwise, Authorization counts.
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
		return "", "invalid API key: it is empty (is an environment variable unset?)"
	}
	return secret, ""
}

// lookupKey finds a key by its secret. For an unknown secret, it returns empty IDs. For a revoked key, it
// returns the IDs, and valid is false.
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

// unauthorized creates a 401 with the header WWW-Authenticate (RFC 9110, section 11.6.1).
func unauthorized(message string) *httpapi.Error {
	return httpapi.NewError(401, message, "WWW-Authenticate", `Bearer realm="events"`)
}

// IssueKey creates an API key for a user. Only this call returns the secret; the store keeps its digest. For
// an unknown user, the error wraps [ErrNotFound].
func (s *Store) IssueKey(userID string) (secret string, key Key, err error) {
	if userID == "" {
		return "", Key{}, notFound("user", userID)
	}
	return s.issueKey(keyRequest{UserID: userID}, "")
}

// keyRequest asks for a key for a user with an ID or an email. If no user has the email, a user is created
// with the name.
type keyRequest struct {
	UserID string `json:"user_id"`
	Name   string `json:"name"`
	Email  string `json:"email"`
}

var keyRequestSchema = schema.For(keyRequest{}, nil)

// issueKey creates a key with a chosen secret, or with a random one if chosen is empty.
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
		return "", keyError("user_id can't be combined with name or email")
	case r.UserID != "" && tx.Get("usr", r.UserID) == nil:
		return "", notFound("user", r.UserID)
	case r.UserID != "":
		return r.UserID, nil
	case !named:
		return "", keyError("user_id or email is required; a new user also needs a name")
	case user != nil && r.Name != "" && r.Name != user.Value("name"):
		return "", keyError(fmt.Sprintf("%s has this email but a different name: leave out the name, or "+
			"change the user's name with apply", user.ID))
	case user != nil:
		return user.ID, nil
	case r.Name == "":
		problem := "no user has the email " + r.Email + ": check it, or add -name to create a user"
		return "", &RecordError{Problems: []string{problem}}
	}
	id, problems := s.applyUser(tx, userSchema.Value(&User{Name: r.Name, Email: r.Email}))
	if problems != nil {
		return "", &RecordError{Kind: "user", Problems: problems}
	}
	return id, nil
}

func keyError(problems ...string) error { return &RecordError{Kind: "key", Problems: problems} }

// newSecret returns an unused secret.
func (s *Store) newSecret(tx *jsondb.Tx, owner string) string {
	for {
		secret := keyPrefix + s.newID("secret", owner)
		if tx.Find(digestKey(digest([]byte(secret)))) == nil {
			return secret
		}
	}
}

// createFirstKey creates the first key of a store, if create is true or a secret was chosen. It returns only
// generated secrets. The key belongs to the oldest user, or to a new one in an empty store.
func (s *Store) createFirstKey(chosen string, create bool) (secret string, err error) {
	if s.db.Stats().Rows["key"] > 0 || chosen == "" && !create {
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

// hasValidKey reports whether the store has a key that isn't revoked.
func (s *Store) hasValidKey() (valid bool) {
	s.db.View(func(tx *jsondb.Tx) {
		for r := range tx.All() { // a user's keys come before its events
			valid = r.Table.Prefix == "key" && r.Status != revoked
			if valid {
				return
			}
		}
	})
	return valid
}

// RevokeKey revokes an API key. Revoking it again does nothing. For an unknown key, the error wraps
// [ErrNotFound].
func (s *Store) RevokeKey(keyID string) error {
	_, _, err := s.revokeKey(keyID)
	return err
}

// revokeKey returns the key and reports whether it was changed.
func (s *Store) revokeKey(keyID string) (key Key, changed bool, err error) {
	err = s.db.Batch(func(tx *jsondb.Tx) error {
		row := tx.Get("key", keyID)
		if row == nil {
			return notFound("key", keyID)
		}
		decode(row, &key)
		if key.RevokedAt == nil {
			key.RevokedAt = new(s.now())
			tx.Put(strict.Encode(&key))
			changed = true
		}
		return nil
	})
	return key, changed, err
}

// listedKey is a key with its user's name and email, but without its digest.
type listedKey struct {
	Key
	Name   string    `json:"name"`
	Email  string    `json:"email"`
	Digest *struct{} `json:"digest,omitempty"` // hides Key.Digest
}

// listKeys returns all keys, grouped by user.
func (s *Store) listKeys() []listedKey {
	keys := []listedKey{}
	s.db.View(func(tx *jsondb.Tx) {
		for user := range tx.Children("", "usr") {
			for row := range tx.Children(user.ID, "key") {
				key := listedKey{Name: user.Value("name"), Email: user.Value("email")}
				decode(row, &key.Key)
				keys = append(keys, key)
			}
		}
	})
	return keys
}
