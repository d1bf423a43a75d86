package answer

import (
	"net/http"
	"regexp"
)

// KeyPrefix begins every API key.
const KeyPrefix = "svc_live_"

// apiKey matches an API key in a text, up to a character that can end one in a URL, a header or
// a body.
var apiKey = regexp.MustCompile(KeyPrefix + "[^\\s\"'`&;,/\\\\<>]+")

// Redact returns a text with every API key in it cut to an ellipsis and its last four
// characters, fewer of a short key. It does not find a key that is percent-encoded or escaped.
func Redact(text string) string {
	return apiKey.ReplaceAllStringFunc(text, func(key string) string {
		return "…" + tail(key[len(KeyPrefix):])
	})
}

// RedactHeader returns a copy of the header fields of a request without API keys in their
// values. Of the fields that carry a key, it keeps only the scheme Bearer and the end of the
// value, so that a key with a mistake in it is not kept either.
func RedactHeader(h http.Header) http.Header {
	redacted := http.Header{}
	for name, values := range h {
		for _, value := range values {
			switch http.CanonicalHeaderKey(name) {
			case "X-Service-Api-Key", "Authorization", "Proxy-Authorization":
				scheme := bearer.FindString(value)
				value = scheme + "…" + tail(value[len(scheme):])
			default:
				value = Redact(value)
			}
			redacted[name] = append(redacted[name], value)
		}
	}
	return redacted
}

var bearer = regexp.MustCompile("(?i)^bearer ")

// tail is the last four characters of a key. It is fewer if the key has less than
// eight, because four would be most of it.
func tail(key string) string { return key[min(len(key), max(4, len(key)-4)):] }
