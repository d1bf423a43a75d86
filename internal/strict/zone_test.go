package strict_test

import (
	"archive/zip"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/events/internal/strict"
)

var update = flag.Bool("update", false, "add new names in the zone data of the Go distribution to zones.txt")

// zoneZip returns the path of the zone data of the Go distribution.
func zoneZip(t *testing.T) string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Skipf("go env GOROOT: %v; without the go command the zone data cannot be found", err)
	}
	path := filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("this Go distribution has no zone data: %v", err)
	}
	return path
}

func zoneLines(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("zones.txt")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(data))
}

// A name stays valid even if the zone data drops it, because programs send it and dumps contain it.
func TestZoneList(t *testing.T) {
	archive, err := zip.OpenReader(zoneZip(t))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	got := zoneLines(t)
	want := append([]string{"UTC"}, got...)
	for _, file := range archive.File {
		if strings.Contains(file.Name, "/") && !strings.HasSuffix(file.Name, "/") {
			want = append(want, file.Name)
		}
	}
	slices.Sort(want)
	want = slices.Compact(want)
	if *update {
		if err := os.WriteFile("zones.txt", []byte(strings.Join(want, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		got = zoneLines(t)
	}
	if slices.Equal(got, want) {
		return
	}
	const hint = "to add it: go test ./internal/strict -run TestZoneList -update"
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("zones.txt: got no %q, want it as in the zone data; %s", name, hint)
		}
	}
	t.Errorf("zones.txt: got %d lines, want %d, sorted and without repetitions; %s",
		len(got), len(want), hint)
}

func TestZone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"UTC", "Europe/London", "America/Argentina/Buenos_Aires", "America/Port-au-Prince",
		"Asia/Calcutta", "US/Eastern", "Etc/UTC", "Etc/GMT+12",
	} {
		if !strict.IsZone(name) {
			t.Errorf("Zone(%q): got false, want true", name)
		}
	}
	for _, name := range []string{
		"", "Local", "utc", "Z", "GMT", "EST", "EST5EDT", "Japan", "Factory", "posixrules",
		"posix/Europe/London", "right/Europe/London", "zone.tab", "+02:00", "UTC+2", "europe/london",
		"EUROPE/LONDON", "Europe", "Europe/", "/Europe/London", "Europe//Paris", "Europe/Lond",
		"Europe/London/", "Europe/London\n", " Europe/London", "Europe/London\nEurope/Rome",
		"Europe/London\x00", "Europe\\London", "Europe/Atlantis", "America/Buenos Aires", "../etc",
		"Europe/../Europe/London", "./Europe/London", "\n", "Europe/\xff",
	} {
		if strict.IsZone(name) {
			t.Errorf("Zone(%q): got true, want false", name)
		}
	}
}
