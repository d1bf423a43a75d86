package strict

import (
	"encoding/json"
	"strings"
)

// Encode returns x as JSON with <, > and & as they are. It panics where x holds
// what JSON cannot: a channel, a NaN.
func Encode(x any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(x); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
