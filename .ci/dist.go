// Command dist makes what a release page needs: for each system an archive with
// the binary and the README, and SHA256SUMS, which `sha256sum -c` reads.
//
//	.ci/dist VERSION [FOLDER [SYSTEM/ARCHITECTURE ...]]
//
// The folder is dist if it is not given, and the systems are all of those below.
//
// The same source, version and Go release make the same bytes on every run and on
// every machine: the binaries hold no path and no time, and the files in the
// archives have a fixed time and owner.
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

var systems = []string{
	"darwin/amd64", "darwin/arm64", "linux/amd64", "linux/arm64", "windows/amd64", "windows/arm64",
}

// modified is the time of every file in the archives. The time of the build would
// make them different on each run.
var modified = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 || !regexp.MustCompile(`^v\d+\.\d+\.\d+[0-9A-Za-z.+-]*$`).MatchString(args[0]) {
		return fmt.Errorf("give a version such as v1.2.3")
	}
	version, folder := args[0], "dist"
	if len(args) > 1 {
		folder = args[1]
	}
	if len(args) > 2 {
		systems = args[2:]
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, system := range systems {
		goos, goarch, _ := strings.Cut(system, "/")
		binary, err := build(goos, goarch, version)
		if err != nil {
			return fmt.Errorf("%s: %w", system, err)
		}
		name := fmt.Sprintf("eventsd_%s_%s_%s", version, goos, goarch)
		files := []file{{name + "/README.md", 0o644, readme}, {name + "/eventsd", 0o755, binary}}
		pack, ending := tarred, ".tar.gz"
		if goos == "windows" {
			files[1].name += ".exe"
			pack, ending = zipped, ".zip"
		}
		archive, err := pack(files)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name+ending), archive, 0o644)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", system, err)
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(archive), name+ending)
	}
	fmt.Print(sums.String())
	return os.WriteFile(filepath.Join(folder, "SHA256SUMS"), sums.Bytes(), 0o644)
}

// build returns the binary for a system.
func build(goos, goarch, version string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "dist")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "eventsd")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -X example.com/events.version="+version, "-o", out, "./cmd/eventsd")
	// What the environment or "go env -w" may have set would make other bytes.
	cmd.Env = append(os.Environ(), "GOENV=off", "GOFLAGS=", "GOEXPERIMENT=", "GOFIPS140=off",
		"GOAMD64=v1", "GOARM64=v8.0", "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch,
		"GOGC=400") // the compiler takes less time where it seldom collects garbage
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}

type file struct {
	name string
	mode os.FileMode
	data []byte
}

func tarred(files []file) ([]byte, error) {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: int64(f.mode), Size: int64(len(f.data)), ModTime: modified}
		if err := archive.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func zipped(files []file) ([]byte, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: modified}
		h.SetMode(f.mode)
		w, err := archive.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
