package events

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"

	"example.com/events/internal/form"
	"example.com/events/internal/index"
	"example.com/events/internal/record"
	"example.com/events/internal/strict"
)

// secretPrefix begins every API key.
const secretPrefix = "svc_live_"

// newID is the random part of an id, slug or secret: what Config.NewID gives,
// else at least 128 random bits in [a-z2-7] (40 of a slug, which is no secret
// and is made again where it is taken).
func (s *Store) newID(kind, owner string) string {
	if s.cfg.NewID != nil {
		return s.cfg.NewID(kind, owner)
	}
	text := strings.ToLower(rand.Text())
	if kind == "slug" {
		return text[:8]
	}
	return text
}

// digest is what a store keeps of a secret. One round of SHA-256 is enough for
// those that are made here: there is nothing to guess in 128 random bits.
func digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// hint is the end of a secret by which a person tells keys apart; nil where the
// secret is so short that its end would give away too much.
func hint(secret string) *string {
	if len(secret) < len(secretPrefix)+16 {
		return nil
	}
	return new(secret[len(secret)-4:])
}

func secretRule(s string) string {
	if !strings.HasPrefix(s, secretPrefix) || len(s) == len(secretPrefix) || len(s) > 255 || !form.Visible(s) {
		return "must be " + secretPrefix + " and more, at most 255 visible ASCII characters in all"
	}
	return ""
}

func digestRule(s string) string {
	if len(s) != hex.EncodedLen(sha256.Size) || strings.Trim(s, "0123456789abcdef") != "" {
		return "must be a SHA-256 as 64 hexadecimal digits in lower case"
	}
	return ""
}

func hintRule(s string) string {
	if len(s) != 4 || !form.Visible(s) {
		return "must be the last four characters of the secret, visible ASCII"
	}
	return ""
}

// IssueKey makes an API key for a user and returns its secret, which is shown
// this once and kept nowhere. [ErrNotFound] where there is no such user.
func (s *Store) IssueKey(userID string) (secret string, key Key, err error) {
	if userID == "" {
		return "", Key{}, fmt.Errorf("no user is named: %w", ErrNotFound)
	}
	return s.issueKey(owner{userID: userID})
}

// owner says whose a new key is to be: of the user with the id, else of the one
// with the email, who is made with the name where there is none.
type owner struct{ userID, name, email string }

func (o owner) find(t *tx) (*index.Row, error) {
	if o.userID != "" {
		if o.name != "" || o.email != "" {
			return nil, &RecordError{Kind: "key", Problems: []string{"user_id excludes name and email: give the one or the others"}}
		}
		if u := t.Get("usr", o.userID); u != nil {
			return u, nil
		}
		return nil, fmt.Errorf("user %q: %w", o.userID, ErrNotFound)
	}
	if o == (owner{}) {
		return nil, &RecordError{Kind: "key", Problems: []string{"user_id is required, or email and, of a new user, name"}}
	}
	if u := t.Find(record.Email(o.email)); u != nil {
		return u, nil
	}
	if problems := t.user((&User{Name: o.name, Email: o.email}).form().JSON()); problems != nil {
		return nil, &RecordError{Kind: "user", Problems: problems}
	}
	return t.Find(record.Email(o.email)), nil
}

func (s *Store) issueKey(o owner) (secret string, key Key, err error) {
	err = s.change(context.Background(), func(t *tx) error {
		u, err := o.find(t)
		if err != nil {
			return err
		}
		var name string // what it is found by: a seed may have it already
		t.unique(&name, "secret", u.ID, func(string) string { return "" }, func(made string) string {
			secret = secretPrefix + made
			return record.Key(digest(secret))
		})
		k, problems := t.key((&Key{UserID: u.ID, Secret: secret}).form().JSON())
		if problems != nil {
			return &RecordError{Kind: "key", Problems: problems}
		}
		mustDecode(k.Raw, &key)
		return nil
	})
	if err != nil {
		return "", Key{}, err
	}
	return secret, key, nil
}

// RevokeKey ends an API key: it is refused from the next request on, for good.
// Revoking it again changes nothing. [ErrNotFound] where there is no such key.
func (s *Store) RevokeKey(keyID string) error {
	return s.change(context.Background(), func(t *tx) error {
		r := t.Get("key", keyID)
		if r == nil {
			return fmt.Errorf("key %q: %w", keyID, ErrNotFound)
		}
		var k Key
		mustDecode(r.Raw, &k)
		if k.RevokedAt == nil {
			k.RevokedAt = new(s.now())
			t.put(k.form().Append(nil), r, nil)
		}
		return nil
	})
}

func (o *owner) form() form.Form {
	return form.Form{
		{Name: "user_id", Value: &o.userID},
		{Name: "name", Value: &o.name},
		{Name: "email", Value: &o.email},
	}
}

// IssueKeyJSON is [Store.IssueKey] for an operator's request: {"user_id"}, or
// {"name","email"} for the user with that email, who is made where there is
// none. It returns {"id","key","user"}: the key's id, its secret, its user's id.
func (s *Store) IssueKeyJSON(request []byte) ([]byte, error) {
	v, err := strict.Parse(request)
	if err != nil {
		return nil, &RecordError{Kind: "key", Problems: []string{err.Error()}}
	}
	var o owner
	if problems := o.form().Fill(v, form.New).All(); problems != nil {
		return nil, &RecordError{Kind: "key", Problems: problems}
	}
	secret, key, err := s.issueKey(o)
	if err != nil {
		return nil, err
	}
	return strict.Encode(map[string]string{"id": key.ID, "key": secret, "user": key.UserID}), nil
}

// listedKey is a key as an operator sees it.
type listedKey struct {
	ID        string     `json:"id"`
	UserID    string     `json:"user_id"`
	Name      string     `json:"name"`
	Email     string     `json:"email"`
	Hint      *string    `json:"hint"`
	CreatedAt time.Time  `json:"created_at"`
	RevokedAt *time.Time `json:"revoked_at"`
}

// KeysJSON is an array of all keys with the names of their users.
func (s *Store) KeysJSON() ([]byte, error) {
	var raws [][2]string // of keys and their users, to be decoded without the lock
	s.mu.RLock()
	for r := range s.index.All() {
		if r.Kind() == "key" {
			raws = append(raws, [2]string{r.Raw, s.index.Find(r.Parent).Raw})
		}
	}
	s.mu.RUnlock()
	all := []listedKey{}
	for _, raw := range raws {
		var k Key
		var u User
		mustDecode(raw[0], &k)
		mustDecode(raw[1], &u)
		all = append(all, listedKey{k.ID, u.ID, u.Name, u.Email, k.Hint, k.CreatedAt, k.RevokedAt})
	}
	return strict.Encode(all), nil
}

// caller is the id of the user whose key the request carries. The header
// x-service-api-key decides where it is there, even if it is wrong;
// Authorization is read only when it is absent.
func (s *Store) caller(r *http.Request) (userID string, err error) {
	secret, problem := credential(r.Header)
	if problem != "" {
		return "", errUnauthorized(problem)
	}
	name := record.Key(digest(secret))
	s.mu.RLock()
	defer s.mu.RUnlock()
	if k := s.index.Find(name); k != nil && k.State != "revoked" {
		return k.Parent, nil
	}
	return "", errUnauthorized("invalid API key: no such key, or it was revoked")
}

// credential is the API key of a request, or what is wrong with how it is sent.
func credential(h http.Header) (secret, problem string) {
	switch keys := h["X-Service-Api-Key"]; len(keys) {
	case 0:
	case 1:
		if keys[0] == "" {
			return "", "invalid API key: the header x-service-api-key is empty"
		}
		return keys[0], ""
	default:
		return "", "invalid API key: the header x-service-api-key came more than once"
	}
	switch values := h["Authorization"]; len(values) {
	case 0:
		return "", "missing API key"
	case 1:
		scheme, secret, _ := strings.Cut(values[0], " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return "", "invalid API key: Authorization is not of the form Bearer <API_KEY>"
		}
		if secret = strings.TrimLeft(secret, " "); secret == "" {
			return "", "invalid API key: nothing stands behind Bearer"
		}
		return secret, ""
	}
	return "", "invalid API key: the header Authorization came more than once"
}
