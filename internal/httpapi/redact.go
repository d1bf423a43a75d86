package httpapi

import (
	"regexp"
	"strings"
)

// Redactor returns a function that shortens every API key in a text to an ellipsis and its last four
// characters, or fewer if it is short. It doesn't find encoded keys. Keys begin with prefix.
func Redactor(prefix string) func(s string) string {
	apiKey := regexp.MustCompile(regexp.QuoteMeta(prefix) + `[A-Za-z0-9._~-]+`)
	return func(s string) string {
		return apiKey.ReplaceAllStringFunc(s, func(key string) string {
			return keyEnd(strings.TrimPrefix(key, prefix))
		})
	}
}

// keyEnd shortens a key to its last four characters, or fewer if it has fewer than eight, because four would
// reveal most of it.
func keyEnd(key string) string { return "…" + key[min(len(key), max(4, len(key)-4)):] }
