// Package greeting is what a server says to people when it starts: the lines that it prints when
// it is ready, and the line of its log about the API keys of its store. All of it is made from
// values, and nothing is printed, logged or looked up here.
package greeting

import (
	"cmp"
	"log/slog"
	"net/url"

	"example.com/events/internal/command"
)

// Place is where a server can be reached.
type Place struct {
	Root     string // its URL without a path
	API      string // the base URL of the API
	Data     string // its data file; "" in memory
	Operator string // the socket of the operator, or why there is none
}

// Key is the API key that people are shown.
type Key struct {
	Secret string // "" if there is none to show
	Word   string // how a shell writes it, where that differs: $EVENTSD_API_KEY
	Hidden bool   // the line api_key is left out
}

// Keys is what a server knows of the keys of its store when it starts.
type Keys struct {
	Owner  string // the id of the first user of the store; "" if there is none
	Exist  bool   // the store had keys, valid or revoked ones
	Made   string // the secret of the key that was made now, if one was
	Chosen string // the secret that was asked for, if one was
	Known  bool   // Chosen is the secret of a valid key
}

// Shown is the key that a server shows: the one that was made at this start, or the chosen one.
// Whoever chose it has it, so it stands only in the line to paste, or in its place the word by
// which a shell has it.
func (k Keys) Shown(word string) Key {
	if k.Chosen != "" && k.Known {
		return Key{Secret: k.Chosen, Word: word, Hidden: true}
	}
	return Key{Secret: k.Made}
}

// Report is the line of the log about the keys: what was done and how to issue another one. That
// can be done only with a data file, as no command reaches what is in memory.
func (k Keys) Report(data string) (level slog.Level, message string, attributes []any) {
	if data != "" {
		owner := "-name NAME -email EMAIL"
		if k.Owner != "" {
			owner = "-user " + k.Owner
		}
		issue := "eventsd key issue -data " + command.Quote(data) + " " + owner
		attributes = append(attributes, "issue_another", issue)
	}
	switch {
	case k.Made != "":
		attributes = append([]any{"user", k.Owner}, attributes...)
		return slog.LevelInfo, "made the first key, as the store had none", attributes
	case k.Chosen != "" && !k.Known:
		return slog.LevelWarn,
			"-api-key was not used: the store has keys, and this is none of them or was revoked", attributes
	case !k.Exist:
		return slog.LevelInfo, "the store has no key", attributes
	}
	return slog.LevelInfo, "the store has keys", attributes
}

// Lines are what a server prints when it is ready.
func Lines(at Place, key Key) (lines command.Ready) {
	lines.Add("base_url", at.API)
	if key.Secret != "" && !key.Hidden {
		lines.Add("api_key", key.Secret)
	}
	lines.Add("data", cmp.Or(at.Data, "memory"))
	lines.Add("operator", at.Operator)
	lines.Add("reference", at.Root+"/")
	lines.Add("ready", listEvents(at.API, key))
	return lines
}

// listEvents is a line for a shell that lists events: with the key, or with the word by which the
// shell has it, or with a variable for the reader to set.
func listEvents(api string, key Key) string {
	const header = "x-service-api-key: "
	line := "curl -H "
	isPlain := command.Quote(key.Secret) == key.Secret
	if key.Word == "" && key.Secret != "" && !isPlain { // within " the shell would read something else
		line += command.Quote(header + key.Secret)
	} else {
		line += `"` + header + cmp.Or(key.Word, key.Secret, "$KEY") + `"`
	}
	return line + " " + command.Quote(api+"/events")
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
