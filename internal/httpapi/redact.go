package httpapi

import (
	"regexp"
	"strings"
)

// KeyPrefix is the beginning of every API key.
const KeyPrefix = "svc_live_"

// apiKey matches an API key. Its first group is the part after the prefix.
var apiKey = regexp.MustCompile(KeyPrefix + `([A-Za-z0-9._~-]+)`)

// Redact returns s with every API key in it cut to an ellipsis and its last four characters, or
// fewer if it is short. It doesn't find keys that are encoded in any way.
func Redact(s string) string {
	return apiKey.ReplaceAllStringFunc(s, func(key string) string {
		return keyEnd(strings.TrimPrefix(key, KeyPrefix))
	})
}

// keyEnd shortens a key to its last four characters. It keeps fewer if the key has fewer than eight,
// because four would be most of it.
func keyEnd(key string) string { return "…" + key[min(len(key), max(4, len(key)-4)):] }
