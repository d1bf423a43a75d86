package greeting

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
)

// What is said of the keys of a store, and which of them is shown.
func TestKeys(t *testing.T) {
	t.Parallel()
	const chosen, made = "svc_live_chosen", "svc_live_made"
	const byUser = "[issue_another eventsd key issue -data 'a b.json' -user usr_1]"
	for _, tt := range []struct {
		name  string
		keys  Keys
		data  string
		level slog.Level
		said  string // the message and the attributes
		shown Key
	}{
		{"a first key", Keys{Owner: "usr_1", Made: made}, "a b.json",
			slog.LevelInfo, "made the first key, as the store had none[user usr_1 issue_another " + byUser[len("[issue_another "):],
			Key{Secret: made}},
		{"a first key in memory", Keys{Owner: "usr_1", Made: made}, "",
			slog.LevelInfo, "made the first key, as the store had none[user usr_1]", Key{Secret: made}},
		{"a chosen first key", Keys{Owner: "usr_1", Made: chosen, Chosen: chosen, Known: true}, "",
			slog.LevelInfo, "made the first key, as the store had none[user usr_1]", Key{chosen, "$WORD", true}},
		{"keys", Keys{Owner: "usr_1", Exist: true}, "a b.json",
			slog.LevelInfo, "the store has keys" + byUser, Key{}},
		{"keys, and the chosen one is among them", Keys{Owner: "usr_1", Exist: true, Chosen: chosen, Known: true}, "",
			slog.LevelInfo, "the store has keys[]", Key{chosen, "$WORD", true}},
		{"keys, and the chosen one is not", Keys{Owner: "usr_1", Exist: true, Chosen: chosen}, "a b.json",
			slog.LevelWarn, "-api-key was not used: the store has keys, and this is none of them or was revoked" + byUser,
			Key{}},
		{"no key", Keys{Owner: "usr_1"}, "a b.json", slog.LevelInfo, "the store has no key" + byUser, Key{}},
		{"no user", Keys{}, "events.json", slog.LevelInfo,
			"the store has no key[issue_another eventsd key issue -data events.json -name NAME -email EMAIL]", Key{}},
		{"nothing, in memory", Keys{}, "", slog.LevelInfo, "the store has no key[]", Key{}},
	} {
		level, message, attributes := tt.keys.Report(tt.data)
		if said := message + fmt.Sprint(attributes); level != tt.level || said != tt.said {
			t.Errorf("%s: Report = %v %s, want %v %s", tt.name, level, said, tt.level, tt.said)
		}
		if shown := tt.keys.Shown("$WORD"); shown != tt.shown {
			t.Errorf("%s: Shown = %+v, want %+v", tt.name, shown, tt.shown)
		}
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	at := Place{"http://h:1", "http://h:1/api", "/d/events.json", "/d/events.json.sock"}
	inMemory := Place{Root: "http://[::1]:1", API: "http://[::1]:1/api", Operator: "off (memory)"}
	const events = " http://h:1/api/events\n"
	const begin = "base_url: http://h:1/api\n"
	const middle = "data: /d/events.json\noperator: /d/events.json.sock\nreference: http://h:1/\n"
	for _, tt := range []struct {
		at   Place
		key  Key
		want string
	}{
		{at, Key{}, begin + middle + `ready: curl -H "x-service-api-key: $KEY"` + events},
		{at, Key{Secret: "k"}, begin + "api_key: k\n" + middle + `ready: curl -H "x-service-api-key: k"` + events},
		{at, Key{Secret: "k", Hidden: true}, begin + middle + `ready: curl -H "x-service-api-key: k"` + events},
		{at, Key{"k", "$VARIABLE", true}, begin + middle + `ready: curl -H "x-service-api-key: $VARIABLE"` + events},
		{at, Key{"k$HOME`'", "$(head -n1 'a b')", true},
			begin + middle + `ready: curl -H "x-service-api-key: $(head -n1 'a b')"` + events},
		{at, Key{"k$HOME`'", "", true}, begin + middle + "ready: curl -H 'x-service-api-key: k$HOME`'\\'''" + events},
		{inMemory, Key{Secret: "k"}, "base_url: http://[::1]:1/api\napi_key: k\ndata: memory\noperator: off (memory)\n" +
			"reference: http://[::1]:1/\nready: curl -H \"x-service-api-key: k\" 'http://[::1]:1/api/events'\n"},
	} {
		if got := Lines(tt.at, tt.key).String(); got != tt.want {
			t.Errorf("Lines(%v, %v) =\n%swant\n%s", tt.at, tt.key, got, tt.want)
		}
	}
}

func TestDoubleLines(t *testing.T) {
	t.Parallel()
	lines := DoubleLines(Place{Root: "http://h:1", API: "http://h:1/api"}, "k", "http://h:1/_control", "a&b")
	const want = "base_url: http://h:1/api\napi_key: k\ncontrol_url: http://h:1/_control\ncontrol_token: a&b\n" +
		"reference: http://h:1/\ninspector: http://h:1/_control/#token=a%26b\n" +
		`ready: curl -H 'Authorization: Bearer a&b' -d '{"name":"Grace"}' http://h:1/_control/keys` + "\n"
	if got := lines.String(); got != want {
		t.Errorf("DoubleLines =\n%swant\n%s", got, want)
	}
	variables := []string{"EVENTS_BASE_URL=http://h:1/api", "EVENTS_API_KEY=k",
		"EVENTS_CONTROL_URL=http://h:1/_control", "EVENTS_CONTROL_TOKEN=a&b"}
	if got := Variables(lines); !slices.Equal(got, variables) {
		t.Errorf("Variables = %q, want %q", got, variables)
	}
}
