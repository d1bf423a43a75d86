package double

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"regexp"
	"strings"

	"example.com/events/internal/answer"
	"example.com/events/internal/form"
	"example.com/events/internal/strict"
)

const mailDomain = "@double.example" // of the users that the double makes

// The longest names that ids have whole. Of an id, 64 characters follow its prefix.
const (
	maxName  = 48                  // of a user: room is left for a hash and a number
	maxOwner = 64 - len("_000001") // in the id of what belongs to a user
)

// NewID makes the part of an id, slug or secret that must be unique, as the
// configuration of a store asks for it. It counts by kind and owner, so that no
// result depends on what is made for other owners: ids are readable, slugs and
// secrets are hashes. For kind usr the owner is a name: the first id is made of that
// name, and then come name_2, name_3 and so on.
func (d *Double) NewID(kind, owner string) string {
	if kind == "usr" {
		owner = readable(owner)
	}
	counted := kind + " " + owner
	d.mutex.Lock()
	d.counts[counted]++
	n := d.counts[counted]
	d.mutex.Unlock()
	switch kind {
	case "usr":
		return strings.TrimSuffix(fmt.Sprintf("%s_%d", owner, n), "_1")
	case "slug":
		return digest(kind, owner, n)[:8]
	case "secret":
		return digest(kind, owner, n)[:26] // 130 bits
	}
	id := strings.TrimPrefix(owner, "usr_")
	if len(id) > maxOwner {
		id = id[:maxOwner-9] + "_" + digest(kind, owner, 0)[:8]
	}
	return fmt.Sprintf("%s_%06d", id, n)
}

// plainName is the form of a name that an id can have as it is, in lower case.
var plainName = regexp.MustCompile(fmt.Sprintf("^[A-Za-z0-9_]{1,%d}$", maxName))

// readable is a name in the characters of an id. What is not plain loses something, so a hash
// of the whole name is put behind the rest: grace of "Grace", grace_hopper_ and four
// characters of "Grace Hopper", and four characters alone of a name without a usable letter.
func readable(name string) string {
	if plainName.MatchString(name) {
		return strings.ToLower(name)
	}
	// MakeSlug has a word of its own for a name without a usable letter: "x" takes its place.
	rest := strings.TrimPrefix(form.MakeSlug("x "+name), "x")
	rest = strings.Trim(strings.ReplaceAll(rest, "-", "_"), "_")
	return strings.TrimPrefix(rest+"_"+digest("usr", name, 0)[:4], "_")
}

func digest(kind, owner string, n int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", kind, owner, n))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))
}

// NewUser makes a user of this name, with an id and email that no user has.
func (d *Double) NewUser(name string) (userID string, err error) {
	if name == "" {
		return "", answer.BadRequest("name is required: the id of the user comes from it")
	}
	for {
		id := d.NewID("usr", name)
		userID = "usr_" + id
		isTaken := d.Profile(userID) != "" || d.Profile(id+mailDomain) != ""
		if !isTaken {
			return userID, d.apply(`{"user":{"id":%q,"name":%s,"email":%q}}`,
				userID, strict.Encode(name), id+mailDomain)
		}
	}
}
