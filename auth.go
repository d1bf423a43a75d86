package events

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"

	"example.com/events/internal/answer"
	"example.com/events/internal/form"
	"example.com/events/internal/rows"
	"example.com/events/internal/strict"
)

const maxSecret = 255 // bytes of an API key

var secretRule = form.Match(answer.KeyPrefix+`[A-Za-z0-9._~-]{1,246}`,
	"must be "+answer.KeyPrefix+" and 1 to 246 of A-Z a-z 0-9 . _ ~ -")

// IssueKey makes an API key for a user and returns its secret, which is shown
// this once and kept nowhere. The error wraps [ErrNotFound] if there is no such user.
func (s *Store) IssueKey(userID string) (secret string, key Key, err error) {
	if userID == "" {
		return "", Key{}, fmt.Errorf("no user is named: %w", ErrNotFound)
	}
	return s.issueKey(keyRequest{UserID: userID}, "")
}

// keyRequest asks for a key: for the user with the id, or for the one with the
// email, who is made with the name if there is none.
type keyRequest struct {
	UserID string `json:"user_id"`
	Name   string `json:"name"`
	Email  string `json:"email"`
}

// issueKey makes a key with this secret or, if that is "", with a new one.
func (s *Store) issueKey(r keyRequest, chosen string) (secret string, key Key, err error) {
	type issued struct {
		secret string
		key    Key
	}
	made, err := update(context.Background(), s, func(t tx) (issued, error) {
		owner, err := t.ownerFor(r)
		if err != nil {
			return issued{}, err
		}
		secret := chosen
		if secret == "" {
			secret = t.newSecret(owner.ID)
		}
		problem := secretRule.Of(secret)
		if problem != "" {
			return issued{}, keyError("secret " + problem)
		}
		key := Key{UserID: owner.ID, Digest: digest(secret), Hint: hint(secret)}
		t.stamp(&key.CreatedAt, nil)
		t.makeID(&key.ID, keyTable, "key", owner.ID)
		t.put(keyTable.Form(&key), nil, nil)
		return issued{secret, key}, nil
	})
	return made.secret, made.key, err
}

func keyError(problems ...string) error { return &RecordError{Kind: "key", Problems: problems} }

// ownerFor finds the user that a key is asked for, or makes one.
func (t tx) ownerFor(r keyRequest) (*rows.Row, error) {
	byName := r.Name != "" || r.Email != ""
	if r.UserID != "" && byName {
		return nil, keyError("user_id excludes name and email: give the one or the others")
	}
	if r.UserID != "" {
		owner := t.Get("usr", r.UserID)
		if owner == nil {
			return nil, notFound("user", r.UserID)
		}
		return owner, nil
	}
	if !byName {
		return nil, keyError("user_id is required, or email and, of a new user, name")
	}
	if t.Find(emailName(r.Email)) == nil {
		u := User{Name: r.Name, Email: r.Email}
		_, problems := t.applyUser(userTable.Form(&u).JSON())
		if problems != nil {
			return nil, &RecordError{Kind: "user", Problems: append(problems, "no user has this email yet")}
		}
	}
	return t.Find(emailName(r.Email)), nil
}

// digest is what a store keeps of a secret. One round of SHA-256 is enough for
// those that are made here: there is nothing to guess in 128 random bits.
func digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// hint is the end of a secret by which a person tells keys apart; nil if the
// secret is so short that its end would give away too much.
func hint(secret string) *string {
	if len(secret) < len(answer.KeyPrefix)+16 {
		return nil
	}
	return new(secret[len(secret)-4:])
}

// newSecret makes a secret that no key has.
func (t tx) newSecret(owner string) (secret string) {
	t.unique("secret", owner, nil, func(made string) string {
		secret = answer.KeyPrefix + made
		return apiKeyName(digest(secret))
	})
	return secret
}

// RevokeKey ends an API key: it is refused from the next request on, for good.
// Revoking it again changes nothing. The error wraps [ErrNotFound] if there is no such key.
func (s *Store) RevokeKey(keyID string) error {
	_, err := update(context.Background(), s, func(t tx) (*rows.Row, error) {
		r := t.Get("key", keyID)
		if r == nil {
			return nil, notFound("key", keyID)
		}
		var k Key
		decode(&k, r)
		if k.RevokedAt != nil {
			return r, nil
		}
		k.RevokedAt = new(latest(s.clock.now(), k.CreatedAt))
		return t.put(keyTable.Form(&k), r, nil), nil
	})
	return err
}

// notFound is the error that there is no user or key with an id.
func notFound(kind, id string) error { return fmt.Errorf("%s %q: %w", kind, id, ErrNotFound) }

// IssueKeyJSON is [Store.IssueKey] for an operator's request: {"user_id"}, or
// {"name","email"} for the user with that email, who is made if there is
// none. It returns the key's id as "id", its secret as "key" and its user's id as "user".
func (s inner) IssueKeyJSON(request []byte) (map[string]string, error) {
	var r keyRequest
	_, problems := form.Read(&r, request)
	if problems != nil {
		return nil, keyError(problems...)
	}
	secret, key, err := s.issueKey(r, "")
	if err != nil {
		return nil, err
	}
	return map[string]string{"id": key.ID, "key": secret, "user": key.UserID}, nil
}

// listedKey is a key with the name and email of its user.
type listedKey struct {
	Key
	Digest string `json:"digest,omitempty"` // hides that of Key
	Name   string `json:"name"`
	Email  string `json:"email"`
}

// Keys is an array of all keys, in the form in which an operator reads them.
func (s inner) Keys() ([]byte, error) {
	list := []listedKey{}
	s.db.View(func(v rows.View) {
		for user := range v.Children("", "usr") {
			for row := range v.Children(user.ID, "key") {
				key := listedKey{Name: user.Value("name"), Email: user.Value("email")}
				decode(&key.Key, row)
				list = append(list, key)
			}
		}
	})
	return strict.Encode(list), nil
}

// firstKey creates the first key of a store that has none, if makeOne is true or a secret is chosen, and
// returns its secret. The key belongs to the first user of the store or, if there is no user, to a new
// one. In a store with keys it changes nothing and returns "".
func (s *Store) firstKey(chosen string, makeOne bool) (secret string, err error) {
	exists := s.db.Stats().Rows["key"] > 0
	if exists || chosen == "" && !makeOne {
		return "", nil
	}
	request := keyRequest{Name: "Local Owner", Email: "owner@localhost.example"}
	s.db.View(func(v rows.View) {
		for user := range v.Children("", "usr") { // the oldest comes first
			request = keyRequest{UserID: user.ID}
			return
		}
	})
	secret, _, err = s.issueKey(request, chosen)
	return secret, err
}

// lookUpKey is the id of the user that has a key with this secret, or "", the id of the key,
// and whether the key is valid: one that was revoked has an owner, too.
func (s *Store) lookUpKey(secret string) (userID, keyID string, valid bool) {
	// Every request comes here, so this is apiKeyName of digest with one allocation. What
	// is longer than any secret is cut, and still is longer than any secret.
	var text [maxSecret + 1]byte
	sum := sha256.Sum256(text[:copy(text[:], secret)])
	name := append(make([]byte, 0, 80), apiKeyName("")...)
	name = hex.AppendEncode(name, sum[:])
	s.db.View(func(v rows.View) {
		k := v.Find(string(name))
		if k != nil {
			userID = k.Parent
			keyID = k.ID
			valid = k.Status != "revoked"
		}
	})
	return userID, keyID, valid
}

// RequestUser is the id of the user whose API key a request carries, also if the key was
// revoked. It is "" if there is no such key.
func (s inner) RequestUser(r *http.Request) string {
	secret, _ := credential(r.Header)
	userID, _, _ := s.lookUpKey(secret)
	return userID
}

// caller is the id of the user whose API key is in the header of a request.
func caller(s *Store, h http.Header) (userID string, err error) {
	secret, problem := credential(h)
	if problem != "" {
		return "", errUnauthorized(problem)
	}
	userID, _, valid := s.lookUpKey(secret)
	if !valid {
		return "", errUnauthorized("invalid API key: no such key, or it was revoked")
	}
	return userID, nil
}

func errUnauthorized(problem string) *answer.Error {
	how := "; send it as x-service-api-key: <API_KEY> or Authorization: Bearer <API_KEY>"
	return answer.Unauthorized(answer.Realm, problem+how)
}

// credential is the API key of a request, or what is wrong with how it is sent. The header
// x-service-api-key decides if it is present, even if it is wrong; Authorization is read
// only when it is absent.
func credential(h http.Header) (secret, problem string) {
	values := h["X-Service-Api-Key"]
	isBearer := len(values) == 0
	if isBearer {
		values = h["Authorization"]
	}
	if len(values) == 0 {
		return "", "missing API key"
	}
	if len(values) > 1 {
		return "", "invalid API key: its header came more than once"
	}
	secret = values[0]
	if isBearer && secret != "" {
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
