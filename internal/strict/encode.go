package strict

import (
	"bytes"
	"encoding/json"
)

// Encode returns x as JSON with <, > and & as they are. It panics where x holds
// what JSON cannot: a channel, a NaN.
func Encode(x any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(x); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
