package answer

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// KeyPrefix begins every API key.
const KeyPrefix = "svc_live_"

// apiKey finds an API key in a text, up to what can end one in a URL, a header or
// a body. Any of its characters may be written as in a URL (%5F for the underscore,
// also encoded again: %255F) or in JSON (\u005f).
var apiKey = func() *regexp.Regexp {
	var prefix strings.Builder
	for _, c := range KeyPrefix {
		fmt.Fprintf(&prefix, `(?:%c|(?i:%%(?:25)*%02x|\\u00%02x))`, c, c, c)
	}
	return regexp.MustCompile(prefix.String() + "((?:[^\\s\"'`&;,/\\\\<>]|\\\\u00[[:xdigit:]]{2})+)")
}()

// Redact returns a text with every API key in it cut to an ellipsis and its last
// four characters, fewer of a short key: for a log or the journal of a test double.
func Redact(text string) string {
	if !strings.Contains(text, KeyPrefix) && !strings.Contains(text, "%") && !strings.Contains(text, `\u00`) {
		return text // as nearly every text is: the search below takes ten times as long
	}
	return redact(apiKey, text)
}

func redact(keys *regexp.Regexp, text string) string {
	return keys.ReplaceAllStringFunc(text, func(key string) string {
		return "…" + tail(keys.FindStringSubmatch(key)[1])
	})
}

// anyCase finds an API key in the name of a header field, whose letters net/http changes.
var anyCase = regexp.MustCompile("(?i)" + apiKey.String())

// RedactHeader returns a copy of the header fields of a request without API keys in their names
// and values. Of the fields that carry a key, nothing is kept but the scheme Bearer and
// the end of the value, so that a key with a mistake in it is not kept either.
func RedactHeader(h http.Header) http.Header {
	redacted := http.Header{}
	for name, values := range h {
		shown := redact(anyCase, name)
		for _, value := range values {
			switch http.CanonicalHeaderKey(name) {
			case "X-Service-Api-Key", "Authorization", "Proxy-Authorization":
				scheme := bearer.FindString(value)
				value = scheme + "…" + tail(value[len(scheme):])
			default:
				value = Redact(value)
			}
			redacted[shown] = append(redacted[shown], value)
		}
	}
	return redacted
}

var bearer = regexp.MustCompile("(?i)^bearer ")

// tail is the last four characters of a key. It is fewer if the key has less than
// eight, because four would be most of it.
func tail(key string) string { return key[min(len(key), max(4, len(key)-4)):] }
