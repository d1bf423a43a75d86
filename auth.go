package events

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"

	"example.com/events/internal/answer"
	"example.com/events/internal/form"
	"example.com/events/internal/rows"
	"example.com/events/internal/strict"
)

const (
	secretPrefix = "svc_live_" // begins every API key
	maxSecret    = 255         // bytes of an API key
)

// Key is an API key without its secret, which no store keeps.
type Key struct {
	ID        string     `json:"id"`      // key_…
	UserID    string     `json:"user_id"` // the user that the key identifies
	Digest    string     `json:"digest"`  // SHA-256 of the secret, 64 hexadecimal digits
	Hint      *string    `json:"hint"`    // the last four characters of a long secret
	CreatedAt time.Time  `json:"created_at"`
	RevokedAt *time.Time `json:"revoked_at"` // since when it is refused
	Secret    string     `json:"-"`          // write-only: svc_live_ and up to 246 visible characters
}

func (k *Key) form() form.Form {
	return form.Form{
		{Name: "id", Value: &k.ID, Rule: keyID, Flags: form.Fixed},
		{Name: "user_id", Value: &k.UserID, Flags: form.Required | form.Fixed},
		{Name: "secret", Value: &k.Secret, Rule: secretRule, Flags: form.WriteOnly},
		{Name: "digest", Value: &k.Digest, Rule: digestRule, Flags: form.Fixed},
		{Name: "hint", Value: &k.Hint, Rule: hintRule},
		{Name: "created_at", Value: &k.CreatedAt, Flags: form.Fixed},
		{Name: "revoked_at", Value: &k.RevokedAt, Flags: form.Fixed},
	}
}

// apiKeyName is the second name of a key, by which a request finds it.
func apiKeyName(digest string) string { return "key:" + digest }

// idAlphabet has 32 characters that ids, slugs and secrets can all hold.
var idAlphabet = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// newID is the random part of an id, slug or secret: what Config.NewID gives, else
// 128 random bits (40 of a slug, which is no secret and is made again if it is in
// use).
func (s *Store) newID(kind, owner string) string {
	if s.cfg.NewID != nil {
		return s.cfg.NewID(kind, owner)
	}
	random := make([]byte, 16)
	rand.Read(random) // it never fails
	text := idAlphabet.EncodeToString(random)
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

// hint is the end of a secret by which a person tells keys apart; nil if the
// secret is so short that its end would give away too much.
func hint(secret string) *string {
	if len(secret) < len(secretPrefix)+16 {
		return nil
	}
	return new(secret[len(secret)-4:])
}

var (
	secretRule = form.Match(secretPrefix+`[!-~]{1,246}`,
		"must be "+secretPrefix+" and more, at most 255 visible ASCII characters in all")
	digestRule = form.Match(`[0-9a-f]{64}`, "must be a SHA-256 as 64 hexadecimal digits in lower case")
	hintRule   = form.Match(`[!-~]{4}`, "must be the last four characters of the secret, visible ASCII")
)

// key puts a key from a record.
func (t tx) key(v strict.Value) (*rows.Row, []string) {
	var k Key
	f := k.form()
	sum := text(v, "digest")
	if secret := text(v, "secret"); secret != "" {
		sum = digest(secret)
	}
	old := t.existing(v, "key", apiKeyName(sum))
	load(f, old)
	p := f.Fill(v, mode(old))
	given := "digest"
	if k.Secret != "" {
		given = "secret"
		if k.Digest != "" && k.Digest != sum {
			p.Add("digest", "is not that of the secret: leave one of them out")
		}
		k.Digest, k.Hint = sum, hint(k.Secret)
	}
	if k.Digest == "" {
		p.Add("secret", "is required, or its digest")
	}
	if t.Get("usr", k.UserID) == nil {
		p.Add("user_id", fmt.Sprintf("%q is not known", k.UserID))
	}
	t.checkNotTaken(p, given, apiKeyName(k.Digest), k.ID)
	t.createdAt(p, &k.CreatedAt, old)
	if problems := p.All(); problems != nil {
		return nil, problems
	}
	t.makeID(&k.ID, "key", k.UserID, keyID)
	return t.put(f, old, nil), nil
}

// IssueKey makes an API key for a user and returns its secret, which is shown
// this once and kept nowhere. The error wraps [ErrNotFound] if there is no such user.
func (s *Store) IssueKey(userID string) (secret string, key Key, err error) {
	if userID == "" {
		return "", Key{}, fmt.Errorf("no user is named: %w", ErrNotFound)
	}
	return s.issueKey(keyRequest{userID: userID})
}

// keyRequest asks for a key: for the user with the id, or for the one with the
// email, who is made with the name if there is none. The secret may be chosen.
type keyRequest struct{ userID, name, email, secret string }

// user finds or makes the user that a key is asked for.
func (r keyRequest) user(t tx) (*rows.Row, error) {
	switch byID := r.userID != ""; {
	case byID && (r.name != "" || r.email != ""):
		return nil, &RecordError{Kind: "key", Problems: []string{
			"user_id excludes name and email: give the one or the others"}}
	case byID && t.Get("usr", r.userID) == nil:
		return nil, fmt.Errorf("user %q: %w", r.userID, ErrNotFound)
	case byID:
		return t.Get("usr", r.userID), nil
	case r.name == "" && r.email == "":
		return nil, &RecordError{Kind: "key", Problems: []string{
			"user_id is required, or email and, of a new user, name"}}
	case t.Find(emailName(r.email)) == nil:
		u := User{Name: r.name, Email: r.email}
		if problems := t.user(u.form().JSON()); problems != nil {
			return nil, &RecordError{Kind: "user", Problems: append(problems, "no user has this email yet")}
		}
	}
	return t.Find(emailName(r.email)), nil
}

func (s *Store) issueKey(r keyRequest) (secret string, key Key, err error) {
	err = s.update(context.Background(), func(t tx) error {
		u, err := r.user(t)
		if err != nil {
			return err
		}
		if secret = r.secret; secret == "" {
			t.unique("secret", u.ID, nil, func(made string) string {
				secret = secretPrefix + made
				return apiKeyName(digest(secret))
			})
		}
		k := Key{UserID: u.ID, Secret: secret}
		row, problems := t.key(k.form().JSON())
		if problems != nil {
			return &RecordError{Kind: "key", Problems: problems}
		}
		key = Key{}
		load(key.form(), row)
		return nil
	})
	if err != nil {
		return "", Key{}, err
	}
	return secret, key, nil
}

// RevokeKey ends an API key: it is refused from the next request on, for good.
// Revoking it again changes nothing. The error wraps [ErrNotFound] if there is no such key.
func (s *Store) RevokeKey(keyID string) error {
	return s.update(context.Background(), func(t tx) error {
		r := t.Get("key", keyID)
		if r == nil {
			return fmt.Errorf("key %q: %w", keyID, ErrNotFound)
		}
		var k Key
		if load(k.form(), r); k.RevokedAt == nil {
			k.RevokedAt = new(latest(s.now(), k.CreatedAt))
			t.put(k.form(), r, nil)
		}
		return nil
	})
}

// issueKeyJSON is [Store.IssueKey] for an operator's request: {"user_id"}, or
// {"name","email"} for the user with that email, who is made if there is
// none. It returns {"id","key","user"}: the key's id, its secret, its user's id.
func (s *Store) issueKeyJSON(request []byte) ([]byte, error) {
	var r keyRequest
	members := form.Form{
		{Name: "user_id", Value: &r.userID}, {Name: "name", Value: &r.name}, {Name: "email", Value: &r.email},
	}
	v, err := strict.Parse(request)
	problems := members.Fill(v, form.New).All()
	if err != nil {
		problems = []string{err.Error()}
	}
	if problems != nil {
		return nil, &RecordError{Kind: "key", Problems: problems}
	}
	secret, key, err := s.issueKey(r)
	if err != nil {
		return nil, err
	}
	return strict.Encode(map[string]string{"id": key.ID, "key": secret, "user": key.UserID}), nil
}

// keysJSON is an array of all keys, each with the name and email of its user.
func (s *Store) keysJSON() []byte {
	var found [][2]rows.Row // copies of keys and their users, to be read while others change the store
	s.db.View(func(t *rows.Tx) {
		for r := range t.All(nil) {
			if r.Kind.Prefix == "key" {
				found = append(found, [2]rows.Row{*r, *t.Find(r.Parent)})
			}
		}
	})
	list := []byte("[")
	for i, pair := range found {
		var k Key
		var u User
		load(k.form(), &pair[0])
		load(u.form(), &pair[1])
		if i > 0 {
			list = append(list, ',')
		}
		list = form.Form{
			{Name: "id", Value: &k.ID}, {Name: "user_id", Value: &u.ID}, {Name: "name", Value: &u.Name},
			{Name: "email", Value: &u.Email}, {Name: "hint", Value: &k.Hint},
			{Name: "created_at", Value: &k.CreatedAt}, {Name: "revoked_at", Value: &k.RevokedAt},
		}.Append(list)
	}
	return append(list, ']')
}

// keyState is what a server that starts must know of the keys of its store.
type keyState struct {
	Owner  User   // the first user of the store
	Exists bool   // the store had keys, valid or revoked ones
	Known  bool   // the secret that was asked for is that of a valid key
	Secret string // of the key that was made now, if one was
}

// firstKey makes the first key of a store that has none, if makeOne is true or a
// secret is chosen: for the first user of the store or, if there is no user, for
// a new one. In a store with keys it changes nothing.
func (s *Store) firstKey(secret string, makeOne bool) (state keyState, err error) {
	request := keyRequest{secret: secret, name: "Local Owner", email: "owner@localhost.example"}
	s.db.View(func(t *rows.Tx) {
		for r := range t.All(nil) {
			if request.userID == "" {
				request = keyRequest{secret: secret, userID: r.ID}
			}
			if state.Exists = r.Kind.Prefix == "key"; state.Exists {
				break
			}
		}
	})
	if !state.Exists && (makeOne || secret != "") {
		var key Key
		if state.Secret, key, err = s.issueKey(request); err != nil {
			return state, err
		}
		request.userID = key.UserID
	}
	_, state.Known = s.keyOwner(secret)
	// An update and not a View, as it returns a panic of load as an error.
	return state, s.update(context.Background(), func(t tx) error {
		load(state.Owner.form(), t.Get("usr", request.userID))
		return nil
	})
}

// keyOwner is the id of the user that has a key with this secret, or "", and whether the
// key is valid: one that was revoked has an owner, too.
func (s *Store) keyOwner(secret string) (userID string, valid bool) {
	// Every request comes here, so this is apiKeyName of digest with one allocation. What
	// is longer than any secret is cut, and still is longer than any secret.
	var text [maxSecret + 1]byte
	sum := sha256.Sum256(text[:copy(text[:], secret)])
	name := string(hex.AppendEncode(append(make([]byte, 0, 80), apiKeyName("")...), sum[:]))
	s.db.View(func(t *rows.Tx) {
		if k := t.Find(name); k != nil {
			userID, valid = k.Parent, k.Status == ""
		}
	})
	return userID, valid
}

// caller is the id of the user whose API key is in the header of a request.
func caller(s *Store, h http.Header) (userID string, err error) {
	secret, problem := credential(h)
	if problem != "" {
		return "", errUnauthorized(problem)
	}
	userID, valid := s.keyOwner(secret)
	if !valid {
		return "", errUnauthorized("invalid API key: no such key, or it was revoked")
	}
	return userID, nil
}

func errUnauthorized(problem string) *answer.Error {
	how := "; send it as x-service-api-key: <API_KEY> or Authorization: Bearer <API_KEY>"
	return answer.Unauthorized("events", problem+how)
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
