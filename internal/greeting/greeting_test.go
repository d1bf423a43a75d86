package greeting

import (
	"slices"
	"testing"
)

func TestLines(t *testing.T) {
	t.Parallel()
	at := Place{"http://h:1", "http://h:1/api", "/d/events.json"}
	inMemory := Place{Root: "http://[::1]:1", API: "http://[::1]:1/api"}
	for _, tt := range []struct {
		at   Place
		key  string
		want string
	}{
		{at, "", "base_url: http://h:1/api\ndata: /d/events.json\nreference: http://h:1/\n" +
			"ready: curl -H \"x-service-api-key: <API_KEY>\" http://h:1/api/events\n"},
		{inMemory, "k", "base_url: http://[::1]:1/api\napi_key: k\ndata: memory\nreference: http://[::1]:1/\n" +
			"ready: curl -H \"x-service-api-key: k\" 'http://[::1]:1/api/events'\n"},
	} {
		if got := Lines(tt.at, tt.key).String(); got != tt.want {
			t.Errorf("Lines(%v, %q) =\n%swant\n%s", tt.at, tt.key, got, tt.want)
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
