package testdouble

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"regexp"
	"strings"

	"example.com/events/internal/schema"
)

// This file replaces random IDs, slugs and keys by ones that are the same on every run.

// mailDomain is the domain of the email addresses of users that the double creates.
const mailDomain = "@double.example"

// The maximum lengths of names in IDs, which have 64 characters after their prefix.
const (
	maxName  = 48                  // of a user, with room for a hash and a number
	maxOwner = 64 - len("_000001") // in the ID of something that belongs to a user
)

// counters counts the IDs of each kind and owner, so that no ID depends on other owners.
type counters map[string]int

// next returns the unique part of an ID, slug or key. The owner of a kind other than usr is a user
// ID, and for usr it is the name of the new user. IDs are readable, slugs and keys are hashes.
func (c counters) next(kind, owner string) string {
	if kind == "usr" {
		owner = readable(owner)
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
	if len(name) > maxOwner {
		name = name[:maxOwner-9] + "_" + digest(kind, owner, 0)[:8]
	}
	return fmt.Sprintf("%s_%06d", name, n)
}

// plainName matches names that an ID can contain in lower case.
var plainName = regexp.MustCompile(fmt.Sprintf("^[A-Za-z0-9_]{1,%d}$", maxName))

// readable returns a name in the characters of an ID. Names that aren't plain lose some of their
// characters, so four characters of a hash of the whole name keep them apart: grace_hopper_ylbw is
// the result for "Grace Hopper".
func readable(name string) string {
	if plainName.MatchString(name) {
		return strings.ToLower(name)
	}
	// Slugify returns a word for a name without a usable letter. The x prevents that.
	words := strings.TrimPrefix(schema.Slugify("x "+name), "x")
	words = strings.Trim(strings.ReplaceAll(words, "-", "_"), "_")
	return strings.TrimPrefix(words+"_"+digest("usr", name, 0)[:4], "_")
}

func digest(kind, owner string, n int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", kind, owner, n))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))
}
