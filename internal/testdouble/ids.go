package testdouble

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"regexp"
	"strings"

	"example.com/events/internal/schema"
)

// mailDomain is the email domain of the double's users.
const mailDomain = "@double.example"

const maxUserName = 255 // characters of the name of a user

// Maximum lengths of names in IDs, which may have 64 characters after their prefix.
const (
	maxNameLen  = 48                  // in a user ID, with room for a hash and a number
	maxOwnerLen = 64 - len("_000001") // in other IDs
)

// counters counts IDs by kind and owner, so that they don't depend on other owners.
type counters map[string]int

// next returns the unique part of an ID, slug or key. The owner is a user ID or, for kind usr, the name of a
// new user. IDs are readable; slugs and keys are hashes.
func (c counters) next(kind, owner string) string {
	if kind == "usr" {
		owner = idFromName(owner)
	}
	counted := kind + " " + owner
	c[counted]++
	n := c[counted]
	switch kind {
	case "usr":
		return strings.TrimSuffix(fmt.Sprintf("%s_%d", owner, n), "_1")
	case "slug":
		return digest(kind, owner, n)[:8]
	case "secret":
		return digest(kind, owner, n)[:26] // 130 bits
	}
	name := strings.TrimPrefix(owner, "usr_")
	if len(name) > maxOwnerLen {
		name = name[:maxOwnerLen-9] + "_" + digest(kind, owner, 0)[:8]
	}
	return fmt.Sprintf("%s_%06d", name, n)
}

var (
	plainName    = regexp.MustCompile("^[A-Za-z0-9_]+$") // only needs lower case to become part of an ID
	numberedName = regexp.MustCompile("_[0-9]+$")        // like the ID of a second user with a plain name
)

// idFromName converts a name for an ID. Other names than plain ones lose characters or could get the ID of
// another user, so four characters of their hash keep them apart: "Grace Hopper" becomes grace_hopper_ylbw.
//
// The result must never change, because tests of other programs contain it. Slugs may, so if Slugify does,
// keep its old form here.
func idFromName(name string) string {
	if len(name) <= maxNameLen && plainName.MatchString(name) && !numberedName.MatchString(name) {
		return strings.ToLower(name)
	}
	words := strings.ReplaceAll(schema.Slugify(name), "-", "_")
	return strings.TrimPrefix(words+"_"+digest("usr", name, 0)[:4], "_")
}

func digest(kind, owner string, n int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", kind, owner, n))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))
}
