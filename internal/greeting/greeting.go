// Package greeting has the lines that a server prints when it is ready.
package greeting

import (
	"cmp"
	"net/url"

	"example.com/events/internal/command"
)

// Place is where a server can be reached.
type Place struct {
	Root string // its URL without a path
	API  string // the base URL of the API
	Data string // its data file; "" in memory
}

// Lines returns the lines that a server prints when it is ready. The key is "" if none is shown.
func Lines(at Place, key string) (lines command.Ready) {
	lines.Add("base_url", at.API)
	if key != "" {
		lines.Add("api_key", key)
	}
	lines.Add("data", cmp.Or(at.Data, "memory"))
	lines.Add("reference", at.Root+"/")
	header := `"x-service-api-key: ` + cmp.Or(key, "<API_KEY>") + `"`
	lines.Add("ready", "curl -H "+header+" "+command.Quote(at.API+"/events"))
	return lines
}

// DoubleLines are what a test double prints when it is ready. Its control API is at the URL
// control, and takes the token.
func DoubleLines(at Place, key, control, token string) (lines command.Ready) {
	lines.Add("base_url", at.API)
	lines.Add("api_key", key)
	lines.Add("control_url", control)
	lines.Add("control_token", token)
	lines.Add("reference", at.Root+"/")
	lines.Add("inspector", control+"/#token="+url.QueryEscape(token))
	lines.Add("ready", "curl -H "+command.Quote("Authorization: Bearer "+token)+
		` -d '{"name":"Grace"}' `+command.Quote(control+"/keys"))
	return lines
}

// Variables are what a command beside a test double finds in its environment: some of the lines.
func Variables(lines command.Ready) (variables []string) {
	names := map[string]string{
		"base_url":      "EVENTS_BASE_URL",
		"api_key":       "EVENTS_API_KEY",
		"control_url":   "EVENTS_CONTROL_URL",
		"control_token": "EVENTS_CONTROL_TOKEN",
	}
	for _, line := range lines {
		name := names[line.Name]
		if name != "" {
			variables = append(variables, name+"="+line.Value)
		}
	}
	return variables
}
