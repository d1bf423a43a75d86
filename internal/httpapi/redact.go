package httpapi

import (
	"net/http"
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
		return cut(strings.TrimPrefix(key, KeyPrefix))
	})
}

// RedactHeader returns a copy of the header of a request without API keys. In the headers that
// carry a key, it keeps only the scheme Bearer and the end of the value, whatever its form is.
func RedactHeader(h http.Header) http.Header {
	redacted := h.Clone()
	for name, values := range redacted {
		for i, value := range values {
			switch name {
			case "X-Service-Api-Key", "Authorization":
				scheme := bearer.FindString(value)
				values[i] = scheme + cut(value[len(scheme):])
			default:
				values[i] = Redact(value)
			}
		}
	}
	return redacted
}

var bearer = regexp.MustCompile("(?i)^bearer ")

// cut cuts a key to its last four characters. It keeps fewer if the key has fewer than eight,
// because four would be most of it.
func cut(key string) string { return "…" + key[min(len(key), max(4, len(key)-4)):] }
