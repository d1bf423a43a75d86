package httpapi

import (
	"regexp"
	"strings"
)

// KeyPrefix is the prefix of every API key.
const KeyPrefix = "svc_live_"

var apiKey = regexp.MustCompile(KeyPrefix + `[A-Za-z0-9._~-]+`)

// Redact shortens every API key in a text to an ellipsis and its last four characters, or fewer if it is
// short. It doesn't find encoded keys.
func Redact(s string) string {
	return apiKey.ReplaceAllStringFunc(s, func(key string) string {
		return keyEnd(strings.TrimPrefix(key, KeyPrefix))
	})
}

// keyEnd shortens a key to its last four characters, or fewer if it has fewer than eight, because four would
// reveal most of it.
func keyEnd(key string) string { return "…" + key[min(len(key), max(4, len(key)-4)):] }
